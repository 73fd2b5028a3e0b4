/* Functions that the table has and nobody wrote yet: weak, so that a definition elsewhere takes their place. */
#include "pjrt.h"

#define MISSING(name) \
    __attribute__((weak)) struct pjrt_error *pjrt_##name(struct pjrt_##name##_args *args) { \
        (void)args; \
        return pjrt_fail(PJRT_UNIMPLEMENTED, #name " is not implemented yet"); \
    }

MISSING(plugin_initialize) MISSING(plugin_attributes) MISSING(client_create) MISSING(client_destroy)
MISSING(client_platform_name) MISSING(client_process_index) MISSING(client_platform_version) MISSING(client_devices)
MISSING(client_addressable_devices) MISSING(client_lookup_device) MISSING(client_lookup_addressable_device)
MISSING(client_addressable_memories) MISSING(client_compile) MISSING(client_default_device_assignment)
MISSING(client_buffer_from_host_buffer) MISSING(device_description_id) MISSING(device_description_process_index)
MISSING(device_description_attributes) MISSING(device_description_kind) MISSING(device_description_debug_string)
MISSING(device_description_to_string) MISSING(device_get_description) MISSING(device_is_addressable)
MISSING(device_local_hardware_id) MISSING(device_addressable_memories) MISSING(device_default_memory)
MISSING(device_memory_stats) MISSING(memory_id) MISSING(memory_kind) MISSING(memory_debug_string)
MISSING(memory_to_string) MISSING(memory_addressable_by_devices) MISSING(executable_destroy) MISSING(executable_name)
MISSING(executable_num_replicas) MISSING(executable_num_partitions) MISSING(executable_num_outputs)
MISSING(executable_size_of_generated_code_in_bytes) MISSING(executable_get_cost_analysis)
MISSING(executable_output_memory_kinds) MISSING(executable_optimized_program) MISSING(executable_serialize)
MISSING(loaded_executable_destroy) MISSING(loaded_executable_get_executable)
MISSING(loaded_executable_addressable_devices) MISSING(loaded_executable_delete) MISSING(loaded_executable_is_deleted)
MISSING(loaded_executable_execute) MISSING(executable_deserialize_and_load) MISSING(loaded_executable_fingerprint)
MISSING(buffer_destroy) MISSING(buffer_element_type) MISSING(buffer_dimensions) MISSING(buffer_unpadded_dimensions)
MISSING(buffer_dynamic_dimension_indices) MISSING(buffer_get_memory_layout) MISSING(buffer_on_device_size_in_bytes)
MISSING(buffer_device) MISSING(buffer_memory) MISSING(buffer_delete) MISSING(buffer_is_deleted)
MISSING(buffer_copy_to_device) MISSING(buffer_to_host_buffer) MISSING(buffer_is_on_cpu) MISSING(buffer_ready_event)
MISSING(buffer_unsafe_pointer) MISSING(buffer_increase_external_reference_count)
MISSING(buffer_decrease_external_reference_count) MISSING(buffer_opaque_device_memory_data_pointer)
MISSING(copy_stream_destroy) MISSING(copy_stream_add_chunk) MISSING(copy_stream_total_bytes)
MISSING(copy_stream_granule_size) MISSING(copy_stream_current_bytes) MISSING(topology_create) MISSING(topology_destroy)
MISSING(topology_platform_name) MISSING(topology_platform_version) MISSING(topology_get_device_descriptions)
MISSING(topology_serialize) MISSING(topology_attributes) MISSING(compile) MISSING(executable_output_element_types)
MISSING(executable_output_dimensions) MISSING(buffer_copy_to_memory) MISSING(client_create_view_of_device_buffer)
MISSING(executable_fingerprint) MISSING(client_topology) MISSING(executable_get_compiled_memory_stats)
MISSING(memory_kind_id) MISSING(execute_context_create) MISSING(execute_context_destroy)
MISSING(buffer_copy_raw_to_host) MISSING(transfer_manager_destroy) MISSING(transfer_manager_transfer_data)
MISSING(client_create_buffers_for_async_host_to_device) MISSING(transfer_manager_retrieve_buffer)
MISSING(transfer_manager_device) MISSING(transfer_manager_buffer_count) MISSING(transfer_manager_buffer_size)
MISSING(transfer_manager_set_buffer_error) MISSING(transfer_manager_add_metadata) MISSING(client_dma_map)
MISSING(client_dma_unmap) MISSING(client_create_uninitialized_buffer) MISSING(client_update_global_process_info)
MISSING(topology_deserialize) MISSING(client_create_alias_buffer) MISSING(client_fulfill_alias_buffer)
MISSING(loaded_executable_get_device_assignment) MISSING(client_create_error_buffer)
MISSING(transfer_manager_transfer_literal) MISSING(buffer_copy_raw_to_host_future) MISSING(device_poison_execution)
MISSING(device_create_async_tracking_event) MISSING(async_tracking_event_destroy)
MISSING(executable_get_compile_options) MISSING(buffer_donate_with_control_dependency) MISSING(device_get_attributes)
MISSING(client_load) MISSING(loaded_executable_addressable_device_logical_ids) MISSING(buffer_bitcast)
MISSING(topology_fingerprint) MISSING(executable_parameter_memory_kinds) MISSING(device_clear_memory_stats)
MISSING(topology_make_canonical_shape_for_memory_space) MISSING(topology_get_memory_space_kind_ids)

#define WEAK __attribute__((weak))

WEAK const struct pjrt_memory_description pjrt_memory_kinds[PJRT_MEMORIES] = {
    {"device", 0}, {"pinned_host", 1}, {"unpinned_host", 2}};
WEAK struct pjrt_extension *pjrt_extensions(void) { return NULL; }
WEAK bool pjrt_queue_help(void) { return false; }
WEAK bool pjrt_queue_inside(void) { return false; }
WEAK struct pjrt_memory *pjrt_memory_of(struct pjrt_client *client, struct pjrt_device *device,
                                        struct pjrt_memory *memory) {
    (void)device;
    return memory ? memory : &client->memories[PJRT_DEVICE_MEMORY];
}
WEAK int pjrt_queue_add(struct pjrt_client *client, void (*run)(void *argument), void *argument) {
    (void)client, (void)run, (void)argument;
    return -1;
}
WEAK void pjrt_queue_close(struct pjrt_client *client) { (void)client; }
WEAK struct pjrt_executable *pjrt_executable_new(struct pjrt_client *client) { (void)client; return NULL; }
WEAK bool pjrt_executable_complete(struct pjrt_executable *executable) { (void)executable; return false; }
WEAK void pjrt_executable_release(struct pjrt_executable *executable) { (void)executable; }
