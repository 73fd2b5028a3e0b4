/* Devices and memories of a client. A client has one device, the cores of the machine; its three memories are all the
 * host's, under the names by which programs place values. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../memory.h"
#include "pjrt.h"

/* Devices. */

struct pjrt_error *pjrt_device_get_description(struct pjrt_device_get_description_args *args) {
    args->device_description = args->device->description;
    return NULL;
}

struct pjrt_error *pjrt_device_is_addressable(struct pjrt_device_is_addressable_args *args) {
    args->is_addressable = true;
    return NULL;
}

struct pjrt_error *pjrt_device_local_hardware_id(struct pjrt_device_local_hardware_id_args *args) {
    args->local_hardware_id = args->device->description->id;
    return NULL;
}

struct pjrt_error *pjrt_device_addressable_memories(struct pjrt_device_addressable_memories_args *args) {
    args->memories = args->device->client->memory_list;
    args->num_memories = PJRT_MEMORIES;
    return NULL;
}

struct pjrt_error *pjrt_device_default_memory(struct pjrt_device_default_memory_args *args) {
    args->memory = &args->device->client->memories[PJRT_DEVICE_MEMORY];
    return NULL;
}

static void nothing_to_free(void *attributes) { (void)attributes; }

struct pjrt_error *pjrt_device_get_attributes(struct pjrt_device_get_attributes_args *args) {
    args->attributes = NULL;
    args->num_attributes = 0;
    args->device_attributes = NULL;
    args->attributes_deleter = nothing_to_free;
    return NULL;
}

#define TELL(field, number) \
    if (PJRT_KNOWS(args, field##_is_set)) args->field = (number), args->field##_is_set = true
#define LEAVE_OUT(field) \
    if (PJRT_KNOWS(args, field##_is_set)) args->field = 0, args->field##_is_set = false

struct pjrt_error *pjrt_device_memory_stats(struct pjrt_device_memory_stats_args *args) {
    struct pjrt_counts *counts = &args->device->client->counts;
    struct hilo_memory_stats pool = hilo_memory_stats();
    args->bytes_in_use = atomic_load(&counts->bytes);
    TELL(peak_bytes_in_use, atomic_load(&counts->peak_bytes));
    TELL(num_allocs, atomic_load(&counts->allocations));
    TELL(largest_alloc_size, atomic_load(&counts->largest));
    TELL(bytes_limit, (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    TELL(pool_bytes, (int64_t)(pool.in_use + pool.kept));
    TELL(bytes_reserved, 0);
    TELL(peak_bytes_reserved, 0);
    LEAVE_OUT(bytes_reservable_limit);
    LEAVE_OUT(largest_free_block_bytes);
    LEAVE_OUT(peak_pool_bytes);
    LEAVE_OUT(peak_allocated_bytes);
    return NULL;
}

struct pjrt_error *pjrt_device_clear_memory_stats(struct pjrt_device_clear_memory_stats_args *args) {
    struct pjrt_counts *counts = &args->device->client->counts;
    atomic_store(&counts->peak_bytes, atomic_load(&counts->bytes));
    atomic_store(&counts->allocations, 0);
    atomic_store(&counts->largest, 0);
    return NULL;
}

struct pjrt_error *pjrt_device_poison_execution(struct pjrt_device_poison_execution_args *args) {
    args->poisoned = false;
    return pjrt_fail(PJRT_UNIMPLEMENTED, "hilo's executions cannot be made to fail from outside");
}

/* An event that only names what a host is about to do; nobody asks us for it. */
struct pjrt_tracking {
    char description[1];
};

struct pjrt_error *pjrt_device_create_async_tracking_event(struct pjrt_device_create_async_tracking_event_args *args) {
    struct pjrt_tracking *event = malloc(sizeof *event + args->description_size);
    if (!event) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for an event");
    if (args->description_size) memcpy(event->description, args->description, args->description_size);
    event->description[args->description_size] = 0;
    args->event = event;
    return NULL;
}

struct pjrt_error *pjrt_async_tracking_event_destroy(struct pjrt_async_tracking_event_destroy_args *args) {
    free(args->event);
    return NULL;
}

/* Memories. */

const struct pjrt_memory_description pjrt_memory_kinds[PJRT_MEMORIES] = {
    [PJRT_DEVICE_MEMORY] = {"device", PJRT_DEVICE_MEMORY},
    [PJRT_PINNED_MEMORY] = {"pinned_host", PJRT_PINNED_MEMORY},
    [PJRT_UNPINNED_MEMORY] = {"unpinned_host", PJRT_UNPINNED_MEMORY},
};

/* The names that XLA gives them: [memory][short or long]; of a client "hilo" the first is its own. */
#define LONG_NAME(kind, id, platform) kind "(id=" #id ", process_index=0, client=" platform ")"
static const char *const names[2][PJRT_MEMORIES][2] = {
    {{"HILO_DEVICE_0", LONG_NAME("HiloDeviceMemory", 0, "hilo")},
     {"PINNED_HOST_1", LONG_NAME("PinnedHostMemory", 1, "hilo")},
     {"UNPINNED_HOST_2", LONG_NAME("UnpinnedHostMemorySpace", 2, "hilo")}},
    {{"CPU_DEVICE_0", LONG_NAME("CpuDeviceMemory", 0, "cpu")},
     {"PINNED_HOST_1", LONG_NAME("PinnedHostMemory", 1, "cpu")},
     {"UNPINNED_HOST_2", LONG_NAME("UnpinnedHostMemorySpace", 2, "cpu")}},
};

static const char *name_of(const struct pjrt_memory *memory, int is_long) {
    return names[strcmp(memory->client->platform, "cpu") == 0][memory->id][is_long];
}

struct pjrt_error *pjrt_memory_id(struct pjrt_memory_id_args *args) {
    args->id = args->memory->id;
    return NULL;
}

struct pjrt_error *pjrt_memory_kind(struct pjrt_memory_kind_args *args) {
    args->kind = args->memory->description->kind;
    args->kind_size = strlen(args->kind);
    return NULL;
}

struct pjrt_error *pjrt_memory_kind_id(struct pjrt_memory_kind_id_args *args) {
    args->kind_id = args->memory->description->kind_id;
    return NULL;
}

struct pjrt_error *pjrt_memory_debug_string(struct pjrt_memory_debug_string_args *args) {
    args->debug_string = name_of(args->memory, 1);
    args->debug_string_size = strlen(args->debug_string);
    return NULL;
}

struct pjrt_error *pjrt_memory_to_string(struct pjrt_memory_to_string_args *args) {
    args->to_string = name_of(args->memory, 0);
    args->to_string_size = strlen(args->to_string);
    return NULL;
}

struct pjrt_error *pjrt_memory_addressable_by_devices(struct pjrt_memory_addressable_by_devices_args *args) {
    args->devices = args->memory->client->devices;
    args->num_devices = 1;
    return NULL;
}

static void *get_user_data(const struct pjrt_memory *memory, const void *key) {
    return pjrt_user_data_get(&memory->user_data, key);
}

static void set_user_data(struct pjrt_memory *memory, const void *key, void *data, void (*destroy)(void *data)) {
    pjrt_user_data_set(&memory->user_data, key, data, destroy); /* without memory it is not kept: nobody can be told */
}

const struct pjrt_memory_table pjrt_memory_table = {
    .struct_size = sizeof pjrt_memory_table,
    .instance_size = sizeof(struct pjrt_memory_table *),
    .user_data = get_user_data,
    .set_user_data = set_user_data,
};
