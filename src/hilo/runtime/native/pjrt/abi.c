/* Versions of the ABI: whether an executable that was serialized here runs there. Ours fit when hilo's version, the
 * platform and the kind of machine are the same; loading looks closer (hilo.pjrt.artifact).
 *
 * As bytes a version is the message PjRtAbiVersionProto of XLA: platform 1 (a number), version 2 (a text).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "pjrt.h"

struct pjrt_abi {
    uint64_t platform;
    size_t size;
    char version[]; /* "hilo 0.1.0 x86_64" */
};

static struct pjrt_error *make(uint64_t platform, const char *version, size_t size, struct pjrt_abi **abi) {
    *abi = malloc(sizeof **abi + size);
    if (!*abi) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a version");
    (*abi)->platform = platform;
    (*abi)->size = size;
    memcpy((*abi)->version, version, size);
    return NULL;
}

static uint64_t number_of(struct pjrt_topology *topology) {
    struct pjrt_topology_fingerprint_args args = {.struct_size = sizeof args, .topology = topology};
    pjrt_topology_fingerprint(&args);
    return args.fingerprint;
}

static struct pjrt_error *ours(struct pjrt_topology *topology, struct pjrt_abi **abi) {
    struct utsname machine;
    char version[160];
    int size = snprintf(version, sizeof version, "%s %s", pjrt_platform_version(), uname(&machine) ? "?" : machine.machine);
    return make(number_of(topology), version, (size_t)size < sizeof version ? (size_t)size : sizeof version - 1, abi);
}

static struct pjrt_error *of_client(struct pjrt_client_runtime_abi_version_args *args) {
    return ours(args->client->topology, &args->abi_version);
}

static struct pjrt_error *of_executable(struct pjrt_executable_get_abi_version_args *args) {
    struct pjrt_client *client = args->executable->client;
    return ours(client ? client->topology : pjrt_topology_of("hilo"), &args->abi_version);
}

/* What of ours can be loaded where. */

static struct pjrt_error *compare(const struct pjrt_abi *runtime, const struct pjrt_abi *other, const char *what) {
    if (runtime->platform != other->platform)
        return pjrt_fail(PJRT_FAILED_PRECONDITION, "%s is of another platform", what);
    if (runtime->size == other->size && memcmp(runtime->version, other->version, other->size) == 0) return NULL;
    return pjrt_fail(PJRT_FAILED_PRECONDITION, "%s is of %.*s, this runtime of %.*s", what, (int)other->size,
                     other->version, (int)runtime->size, runtime->version);
}

static struct pjrt_error *fits_runtime(struct pjrt_runtime_abi_version_is_compatible_with_runtime_args *args) {
    return compare(args->abi_version, args->other_abi_version, "the other runtime");
}

static struct pjrt_error *fits_executable(struct pjrt_runtime_abi_version_is_compatible_with_executable_args *args) {
    return compare(args->abi_version, args->executable_abi_version, "the executable");
}

/* Versions as bytes. */

static struct pjrt_error *write(const struct pjrt_abi *abi, const char **bytes, size_t *size, void **holder) {
    char *start = malloc(32 + abi->size), *at = start;
    if (!start) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a version");
    *at++ = 1 << 3;
    at = pjrt_put_varint(at, abi->platform);
    *at++ = 2 << 3 | 2;
    at = pjrt_put_varint(at, abi->size);
    memcpy(at, abi->version, abi->size);
    *bytes = start;
    *size = (size_t)(at - start) + abi->size;
    *holder = start;
    return NULL;
}

static const char *get_varint(const char *at, const char *end, uint64_t *value) {
    *value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)*at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return at;
    }
    return NULL;
}

static struct pjrt_error *read(const char *bytes, size_t size, struct pjrt_abi **abi) {
    const char *at = bytes, *end = bytes + size, *version = NULL;
    uint64_t platform = 0, length = 0;
    while (at && at < end) {
        uint64_t number;
        char tag = *at++;
        if (tag == 1 << 3) {
            at = get_varint(at, end, &platform);
        } else if (tag == (2 << 3 | 2) && (at = get_varint(at, end, &number)) && number <= (uint64_t)(end - at)) {
            version = at, length = number;
            at += number;
        } else {
            at = NULL;
        }
    }
    if (at && version) return make(platform, version, length, abi);
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "these %zu bytes are no version of an ABI", size);
}

/* The functions of both kinds of versions, which are the same. */

#define VERSION(kind) \
    static struct pjrt_error *kind##_destroy(struct pjrt_##kind##_abi_version_destroy_args *args) { \
        free(args->abi_version); \
        return NULL; \
    } \
    static struct pjrt_error *kind##_platform(struct pjrt_##kind##_abi_version_platform_id_args *args) { \
        args->platform_id = args->abi_version->platform; \
        return NULL; \
    } \
    static struct pjrt_error *kind##_write(struct pjrt_##kind##_abi_version_to_proto_args *args) { \
        args->serialized_proto_deleter = free; \
        return write(args->abi_version, &args->serialized_proto, &args->serialized_proto_size, \
                     &args->serialized_proto_holder); \
    } \
    static struct pjrt_error *kind##_read(struct pjrt_##kind##_abi_version_from_proto_args *args) { \
        return read(args->serialized_proto, args->serialized_proto_size, &args->abi_version); \
    }

VERSION(runtime)
VERSION(executable)

struct pjrt_abi_version_extension pjrt_abi_version_extension = {
    .base = {sizeof pjrt_abi_version_extension, PJRT_EXTENSION_ABI_VERSION, NULL},
    .client_runtime_abi_version = of_client,
    .executable_get_abi_version = of_executable,
    .runtime_abi_version_destroy = runtime_destroy,
    .runtime_abi_version_is_compatible_with_runtime = fits_runtime,
    .runtime_abi_version_is_compatible_with_executable = fits_executable,
    .runtime_abi_version_to_proto = runtime_write,
    .runtime_abi_version_platform_id = runtime_platform,
    .executable_abi_version_destroy = executable_destroy,
    .executable_abi_version_to_proto = executable_write,
    .executable_abi_version_platform_id = executable_platform,
    .runtime_abi_version_from_proto = runtime_read,
    .executable_abi_version_from_proto = executable_read,
};
