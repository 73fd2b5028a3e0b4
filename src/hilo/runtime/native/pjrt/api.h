/* The PJRT C API 0.114 as a plugin sees it: the table of functions, their arguments, the extensions. Facts of openxla/xla
 * (xla/pjrt/c); names are ours: `PJRT_Client_Compile` is `client_compile`, its arguments struct pjrt_client_compile_args.
 *
 * Callers may be older or newer: every struct begins with the size that its owner knows, and fields beyond are not
 * touched (PJRT_KNOWS). Functions give NULL or an error, which then belongs to the caller; outputs are written to the
 * arguments' struct. Texts are not terminated; what getters give lives as long as the object that was asked.
 */
#ifndef HILO_PJRT_API_H
#define HILO_PJRT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_MAJOR 0
#define PJRT_MINOR 114

/* Whether the caller's struct at `args` has the field. */
#define PJRT_KNOWS(args, field) \
    ((args)->struct_size >= offsetof(__typeof__(*(args)), field) + sizeof((args)->field))

/* Element types of buffers. */
enum {
    PJRT_PRED = 1, PJRT_S8, PJRT_S16, PJRT_S32, PJRT_S64, PJRT_U8, PJRT_U16, PJRT_U32, PJRT_U64, PJRT_F16, PJRT_F32, PJRT_F64,
    PJRT_BF16, PJRT_C64, PJRT_C128, PJRT_F8E5M2, PJRT_F8E4M3FN, PJRT_F8E4M3B11FNUZ, PJRT_F8E5M2FNUZ, PJRT_F8E4M3FNUZ, PJRT_S4,
    PJRT_U4, PJRT_TOKEN, PJRT_S2, PJRT_U2, PJRT_F8E4M3, PJRT_F8E3M4, PJRT_F8E8M0FNU, PJRT_F4E2M1FN, PJRT_S1, PJRT_U1,
    PJRT_F6E2M3FN, PJRT_F6E3M2FN, PJRT_TYPES
};

/* Codes of errors. */
enum {
    PJRT_OK, PJRT_CANCELLED, PJRT_UNKNOWN, PJRT_INVALID_ARGUMENT, PJRT_DEADLINE_EXCEEDED, PJRT_NOT_FOUND, PJRT_ALREADY_EXISTS,
    PJRT_PERMISSION_DENIED, PJRT_RESOURCE_EXHAUSTED, PJRT_FAILED_PRECONDITION, PJRT_ABORTED, PJRT_OUT_OF_RANGE,
    PJRT_UNIMPLEMENTED, PJRT_INTERNAL, PJRT_UNAVAILABLE, PJRT_DATA_LOSS, PJRT_UNAUTHENTICATED
};

/* How long the host's memory of BufferFromHostBuffer stays as it is. */
enum { PJRT_DURING_CALL, PJRT_UNTIL_TRANSFERRED, PJRT_ZERO_COPY, PJRT_MUTABLE_ZERO_COPY };

enum { PJRT_TILED, PJRT_STRIDES };                                    /* memory layouts */
enum { PJRT_STRING, PJRT_INTEGER, PJRT_INTEGERS, PJRT_REAL, PJRT_BOOLEAN }; /* named values */

/* Types of extensions. */
enum {
    PJRT_EXTENSION_PROFILER = 1, PJRT_EXTENSION_STREAM = 3, PJRT_EXTENSION_LAYOUTS = 4, PJRT_EXTENSION_FFI = 5,
    PJRT_EXTENSION_MEMORY_DESCRIPTIONS = 6, PJRT_EXTENSION_RAW_BUFFER = 8, PJRT_EXTENSION_SHARDINGS = 19,
    PJRT_EXTENSION_ABI_VERSION = 20
};

struct pjrt_extension {
    size_t struct_size;
    uint32_t type;
    struct pjrt_extension *next;
};

#define PJRT_HEAD \
    size_t struct_size; \
    struct pjrt_extension *extensions

/* The arguments of one function. */
#define PJRT_ARGS(name, ...) \
    struct pjrt_##name##_args { \
        PJRT_HEAD; \
        __VA_ARGS__ \
    };

#define PJRT_BARE_ARGS(name, ...) \
    struct pjrt_##name##_args { \
        size_t struct_size; \
        __VA_ARGS__ \
    };

/* A member of a table of functions. */
#define PJRT_SLOT(name) struct pjrt_error *(*name)(struct pjrt_##name##_args *args);

/* Ours: pjrt.h. */
struct pjrt_error;
struct pjrt_event;
struct pjrt_client;
struct pjrt_device;
struct pjrt_description; /* of a device */
struct pjrt_memory;
struct pjrt_memory_description;
struct pjrt_topology;
struct pjrt_executable;
struct pjrt_loaded; /* a loaded executable */
struct pjrt_buffer;
struct pjrt_raw_buffer;
struct pjrt_layout;
struct pjrt_context;     /* of an execution */
struct pjrt_transfers;   /* to buffers that exist before their contents */
struct pjrt_copy_stream;
struct pjrt_tracking;
struct pjrt_fulfill;
struct pjrt_abi;

/* What arguments are made of. */

struct pjrt_version {
    PJRT_HEAD;
    int32_t major_version, minor_version;
};

struct pjrt_named_value {
    PJRT_HEAD;
    const char *name;
    size_t name_size;
    uint32_t type;
    union {
        const char *string;
        int64_t integer;
        const int64_t *integers;
        float real;
        bool boolean;
    } value;
    size_t value_size;
};

struct pjrt_tiled {
    PJRT_HEAD;
    const int64_t *minor_to_major;
    size_t minor_to_major_size;
    const int64_t *tile_dims;
    const size_t *tile_dim_sizes;
    size_t num_tiles;
};

struct pjrt_strides {
    PJRT_HEAD;
    const int64_t *byte_strides;
    size_t num_byte_strides;
};

struct pjrt_memory_layout {
    PJRT_HEAD;
    union {
        struct pjrt_tiled tiled;
        struct pjrt_strides strides;
    };
    uint32_t type;
};

struct pjrt_program {
    PJRT_HEAD;
    const char *code;
    size_t code_size;
    const char *format;
    size_t format_size;
};

struct pjrt_shape_spec {
    PJRT_HEAD;
    const int64_t *dims;
    size_t num_dims;
    uint32_t element_type;
};

struct pjrt_chunk {
    void *data;
    size_t size;
    void (*deleter)(void *data, void *deleter_arg);
    void *deleter_arg;
};

struct pjrt_logical_ids {
    int32_t replica, partition;
};

struct pjrt_load_options {
    size_t struct_size;
    const char *computation_origin;
    size_t computation_origin_size;
    void *multi_slice_config;
};

struct pjrt_execute_options {
    PJRT_HEAD;
    void *send_callbacks;
    void *recv_callbacks;
    size_t num_send_ops, num_recv_ops;
    int32_t launch_id;
    const int64_t *non_donatable_input_indices;
    size_t num_non_donatable_input_indices;
    struct pjrt_context *context;
    const char *call_location;
    size_t num_tasks;
    void *task_ids;
    void *incarnation_ids;
    void *multi_slice_config;
    bool use_major_to_minor_data_layout_for_callbacks;
    void *hlo_output_callbacks;
    size_t num_hlo_output_callbacks;
};

struct pjrt_buffer_copy_raw_to_host_future_callback_args;
struct pjrt_buffer_donate_with_control_dependency_callback_args;

/* The functions, in the order of the table, and their arguments. */

PJRT_ARGS(error_destroy, struct pjrt_error *error;)
PJRT_ARGS(error_message, struct pjrt_error *error; const char *message; size_t message_size;)
PJRT_ARGS(error_get_code, struct pjrt_error *error; uint32_t code;)
PJRT_ARGS(plugin_initialize,)
PJRT_ARGS(plugin_attributes, const struct pjrt_named_value *attributes; size_t num_attributes;)
PJRT_ARGS(event_destroy, struct pjrt_event *event;)
PJRT_ARGS(event_is_ready, struct pjrt_event *event; bool is_ready;)
PJRT_ARGS(event_error, struct pjrt_event *event;)
PJRT_ARGS(event_await, struct pjrt_event *event;)
PJRT_ARGS(event_on_ready, struct pjrt_event *event; void (*callback)(struct pjrt_error *error, void *user_arg);
          void *user_arg;)
PJRT_ARGS(client_create, const struct pjrt_named_value *create_options; size_t num_options; void *kv_get_callback;
          void *kv_get_user_arg; void *kv_put_callback; void *kv_put_user_arg; struct pjrt_client *client;
          void *kv_try_get_callback; void *kv_try_get_user_arg;)
PJRT_ARGS(client_destroy, struct pjrt_client *client;)
PJRT_ARGS(client_platform_name, struct pjrt_client *client; const char *platform_name; size_t platform_name_size;)
PJRT_ARGS(client_process_index, struct pjrt_client *client; int32_t process_index;)
PJRT_ARGS(client_platform_version, struct pjrt_client *client; const char *platform_version;
          size_t platform_version_size;)
PJRT_ARGS(client_devices, struct pjrt_client *client; struct pjrt_device *const *devices; size_t num_devices;)
PJRT_ARGS(client_addressable_devices, struct pjrt_client *client; struct pjrt_device *const *addressable_devices;
          size_t num_addressable_devices;)
PJRT_ARGS(client_lookup_device, struct pjrt_client *client; int32_t id; struct pjrt_device *device;)
PJRT_ARGS(client_lookup_addressable_device, struct pjrt_client *client; int32_t local_hardware_id;
          struct pjrt_device *addressable_device;)
PJRT_ARGS(client_addressable_memories, struct pjrt_client *client; struct pjrt_memory *const *addressable_memories;
          size_t num_addressable_memories;)
PJRT_ARGS(client_compile, struct pjrt_client *client; struct pjrt_program *program; const char *compile_options;
          size_t compile_options_size; struct pjrt_loaded *executable;)
PJRT_ARGS(client_default_device_assignment, struct pjrt_client *client; int32_t num_replicas, num_partitions;
          size_t default_assignment_size; int *default_assignment;)
PJRT_ARGS(client_buffer_from_host_buffer, struct pjrt_client *client; const void *data; uint32_t type;
          const int64_t *dims; size_t num_dims; const int64_t *byte_strides; size_t num_byte_strides;
          uint32_t host_buffer_semantics; struct pjrt_device *device; struct pjrt_memory *memory;
          const struct pjrt_memory_layout *device_layout; struct pjrt_event *done_with_host_buffer;
          struct pjrt_buffer *buffer;)
PJRT_ARGS(device_description_id, struct pjrt_description *device_description; int32_t id;)
PJRT_ARGS(device_description_process_index, struct pjrt_description *device_description; int32_t process_index;)
PJRT_ARGS(device_description_attributes, struct pjrt_description *device_description; size_t num_attributes;
          const struct pjrt_named_value *attributes;)
PJRT_ARGS(device_description_kind, struct pjrt_description *device_description; const char *device_kind;
          size_t device_kind_size;)
PJRT_ARGS(device_description_debug_string, struct pjrt_description *device_description; const char *debug_string;
          size_t debug_string_size;)
PJRT_ARGS(device_description_to_string, struct pjrt_description *device_description; const char *to_string;
          size_t to_string_size;)
PJRT_ARGS(device_get_description, struct pjrt_device *device; struct pjrt_description *device_description;)
PJRT_ARGS(device_is_addressable, struct pjrt_device *device; bool is_addressable;)
PJRT_ARGS(device_local_hardware_id, struct pjrt_device *device; int32_t local_hardware_id;)
PJRT_ARGS(device_addressable_memories, struct pjrt_device *device; struct pjrt_memory *const *memories;
          size_t num_memories;)
PJRT_ARGS(device_default_memory, struct pjrt_device *device; struct pjrt_memory *memory;)
PJRT_ARGS(device_memory_stats, struct pjrt_device *device; int64_t bytes_in_use, peak_bytes_in_use;
          bool peak_bytes_in_use_is_set; int64_t num_allocs; bool num_allocs_is_set; int64_t largest_alloc_size;
          bool largest_alloc_size_is_set; int64_t bytes_limit; bool bytes_limit_is_set; int64_t bytes_reserved;
          bool bytes_reserved_is_set; int64_t peak_bytes_reserved; bool peak_bytes_reserved_is_set;
          int64_t bytes_reservable_limit; bool bytes_reservable_limit_is_set; int64_t largest_free_block_bytes;
          bool largest_free_block_bytes_is_set; int64_t pool_bytes; bool pool_bytes_is_set; int64_t peak_pool_bytes;
          bool peak_pool_bytes_is_set; int64_t peak_allocated_bytes; bool peak_allocated_bytes_is_set;)
PJRT_ARGS(memory_id, struct pjrt_memory *memory; int32_t id;)
PJRT_ARGS(memory_kind, struct pjrt_memory *memory; const char *kind; size_t kind_size;)
PJRT_ARGS(memory_debug_string, struct pjrt_memory *memory; const char *debug_string; size_t debug_string_size;)
PJRT_ARGS(memory_to_string, struct pjrt_memory *memory; const char *to_string; size_t to_string_size;)
PJRT_ARGS(memory_addressable_by_devices, struct pjrt_memory *memory; struct pjrt_device *const *devices;
          size_t num_devices;)
PJRT_ARGS(executable_destroy, struct pjrt_executable *executable;)
PJRT_ARGS(executable_name, struct pjrt_executable *executable; const char *executable_name;
          size_t executable_name_size;)
PJRT_ARGS(executable_num_replicas, struct pjrt_executable *executable; size_t num_replicas;)
PJRT_ARGS(executable_num_partitions, struct pjrt_executable *executable; size_t num_partitions;)
PJRT_ARGS(executable_num_outputs, struct pjrt_executable *executable; size_t num_outputs;)
PJRT_ARGS(executable_size_of_generated_code_in_bytes, struct pjrt_executable *executable; int64_t size_in_bytes;)
PJRT_ARGS(executable_get_cost_analysis, struct pjrt_executable *executable; size_t num_properties;
          const struct pjrt_named_value *properties;)
PJRT_ARGS(executable_output_memory_kinds, struct pjrt_executable *executable; size_t num_outputs;
          const char *const *memory_kinds; const size_t *memory_kind_sizes;)
PJRT_ARGS(executable_optimized_program, struct pjrt_executable *executable; struct pjrt_program *program;)
PJRT_ARGS(executable_serialize, struct pjrt_executable *executable; const char *serialized_bytes;
          size_t serialized_bytes_size; void *serialized_executable;
          void (*serialized_executable_deleter)(void *holder);)
PJRT_ARGS(loaded_executable_destroy, struct pjrt_loaded *executable;)
PJRT_ARGS(loaded_executable_get_executable, struct pjrt_loaded *loaded_executable;
          struct pjrt_executable *executable;)
PJRT_ARGS(loaded_executable_addressable_devices, struct pjrt_loaded *executable;
          struct pjrt_device *const *addressable_devices; size_t num_addressable_devices;)
PJRT_ARGS(loaded_executable_delete, struct pjrt_loaded *executable;)
PJRT_ARGS(loaded_executable_is_deleted, struct pjrt_loaded *executable; bool is_deleted;)
PJRT_ARGS(loaded_executable_execute, struct pjrt_loaded *executable; const struct pjrt_execute_options *options;
          struct pjrt_buffer *const *const *argument_lists; size_t num_devices, num_args;
          struct pjrt_buffer **const *output_lists; struct pjrt_event **device_complete_events;
          struct pjrt_device *execute_device;)
PJRT_ARGS(executable_deserialize_and_load, struct pjrt_client *client; const char *serialized_executable;
          size_t serialized_executable_size; struct pjrt_loaded *loaded_executable;
          const char *overridden_serialized_compile_options; size_t overridden_serialized_compile_options_size;
          const struct pjrt_load_options *load_options;)
PJRT_ARGS(loaded_executable_fingerprint, struct pjrt_loaded *executable; const char *executable_fingerprint;
          size_t executable_fingerprint_size;)
PJRT_ARGS(buffer_destroy, struct pjrt_buffer *buffer;)
PJRT_ARGS(buffer_element_type, struct pjrt_buffer *buffer; uint32_t type;)
PJRT_ARGS(buffer_dimensions, struct pjrt_buffer *buffer; const int64_t *dims; size_t num_dims;)
PJRT_ARGS(buffer_unpadded_dimensions, struct pjrt_buffer *buffer; const int64_t *unpadded_dims; size_t num_dims;)
PJRT_ARGS(buffer_dynamic_dimension_indices, struct pjrt_buffer *buffer; const size_t *dynamic_dim_indices;
          size_t num_dynamic_dims;)
PJRT_ARGS(buffer_get_memory_layout, struct pjrt_buffer *buffer; struct pjrt_memory_layout layout;)
PJRT_ARGS(buffer_on_device_size_in_bytes, struct pjrt_buffer *buffer; size_t on_device_size_in_bytes;)
PJRT_ARGS(buffer_device, struct pjrt_buffer *buffer; struct pjrt_device *device;)
PJRT_ARGS(buffer_memory, struct pjrt_buffer *buffer; struct pjrt_memory *memory;)
PJRT_ARGS(buffer_delete, struct pjrt_buffer *buffer;)
PJRT_ARGS(buffer_is_deleted, struct pjrt_buffer *buffer; bool is_deleted;)
PJRT_ARGS(buffer_copy_to_device, struct pjrt_buffer *buffer; struct pjrt_device *dst_device;
          struct pjrt_buffer *dst_buffer;)
PJRT_ARGS(buffer_to_host_buffer, struct pjrt_buffer *src; const struct pjrt_memory_layout *host_layout; void *dst;
          size_t dst_size; struct pjrt_event *event;)
PJRT_ARGS(buffer_is_on_cpu, struct pjrt_buffer *buffer; bool is_on_cpu;)
PJRT_ARGS(buffer_ready_event, struct pjrt_buffer *buffer; struct pjrt_event *event;)
PJRT_ARGS(buffer_unsafe_pointer, struct pjrt_buffer *buffer; size_t buffer_pointer;)
PJRT_ARGS(buffer_increase_external_reference_count, struct pjrt_buffer *buffer;)
PJRT_ARGS(buffer_decrease_external_reference_count, struct pjrt_buffer *buffer;)
PJRT_ARGS(buffer_opaque_device_memory_data_pointer, struct pjrt_buffer *buffer; void *device_memory_ptr;)
PJRT_ARGS(copy_stream_destroy, struct pjrt_copy_stream *stream;)
PJRT_ARGS(copy_stream_add_chunk, struct pjrt_copy_stream *stream; struct pjrt_chunk *chunk;
          struct pjrt_event *transfer_complete;)
PJRT_ARGS(copy_stream_total_bytes, struct pjrt_copy_stream *stream; int64_t total_bytes;)
PJRT_ARGS(copy_stream_granule_size, struct pjrt_copy_stream *stream; int64_t granule_size_in_bytes;)
PJRT_ARGS(copy_stream_current_bytes, struct pjrt_copy_stream *stream; int64_t current_bytes;)
PJRT_ARGS(topology_create, const char *topology_name; size_t topology_name_size;
          const struct pjrt_named_value *create_options; size_t num_options; struct pjrt_topology *topology;)
PJRT_ARGS(topology_destroy, struct pjrt_topology *topology;)
PJRT_ARGS(topology_platform_name, struct pjrt_topology *topology; const char *platform_name;
          size_t platform_name_size;)
PJRT_ARGS(topology_platform_version, struct pjrt_topology *topology; const char *platform_version;
          size_t platform_version_size;)
PJRT_ARGS(topology_get_device_descriptions, struct pjrt_topology *topology;
          struct pjrt_description *const *descriptions; size_t num_descriptions;)
PJRT_ARGS(topology_serialize, struct pjrt_topology *topology; const char *serialized_bytes;
          size_t serialized_bytes_size; void *serialized_topology;
          void (*serialized_topology_deleter)(void *holder);)
PJRT_ARGS(topology_attributes, struct pjrt_topology *topology; const struct pjrt_named_value *attributes;
          size_t num_attributes;)
PJRT_ARGS(compile, struct pjrt_topology *topology; struct pjrt_program *program; const char *compile_options;
          size_t compile_options_size; struct pjrt_client *client; struct pjrt_executable *executable;)
PJRT_ARGS(executable_output_element_types, struct pjrt_executable *executable; const uint32_t *output_types;
          size_t num_output_types;)
PJRT_ARGS(executable_output_dimensions, struct pjrt_executable *executable; size_t num_outputs; const int64_t *dims;
          const size_t *dim_sizes;)
PJRT_ARGS(buffer_copy_to_memory, struct pjrt_buffer *buffer; struct pjrt_memory *dst_memory;
          struct pjrt_buffer *dst_buffer;)
PJRT_ARGS(client_create_view_of_device_buffer, struct pjrt_client *client; void *device_buffer_ptr;
          const int64_t *dims; size_t num_dims; uint32_t element_type; const struct pjrt_memory_layout *layout;
          struct pjrt_device *device; void (*on_delete_callback)(void *device_buffer, void *user_arg);
          void *on_delete_callback_arg; intptr_t stream; struct pjrt_buffer *buffer; struct pjrt_memory *memory;)
PJRT_ARGS(executable_fingerprint, struct pjrt_executable *executable; const char *executable_fingerprint;
          size_t executable_fingerprint_size;)
PJRT_ARGS(client_topology, struct pjrt_client *client; struct pjrt_topology *topology;)
PJRT_ARGS(executable_get_compiled_memory_stats, struct pjrt_executable *executable;
          int64_t generated_code_size_in_bytes, argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes;
          int64_t temp_size_in_bytes, host_generated_code_size_in_bytes, host_argument_size_in_bytes;
          int64_t host_output_size_in_bytes, host_alias_size_in_bytes, host_temp_size_in_bytes, peak_memory_in_bytes;
          int64_t total_size_in_bytes, total_allocation_bytes, indefinite_allocations, peak_unpadded_heap_bytes;)
PJRT_ARGS(memory_kind_id, struct pjrt_memory *memory; int32_t kind_id;)
PJRT_ARGS(execute_context_create, struct pjrt_context *context;)
PJRT_ARGS(execute_context_destroy, struct pjrt_context *context;)
PJRT_ARGS(buffer_copy_raw_to_host, struct pjrt_buffer *buffer; void *dst; int64_t offset, transfer_size;
          struct pjrt_event *event;)
PJRT_ARGS(transfer_manager_destroy, struct pjrt_transfers *transfer_manager;)
PJRT_ARGS(transfer_manager_transfer_data, struct pjrt_transfers *transfer_manager; int32_t buffer_index;
          const void *data; int64_t offset, transfer_size; bool is_last_transfer;
          struct pjrt_event *done_with_h2d_transfer;)
PJRT_ARGS(client_create_buffers_for_async_host_to_device, struct pjrt_client *client;
          const struct pjrt_shape_spec *shape_specs; size_t num_shape_specs;
          const struct pjrt_memory_layout *const *device_layouts; size_t num_device_layouts;
          struct pjrt_memory *memory; struct pjrt_transfers *transfer_manager;)
PJRT_ARGS(transfer_manager_retrieve_buffer, struct pjrt_transfers *transfer_manager; int32_t buffer_index;
          struct pjrt_buffer *buffer_out;)
PJRT_ARGS(transfer_manager_device, struct pjrt_transfers *transfer_manager; struct pjrt_device *device_out;)
PJRT_ARGS(transfer_manager_buffer_count, struct pjrt_transfers *transfer_manager; size_t buffer_count;)
PJRT_ARGS(transfer_manager_buffer_size, struct pjrt_transfers *transfer_manager; int32_t buffer_index;
          size_t buffer_size;)
PJRT_ARGS(transfer_manager_set_buffer_error, struct pjrt_transfers *transfer_manager; int32_t buffer_index;
          uint32_t error_code; const char *error_message; size_t error_message_size;)
PJRT_ARGS(transfer_manager_add_metadata, struct pjrt_transfers *transfer_manager;
          const struct pjrt_named_value *transfer_metadata; size_t num_metadata;)
PJRT_ARGS(client_dma_map, struct pjrt_client *client; void *data; size_t size;)
PJRT_ARGS(client_dma_unmap, struct pjrt_client *client; void *data;)
PJRT_ARGS(client_create_uninitialized_buffer, struct pjrt_client *client; const int64_t *shape_dims;
          size_t shape_num_dims; uint32_t shape_element_type; const struct pjrt_memory_layout *shape_layout;
          struct pjrt_device *device; struct pjrt_memory *memory; struct pjrt_buffer *buffer;)
PJRT_ARGS(client_update_global_process_info, struct pjrt_client *client; const void *process_infos;
          size_t num_process_infos;)
PJRT_ARGS(topology_deserialize, const char *serialized_topology; size_t serialized_topology_size;
          struct pjrt_topology *topology;)
PJRT_ARGS(client_create_alias_buffer, struct pjrt_client *client; struct pjrt_memory *memory;
          const int64_t *shape_dims; size_t shape_num_dims; uint32_t shape_element_type;
          const struct pjrt_memory_layout *shape_layout; struct pjrt_buffer *alias_buffer;
          struct pjrt_fulfill *fulfill_alias_buffer_cb;)
PJRT_ARGS(client_fulfill_alias_buffer, struct pjrt_client *client; struct pjrt_buffer *buffer; uint32_t status_code;
          const char *error_message; size_t error_message_size; struct pjrt_fulfill *fulfill_alias_buffer_cb;)
PJRT_ARGS(loaded_executable_get_device_assignment, struct pjrt_loaded *executable; const char *serialized_bytes;
          size_t serialized_bytes_size; void *serialized_device_assignment;
          void (*serialized_device_assignment_deleter)(void *holder);)
PJRT_ARGS(client_create_error_buffer, struct pjrt_client *client; uint32_t error_code; const char *error_message;
          size_t error_message_size; const int64_t *shape_dims; size_t shape_num_dims; uint32_t shape_element_type;
          const struct pjrt_memory_layout *shape_layout; struct pjrt_memory *memory; struct pjrt_buffer *buffer;
          const struct pjrt_named_value *payload; size_t num_payload;)
PJRT_ARGS(transfer_manager_transfer_literal, struct pjrt_transfers *transfer_manager; int32_t buffer_index;
          const void *data; const int64_t *shape_dims; size_t shape_num_dims; uint32_t shape_element_type;
          const struct pjrt_memory_layout *shape_layout; struct pjrt_event *done_with_h2d_transfer;)
PJRT_ARGS(buffer_copy_raw_to_host_future, struct pjrt_buffer *buffer; int64_t offset, transfer_size;
          struct pjrt_event *event; void *callback_data;
          void (*future_ready_callback)(struct pjrt_buffer_copy_raw_to_host_future_callback_args *);)
PJRT_ARGS(device_poison_execution, struct pjrt_device *device; int32_t launch_id; uint32_t error_code;
          const char *error_message; size_t error_message_size; bool poisoned;
          const struct pjrt_named_value *payload; size_t num_payload;)
PJRT_ARGS(device_create_async_tracking_event, struct pjrt_device *device; const char *description;
          size_t description_size; struct pjrt_tracking *event;)
PJRT_ARGS(async_tracking_event_destroy, struct pjrt_tracking *event;)
PJRT_ARGS(executable_get_compile_options, struct pjrt_executable *executable; const char *serialized_bytes;
          size_t serialized_bytes_size; void *serialized_compile_options;
          void (*serialized_compile_options_deleter)(void *holder);)
PJRT_ARGS(buffer_donate_with_control_dependency, struct pjrt_buffer *buffer; void *callback_data;
          void (*dependency_ready_callback)(struct pjrt_buffer_donate_with_control_dependency_callback_args *);
          struct pjrt_buffer *out_buffer;)
PJRT_ARGS(event_create, struct pjrt_event *event;)
PJRT_ARGS(event_set, struct pjrt_event *event; uint32_t error_code; const char *error_message;
          size_t error_message_size;)
PJRT_ARGS(device_get_attributes, struct pjrt_device *device; const struct pjrt_named_value *attributes;
          size_t num_attributes; void *device_attributes; void (*attributes_deleter)(void *device_attributes);)
PJRT_ARGS(client_load, struct pjrt_client *client; struct pjrt_executable *executable; const char *compile_options;
          size_t compile_options_size; struct pjrt_loaded *loaded_executable;)
PJRT_ARGS(loaded_executable_addressable_device_logical_ids, struct pjrt_loaded *executable;
          const struct pjrt_logical_ids *addressable_device_logical_ids; size_t num_addressable_device_logical_ids;)
PJRT_ARGS(buffer_bitcast, struct pjrt_buffer *buffer; uint32_t element_type; const int64_t *dims; size_t num_dims;
          const struct pjrt_memory_layout *device_layout; struct pjrt_buffer *out_buffer;)
PJRT_ARGS(error_for_each_payload, struct pjrt_error *error;
          void (*visitor)(const char *key, size_t key_size, const char *value, size_t value_size, void *user_arg);
          void *user_arg;)
PJRT_ARGS(topology_fingerprint, struct pjrt_topology *topology; size_t fingerprint;)
PJRT_ARGS(executable_parameter_memory_kinds, struct pjrt_executable *executable; size_t num_parameters;
          const char *const *memory_kinds; const size_t *memory_kind_sizes;)
PJRT_ARGS(device_clear_memory_stats, struct pjrt_device *device;)
PJRT_ARGS(topology_make_canonical_shape_for_memory_space, struct pjrt_topology *topology;
          int32_t memory_space_kind_id; const int64_t *dims; size_t num_dims; uint32_t element_type;
          const struct pjrt_memory_layout *layout; const char *serialized_shape; size_t serialized_shape_size;
          void (*serialized_shape_deleter)(void *holder);)
PJRT_ARGS(topology_get_memory_space_kind_ids, struct pjrt_topology *topology; const int *memory_space_kind_ids;
          size_t num_memory_space_kind_ids;)
PJRT_BARE_ARGS(buffer_copy_raw_to_host_future_callback, void *callback_data; uint32_t error_code;
          const char *error_message; size_t error_message_size; void *dst;)
PJRT_BARE_ARGS(buffer_donate_with_control_dependency_callback, void *callback_data; uint32_t error_code;
          const char *error_message; size_t error_message_size;)
/* All functions that give an error, in order, behind error_destroy and error_message. */
#define PJRT_FUNCTIONS(F) \
    F(error_get_code) F(plugin_initialize) F(plugin_attributes) F(event_destroy) F(event_is_ready) \
    F(event_error) F(event_await) F(event_on_ready) F(client_create) F(client_destroy) F(client_platform_name) \
    F(client_process_index) F(client_platform_version) F(client_devices) F(client_addressable_devices) \
    F(client_lookup_device) F(client_lookup_addressable_device) F(client_addressable_memories) F(client_compile) \
    F(client_default_device_assignment) F(client_buffer_from_host_buffer) F(device_description_id) \
    F(device_description_process_index) F(device_description_attributes) F(device_description_kind) \
    F(device_description_debug_string) F(device_description_to_string) F(device_get_description) \
    F(device_is_addressable) F(device_local_hardware_id) F(device_addressable_memories) F(device_default_memory) \
    F(device_memory_stats) F(memory_id) F(memory_kind) F(memory_debug_string) F(memory_to_string) \
    F(memory_addressable_by_devices) F(executable_destroy) F(executable_name) F(executable_num_replicas) \
    F(executable_num_partitions) F(executable_num_outputs) F(executable_size_of_generated_code_in_bytes) \
    F(executable_get_cost_analysis) F(executable_output_memory_kinds) F(executable_optimized_program) \
    F(executable_serialize) F(loaded_executable_destroy) F(loaded_executable_get_executable) \
    F(loaded_executable_addressable_devices) F(loaded_executable_delete) F(loaded_executable_is_deleted) \
    F(loaded_executable_execute) F(executable_deserialize_and_load) F(loaded_executable_fingerprint) \
    F(buffer_destroy) F(buffer_element_type) F(buffer_dimensions) F(buffer_unpadded_dimensions) \
    F(buffer_dynamic_dimension_indices) F(buffer_get_memory_layout) F(buffer_on_device_size_in_bytes) \
    F(buffer_device) F(buffer_memory) F(buffer_delete) F(buffer_is_deleted) F(buffer_copy_to_device) \
    F(buffer_to_host_buffer) F(buffer_is_on_cpu) F(buffer_ready_event) F(buffer_unsafe_pointer) \
    F(buffer_increase_external_reference_count) F(buffer_decrease_external_reference_count) \
    F(buffer_opaque_device_memory_data_pointer) F(copy_stream_destroy) F(copy_stream_add_chunk) \
    F(copy_stream_total_bytes) F(copy_stream_granule_size) F(copy_stream_current_bytes) F(topology_create) \
    F(topology_destroy) F(topology_platform_name) F(topology_platform_version) \
    F(topology_get_device_descriptions) F(topology_serialize) F(topology_attributes) F(compile) \
    F(executable_output_element_types) F(executable_output_dimensions) F(buffer_copy_to_memory) \
    F(client_create_view_of_device_buffer) F(executable_fingerprint) F(client_topology) \
    F(executable_get_compiled_memory_stats) F(memory_kind_id) F(execute_context_create) \
    F(execute_context_destroy) F(buffer_copy_raw_to_host) F(transfer_manager_destroy) \
    F(transfer_manager_transfer_data) F(client_create_buffers_for_async_host_to_device) \
    F(transfer_manager_retrieve_buffer) F(transfer_manager_device) F(transfer_manager_buffer_count) \
    F(transfer_manager_buffer_size) F(transfer_manager_set_buffer_error) F(transfer_manager_add_metadata) \
    F(client_dma_map) F(client_dma_unmap) F(client_create_uninitialized_buffer) \
    F(client_update_global_process_info) F(topology_deserialize) F(client_create_alias_buffer) \
    F(client_fulfill_alias_buffer) F(loaded_executable_get_device_assignment) F(client_create_error_buffer) \
    F(transfer_manager_transfer_literal) F(buffer_copy_raw_to_host_future) F(device_poison_execution) \
    F(device_create_async_tracking_event) F(async_tracking_event_destroy) F(executable_get_compile_options) \
    F(buffer_donate_with_control_dependency) F(event_create) F(event_set) F(device_get_attributes) \
    F(client_load) F(loaded_executable_addressable_device_logical_ids) F(buffer_bitcast) \
    F(error_for_each_payload) F(topology_fingerprint) F(executable_parameter_memory_kinds) \
    F(device_clear_memory_stats) F(topology_make_canonical_shape_for_memory_space) \
    F(topology_get_memory_space_kind_ids)

struct pjrt_api {
    PJRT_HEAD;
    struct pjrt_version version;
    void (*error_destroy)(struct pjrt_error_destroy_args *args);
    void (*error_message)(struct pjrt_error_message_args *args);
    PJRT_FUNCTIONS(PJRT_SLOT)
};

/* Objects that other parts of a process look into: the first field of errors and of memories points to such a table. */
struct pjrt_error_table {
    size_t struct_size;
    size_t instance_size; /* of what begins with the pointer to this table */
    struct pjrt_extension *extensions;
    void (*destroy)(struct pjrt_error *error);
    void (*message)(const struct pjrt_error *error, const char **message, size_t *message_size);
    uint32_t (*code)(const struct pjrt_error *error);
    void (*for_each_payload)(const struct pjrt_error *error,
                             void (*visitor)(const char *key, size_t key_size, const char *value, size_t value_size, void *user_arg),
                             void *user_arg);
};

struct pjrt_memory_table {
    PJRT_HEAD;
    size_t instance_size;
    void *(*user_data)(const struct pjrt_memory *memory, const void *key);
    void (*set_user_data)(struct pjrt_memory *memory, const void *key, void *data, void (*destroy)(void *data));
};

#endif
