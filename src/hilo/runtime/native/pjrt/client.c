/* The plugin and its clients: what a client is called, what it has, what is asked of it before programs come.
 *
 * A client is "hilo", or "cpu" where it stands in for XLA's own: then its devices and memories are called as XLA's are.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "pjrt.h"

struct pjrt_error *pjrt_plugin_initialize(struct pjrt_plugin_initialize_args *args) {
    (void)args;
    return NULL;
}

/* What callers may know before there is a client. `xla_version` is the age of XLA's runtime interface that we speak;
 * the StableHLO versions are those of hilo.formats.bytecode, by which exporters choose the version of artifacts. */

static const int64_t stablehlo_current[] = {1, 20, 0}, stablehlo_minimum[] = {0, 9, 0};

#define NAMED(text) .struct_size = sizeof(struct pjrt_named_value), .name = text, .name_size = sizeof text - 1

static const struct pjrt_named_value attributes[] = {
    {NAMED("xla_version"), .type = PJRT_INTEGER, .value.integer = 2, .value_size = 1},
    {NAMED("stablehlo_current_version"), .type = PJRT_INTEGERS, .value.integers = stablehlo_current, .value_size = 3},
    {NAMED("stablehlo_minimum_version"), .type = PJRT_INTEGERS, .value.integers = stablehlo_minimum, .value_size = 3},
    {NAMED("supports_cross_host_transfers"), .type = PJRT_BOOLEAN, .value.boolean = false, .value_size = 1},
};

struct pjrt_error *pjrt_plugin_attributes(struct pjrt_plugin_attributes_args *args) {
    args->attributes = attributes;
    args->num_attributes = sizeof attributes / sizeof *attributes;
    return NULL;
}

/* Options of a client. */

static bool is_named(const struct pjrt_named_value *value, const char *name) {
    return value->name_size == strlen(name) && memcmp(value->name, name, value->name_size) == 0;
}

static struct pjrt_error *read_option(const struct pjrt_named_value *value, char *platform, size_t size) {
    if (is_named(value, "platform_name")) {
        if (value->type != PJRT_STRING || value->value_size >= size)
            return pjrt_fail(PJRT_INVALID_ARGUMENT, "option platform_name is the text \"hilo\" or \"cpu\"");
        memcpy(platform, value->value.string, value->value_size);
        platform[value->value_size] = 0;
        return NULL;
    }
    /* What JAX says when jax.distributed is initialized. */
    bool node = is_named(value, "node_id"), nodes = is_named(value, "num_nodes");
    if (node || nodes) {
        if (value->type == PJRT_INTEGER && value->value.integer == nodes) return NULL;
        return pjrt_fail(PJRT_UNIMPLEMENTED, "hilo runs in one process: num_nodes is 1, node_id is 0");
    }
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "hilo knows no option %.*s of a client; there is: platform_name (hilo, cpu)",
                     (int)value->name_size, value->name);
}

const char *pjrt_default_platform(void) {
    const char *value = getenv("HILO_JAX_AS_CPU");
    return value && *value && strcmp(value, "0") != 0 ? "cpu" : "hilo";
}

/* What outlives its client (buffers, memory behind arrays of the host, executables) still points to it. Counting that would
 * cost every call, so that structs of clients are never freed: the next client of the platform gets that of one that was
 * destroyed and of whose memory nothing is left. */

static struct pjrt_client *destroyed;
static pthread_mutex_t destroyed_lock = PTHREAD_MUTEX_INITIALIZER;

static struct pjrt_client *take_destroyed(const struct pjrt_topology *topology) {
    pthread_mutex_lock(&destroyed_lock);
    struct pjrt_client **place = &destroyed;
    while (*place && ((*place)->topology != topology || atomic_load(&(*place)->counts.bytes))) place = &(*place)->next;
    struct pjrt_client *client = *place;
    if (client) *place = client->next;
    pthread_mutex_unlock(&destroyed_lock);
    return client;
}

static struct pjrt_client *make_client(struct pjrt_topology *topology) {
    struct pjrt_client *client = calloc(1, sizeof *client);
    if (!client) return NULL;
    client->platform = topology->platform;
    client->topology = topology;
    client->device = (struct pjrt_device){client, &topology->device};
    client->devices[0] = &client->device;
    for (int i = 0; i < PJRT_MEMORIES; i++) {
        client->memories[i] = (struct pjrt_memory){&pjrt_memory_table, client, i, &pjrt_memory_kinds[i], NULL};
        client->memory_list[i] = &client->memories[i];
    }
    pthread_mutex_init(&client->lock, NULL);
    return client;
}

struct pjrt_error *pjrt_client_create(struct pjrt_client_create_args *args) {
    char platform[16];
    strcpy(platform, pjrt_default_platform());
    for (size_t i = 0; i < args->num_options; i++) {
        struct pjrt_error *error = read_option(&args->create_options[i], platform, sizeof platform);
        if (error) return error;
    }
    struct pjrt_topology *topology = pjrt_topology_of(platform);
    if (!topology)
        return pjrt_fail(PJRT_NOT_FOUND, "hilo has no platform \"%s\"; there are: hilo, cpu", platform);
    args->client = take_destroyed(topology);
    if (!args->client) args->client = make_client(topology);
    if (!args->client) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a client");
    return pjrt_device_clear_memory_stats(&(struct pjrt_device_clear_memory_stats_args){.device = &args->client->device});
}

struct pjrt_error *pjrt_client_destroy(struct pjrt_client_destroy_args *args) {
    struct pjrt_client *client = args->client;
    if (!client) return NULL;
    pjrt_queue_close(client);
    for (int i = 0; i < PJRT_MEMORIES; i++) pjrt_user_data_clear(&client->memories[i].user_data);
    pthread_mutex_lock(&destroyed_lock);
    client->next = destroyed;
    destroyed = client;
    pthread_mutex_unlock(&destroyed_lock);
    return NULL;
}

/* What a client is and has. */

struct pjrt_error *pjrt_client_platform_name(struct pjrt_client_platform_name_args *args) {
    args->platform_name = args->client->platform;
    args->platform_name_size = strlen(args->client->platform);
    return NULL;
}

struct pjrt_error *pjrt_client_platform_version(struct pjrt_client_platform_version_args *args) {
    args->platform_version = pjrt_platform_version();
    args->platform_version_size = strlen(args->platform_version);
    return NULL;
}

struct pjrt_error *pjrt_client_process_index(struct pjrt_client_process_index_args *args) {
    args->process_index = 0;
    return NULL;
}

struct pjrt_error *pjrt_client_devices(struct pjrt_client_devices_args *args) {
    args->devices = args->client->devices;
    args->num_devices = 1;
    return NULL;
}

struct pjrt_error *pjrt_client_addressable_devices(struct pjrt_client_addressable_devices_args *args) {
    args->addressable_devices = args->client->devices;
    args->num_addressable_devices = 1;
    return NULL;
}

struct pjrt_error *pjrt_client_lookup_device(struct pjrt_client_lookup_device_args *args) {
    args->device = args->id == 0 ? &args->client->device : NULL;
    return args->device ? NULL : pjrt_fail(PJRT_NOT_FOUND, "there is no device %d; there is: 0", args->id);
}

struct pjrt_error *pjrt_client_lookup_addressable_device(struct pjrt_client_lookup_addressable_device_args *args) {
    int id = args->local_hardware_id;
    args->addressable_device = id == 0 ? &args->client->device : NULL;
    return args->addressable_device ? NULL : pjrt_fail(PJRT_NOT_FOUND, "there is no device %d here; there is: 0", id);
}

struct pjrt_error *pjrt_client_addressable_memories(struct pjrt_client_addressable_memories_args *args) {
    args->addressable_memories = args->client->memory_list;
    args->num_addressable_memories = PJRT_MEMORIES;
    return NULL;
}

struct pjrt_error *pjrt_client_default_device_assignment(struct pjrt_client_default_device_assignment_args *args) {
    if (args->num_replicas != 1 || args->num_partitions != 1)
        return pjrt_fail(PJRT_UNIMPLEMENTED, "hilo has one device: %d replicas of %d partitions cannot be placed",
                         args->num_replicas, args->num_partitions);
    if (args->default_assignment_size < 1)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no room for the assignment of one device");
    args->default_assignment[0] = 0;
    return NULL;
}

struct pjrt_error *pjrt_client_topology(struct pjrt_client_topology_args *args) {
    args->topology = args->client->topology;
    return NULL;
}

struct pjrt_error *pjrt_client_update_global_process_info(struct pjrt_client_update_global_process_info_args *args) {
    (void)args; /* of other processes, none of which we talk with */
    return NULL;
}

struct pjrt_memory *pjrt_memory_of(struct pjrt_client *client, struct pjrt_device *device, struct pjrt_memory *memory) {
    (void)device; /* there is one */
    return memory ? memory : &client->memories[PJRT_DEVICE_MEMORY];
}
