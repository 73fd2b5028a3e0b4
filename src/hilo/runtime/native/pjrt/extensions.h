/* Extensions of the PJRT C API (api.h): layouts, descriptions of memories, XLA's foreign functions, shardings, versions of
 * the ABI. */
#ifndef HILO_PJRT_EXTENSIONS_H
#define HILO_PJRT_EXTENSIONS_H

#include "api.h"

PJRT_ARGS(layouts_memory_layout_destroy, struct pjrt_layout *layout;)
PJRT_ARGS(layouts_memory_layout_serialize, struct pjrt_layout *layout; const char *serialized_bytes;
          size_t serialized_bytes_size; void *serialized_layout; void (*serialized_layout_deleter)(void *holder);)
PJRT_ARGS(layouts_client_get_default_layout, struct pjrt_client *client; uint32_t type; const int64_t *dims;
          size_t num_dims; struct pjrt_layout *layout;)
PJRT_ARGS(layouts_buffer_memory_layout, struct pjrt_buffer *buffer; struct pjrt_layout *layout;)
PJRT_ARGS(layouts_topology_get_default_layout, struct pjrt_topology *topology_description; uint32_t type;
          const int64_t *dims; size_t num_dims; struct pjrt_layout *layout;)
PJRT_ARGS(layouts_executable_get_output_layouts, struct pjrt_executable *executable; size_t num_outputs;
          struct pjrt_layout *const *layouts;)
PJRT_ARGS(layouts_executable_get_parameter_layouts, struct pjrt_executable *executable; size_t num_parameters;
          struct pjrt_layout *const *layouts;)
struct pjrt_layouts_extension { /* layouts of buffers as values */
    struct pjrt_extension base;
    PJRT_SLOT(layouts_memory_layout_destroy)
    PJRT_SLOT(layouts_memory_layout_serialize)
    PJRT_SLOT(layouts_client_get_default_layout)
    PJRT_SLOT(layouts_buffer_memory_layout)
    PJRT_SLOT(layouts_topology_get_default_layout)
    PJRT_SLOT(layouts_executable_get_output_layouts)
    PJRT_SLOT(layouts_executable_get_parameter_layouts)
};

PJRT_ARGS(device_description_memory_descriptions, struct pjrt_description *device_description;
          const struct pjrt_memory_description *const *memory_descriptions;
          size_t num_memory_descriptions, default_memory_index;)
PJRT_ARGS(memory_description_kind, const struct pjrt_memory_description *memory_description; const char *kind;
          size_t kind_size; int32_t kind_id;)
struct pjrt_memory_descriptions_extension { /* memories of devices that are only described */
    struct pjrt_extension base;
    PJRT_SLOT(device_description_memory_descriptions)
    PJRT_SLOT(memory_description_kind)
};

struct pjrt_ffi_type_info {
    void (*deleter)(void *object);
    void *serialize;
    void *deserialize;
};

PJRT_ARGS(ffi_type_register, const char *type_name; size_t type_name_size; int64_t type_id;
          const struct pjrt_ffi_type_info *type_info;)
struct pjrt_ffi_user_data {
    int64_t type_id;
    void *data;
};

PJRT_ARGS(ffi_user_data_add, struct pjrt_context *context; struct pjrt_ffi_user_data user_data;)
PJRT_BARE_ARGS(ffi_register_handler, const char *target_name; size_t target_name_size; void *handler;
          const char *platform_name; size_t platform_name_size; uint32_t traits;)
struct pjrt_ffi_extension { /* XLA's foreign functions */
    struct pjrt_extension base;
    PJRT_SLOT(ffi_type_register)
    PJRT_SLOT(ffi_user_data_add)
    PJRT_SLOT(ffi_register_handler)
};

PJRT_ARGS(shardings_executable_parameter_shardings, struct pjrt_executable *executable; size_t num_parameters;
          const char *const *shardings; const size_t *sharding_sizes;)
PJRT_ARGS(shardings_executable_output_shardings, struct pjrt_executable *executable; size_t num_outputs;
          const char *const *shardings; const size_t *sharding_sizes;)
struct pjrt_shardings_extension { /* shardings of parameters and outputs */
    struct pjrt_extension base;
    PJRT_SLOT(shardings_executable_parameter_shardings)
    PJRT_SLOT(shardings_executable_output_shardings)
};

PJRT_BARE_ARGS(executable_abi_version_destroy, struct pjrt_abi *abi_version;)
PJRT_BARE_ARGS(executable_abi_version_from_proto, const char *serialized_proto; size_t serialized_proto_size;
          struct pjrt_abi *abi_version;)
PJRT_BARE_ARGS(executable_abi_version_platform_id, struct pjrt_abi *abi_version; size_t platform_id;)
PJRT_BARE_ARGS(executable_abi_version_to_proto, struct pjrt_abi *abi_version; const char *serialized_proto;
          size_t serialized_proto_size; void *serialized_proto_holder;
          void (*serialized_proto_deleter)(void *holder);)
PJRT_BARE_ARGS(runtime_abi_version_destroy, struct pjrt_abi *abi_version;)
PJRT_BARE_ARGS(runtime_abi_version_from_proto, const char *serialized_proto; size_t serialized_proto_size;
          struct pjrt_abi *abi_version;)
PJRT_BARE_ARGS(runtime_abi_version_is_compatible_with_executable, struct pjrt_abi *abi_version;
          const struct pjrt_abi *executable_abi_version;)
PJRT_BARE_ARGS(runtime_abi_version_is_compatible_with_runtime, struct pjrt_abi *abi_version;
          const struct pjrt_abi *other_abi_version;)
PJRT_BARE_ARGS(runtime_abi_version_platform_id, struct pjrt_abi *abi_version; size_t platform_id;)
PJRT_BARE_ARGS(runtime_abi_version_to_proto, struct pjrt_abi *abi_version; const char *serialized_proto;
          size_t serialized_proto_size; void *serialized_proto_holder;
          void (*serialized_proto_deleter)(void *holder);)
PJRT_BARE_ARGS(client_runtime_abi_version, struct pjrt_client *client; struct pjrt_abi *abi_version;)
PJRT_BARE_ARGS(executable_get_abi_version, struct pjrt_executable *executable; struct pjrt_abi *abi_version;)
struct pjrt_abi_version_extension { /* which executables fit to which runtimes */
    struct pjrt_extension base;
    PJRT_SLOT(client_runtime_abi_version)
    PJRT_SLOT(executable_get_abi_version)
    PJRT_SLOT(runtime_abi_version_destroy)
    PJRT_SLOT(runtime_abi_version_is_compatible_with_runtime)
    PJRT_SLOT(runtime_abi_version_is_compatible_with_executable)
    PJRT_SLOT(runtime_abi_version_to_proto)
    PJRT_SLOT(runtime_abi_version_platform_id)
    PJRT_SLOT(executable_abi_version_destroy)
    PJRT_SLOT(executable_abi_version_to_proto)
    PJRT_SLOT(executable_abi_version_platform_id)
    PJRT_SLOT(runtime_abi_version_from_proto)
    PJRT_SLOT(executable_abi_version_from_proto)
};

/* Ours: layouts.c, ffi.c, abi.c, extensions.c. */
extern struct pjrt_layouts_extension pjrt_layouts_extension;
extern struct pjrt_ffi_extension pjrt_ffi_extension;
extern struct pjrt_abi_version_extension pjrt_abi_version_extension;

#endif
