/* Topologies: what a client's machine looks like, without the machine. There are two, one for each platform; they are
 * part of the library and never freed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt.h"

#ifndef HILO_VERSION
#define HILO_VERSION "of unknown version"
#endif

static struct pjrt_topology topologies[] = {
    {.platform = "hilo", .descriptions = {&topologies[0].device}},
    {.platform = "cpu", .descriptions = {&topologies[1].device}},
};

struct pjrt_topology *pjrt_topology_of(const char *platform) {
    for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++)
        if (strcmp(topologies[i].platform, platform) == 0) return &topologies[i];
    return NULL;
}

/* It is in the keys of persistent caches. */
const char *pjrt_platform_version(void) { return "hilo " HILO_VERSION; }

/* Descriptions of devices. */

static bool is_cpu(const struct pjrt_description *description) { return description == &topologies[1].device; }

struct pjrt_error *pjrt_device_description_id(struct pjrt_device_description_id_args *args) {
    args->id = args->device_description->id;
    return NULL;
}

struct pjrt_error *pjrt_device_description_process_index(struct pjrt_device_description_process_index_args *args) {
    args->process_index = 0;
    return NULL;
}

struct pjrt_error *pjrt_device_description_attributes(struct pjrt_device_description_attributes_args *args) {
    args->attributes = NULL;
    args->num_attributes = 0;
    return NULL;
}

struct pjrt_error *pjrt_device_description_kind(struct pjrt_device_description_kind_args *args) {
    args->device_kind = "cpu";
    args->device_kind_size = 3;
    return NULL;
}

struct pjrt_error *pjrt_device_description_debug_string(struct pjrt_device_description_debug_string_args *args) {
    args->debug_string = is_cpu(args->device_description) ? "cpu:0" : "hilo:0";
    args->debug_string_size = strlen(args->debug_string);
    return NULL;
}

struct pjrt_error *pjrt_device_description_to_string(struct pjrt_device_description_to_string_args *args) {
    args->to_string = is_cpu(args->device_description) ? "CpuDevice(id=0)" : "HiloDevice(id=0)";
    args->to_string_size = strlen(args->to_string);
    return NULL;
}

/* Topologies. */

struct pjrt_error *pjrt_topology_create(struct pjrt_topology_create_args *args) {
    char name[16] = ""; /* what is longer than any of ours stays "" */
    if (!args->topology_name_size) strcpy(name, pjrt_default_platform());
    else if (args->topology_name_size < sizeof name) memcpy(name, args->topology_name, args->topology_name_size);
    if (args->num_options)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "hilo's topologies have no options; there is %.*s",
                         (int)args->create_options[0].name_size, args->create_options[0].name);
    args->topology = pjrt_topology_of(name);
    if (args->topology) return NULL;
    return pjrt_fail(PJRT_NOT_FOUND, "hilo has no topology \"%.*s\"; there are: hilo, cpu",
                     (int)args->topology_name_size, args->topology_name);
}

struct pjrt_error *pjrt_topology_destroy(struct pjrt_topology_destroy_args *args) {
    (void)args;
    return NULL;
}

struct pjrt_error *pjrt_topology_platform_name(struct pjrt_topology_platform_name_args *args) {
    args->platform_name = args->topology->platform;
    args->platform_name_size = strlen(args->platform_name);
    return NULL;
}

/* Not a client's: JAX compiles for a topology by a client of the same version if there is one, on a thread which gets
 * Python's lock never, as the one that has it waits. */
struct pjrt_error *pjrt_topology_platform_version(struct pjrt_topology_platform_version_args *args) {
    args->platform_version = "hilo " HILO_VERSION " (topology)";
    args->platform_version_size = strlen(args->platform_version);
    return NULL;
}

struct pjrt_error *pjrt_topology_get_device_descriptions(struct pjrt_topology_get_device_descriptions_args *args) {
    args->descriptions = args->topology->descriptions;
    args->num_descriptions = 1;
    return NULL;
}

struct pjrt_error *pjrt_topology_attributes(struct pjrt_topology_attributes_args *args) {
    args->attributes = NULL;
    args->num_attributes = 0;
    return NULL;
}

/* FNV-1a of the text that a topology is serialized to. */
struct pjrt_error *pjrt_topology_fingerprint(struct pjrt_topology_fingerprint_args *args) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = args->topology->platform; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    args->fingerprint = hash;
    return NULL;
}

/* The text of a topology: "hilo topology 1 PLATFORM". */
static const char prefix[] = "hilo topology 1 ";

struct pjrt_error *pjrt_topology_serialize(struct pjrt_topology_serialize_args *args) {
    char *text = NULL;
    int size = asprintf(&text, "%s%s", prefix, args->topology->platform);
    if (size < 0) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for the text of a topology");
    args->serialized_bytes = text;
    args->serialized_bytes_size = (size_t)size;
    args->serialized_topology = text;
    args->serialized_topology_deleter = free;
    return NULL;
}

struct pjrt_error *pjrt_topology_deserialize(struct pjrt_topology_deserialize_args *args) {
    size_t size = args->serialized_topology_size, before = sizeof prefix - 1;
    char platform[16] = "";
    if (size > before && size < before + sizeof platform && memcmp(args->serialized_topology, prefix, before) == 0)
        memcpy(platform, args->serialized_topology + before, size - before);
    args->topology = pjrt_topology_of(platform);
    if (args->topology) return NULL;
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "these %zu bytes are no topology that hilo %s has written", size, HILO_VERSION);
}

struct pjrt_error *pjrt_topology_get_memory_space_kind_ids(struct pjrt_topology_get_memory_space_kind_ids_args *args) {
    static const int ids[PJRT_MEMORIES] = {PJRT_DEVICE_MEMORY, PJRT_PINNED_MEMORY, PJRT_UNPINNED_MEMORY};
    args->memory_space_kind_ids = ids;
    args->num_memory_space_kind_ids = PJRT_MEMORIES;
    return NULL;
}

/* Shapes as the message ShapeProto of xla_data.proto: element_type 2, dimensions 3, layout 5 { minor_to_major 1 }. */

/* XLA's numbers of element types, by ours; 0: it has none. */
static const unsigned char xla_types[PJRT_TYPES] = {
    [PJRT_PRED] = 1, [PJRT_S8] = 2, [PJRT_S16] = 3, [PJRT_S32] = 4, [PJRT_S64] = 5, [PJRT_U8] = 6, [PJRT_U16] = 7,
    [PJRT_U32] = 8, [PJRT_U64] = 9, [PJRT_F16] = 10, [PJRT_F32] = 11, [PJRT_F64] = 12, [PJRT_C64] = 15, [PJRT_BF16] = 16,
    [PJRT_TOKEN] = 17, [PJRT_C128] = 18, [PJRT_F8E5M2] = 19, [PJRT_F8E4M3FN] = 20, [PJRT_S4] = 21, [PJRT_U4] = 22,
    [PJRT_F8E4M3B11FNUZ] = 23, [PJRT_F8E5M2FNUZ] = 24, [PJRT_F8E4M3FNUZ] = 25, [PJRT_S2] = 26, [PJRT_U2] = 27,
    [PJRT_F8E4M3] = 28, [PJRT_F8E3M4] = 29, [PJRT_S1] = 30, [PJRT_U1] = 31, [PJRT_F4E2M1FN] = 32, [PJRT_F8E8M0FNU] = 33,
};

/* A field of packed numbers; its contents have at most ten bytes a number. */
static char *put_numbers(char *at, int field, const int64_t *numbers, int count) {
    char packed[10 * PJRT_MAX_RANK], *end = packed;
    for (int i = 0; i < count; i++) end = pjrt_put_varint(end, (uint64_t)numbers[i]);
    if (end == packed) return at;
    at = pjrt_put_varint(at, (uint64_t)field << 3 | 2);
    at = pjrt_put_varint(at, (uint64_t)(end - packed));
    memcpy(at, packed, (size_t)(end - packed));
    return at + (end - packed);
}



struct pjrt_error *pjrt_topology_make_canonical_shape_for_memory_space(
    struct pjrt_topology_make_canonical_shape_for_memory_space_args *args) {
    if (args->memory_space_kind_id < 0 || args->memory_space_kind_id >= PJRT_MEMORIES)
        return pjrt_fail(PJRT_NOT_FOUND, "there is no kind %d of memory", args->memory_space_kind_id);
    struct pjrt_error *error = NULL;
    struct pjrt_shape *shape = pjrt_shape_with_layout(args->element_type, args->dims, args->num_dims, args->layout, &error);
    if (!shape) return error;
    char *bytes = malloc(64 + 20 * PJRT_MAX_RANK), layout[16 + 10 * PJRT_MAX_RANK];
    if (!bytes || !xla_types[shape->type]) {
        error = bytes ? pjrt_fail(PJRT_UNIMPLEMENTED, "XLA has no number for %s", pjrt_type_name(shape->type))
                      : pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a shape");
        free(bytes);
        pjrt_shape_release(shape);
        return error;
    }
    char *at = pjrt_put_varint(bytes, 2 << 3);
    at = pjrt_put_varint(at, xla_types[shape->type]);
    at = put_numbers(at, 3, shape->dims, shape->rank);
    size_t size = (size_t)(put_numbers(layout, 1, shape->minor_to_major, shape->rank) - layout);
    at = pjrt_put_varint(at, 5 << 3 | 2);
    at = pjrt_put_varint(at, size);
    memcpy(at, layout, size);
    pjrt_shape_release(shape);
    args->serialized_shape = bytes;
    args->serialized_shape_size = (size_t)(at + size - bytes);
    args->serialized_shape_deleter = free;
    return NULL;
}
