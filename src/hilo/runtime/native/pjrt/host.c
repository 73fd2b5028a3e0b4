/* Between buffers and arrays of the host. */
#include <stdlib.h>

#include "copies.h"

/* Up to so many bytes a copy is cheaper than to tell the owner when the buffer is gone. */
#define WORTH_ALIASING 1024

static struct pjrt_error *no_memory(size_t nbytes) {
    return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a buffer of %zu bytes", nbytes);
}

/* Whether elements at these strides lie as the shape says; dimensions of one element may have any. */
static bool lies_as(const struct pjrt_shape *shape, const int64_t *strides) {
    int64_t wanted[PJRT_MAX_RANK];
    pjrt_shape_strides(shape, wanted);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1 && strides[i] != wanted[i]) return false;
    return true;
}

/* Row-major strides of an array of the host. */
static void dense_strides(const struct pjrt_shape *shape, int64_t *strides) {
    int64_t stride = pjrt_type_size(shape->type);
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = shape->count ? stride : 0;
        if (shape->count) stride *= shape->dims[i];
    }
}

/* From the host. */

/* A block with the elements at `data`: the caller's memory itself, or pooled memory with a copy. `done`: a reference to
 * the event from which on the caller may do with their memory as they like. */
static struct pjrt_block *block_of(struct pjrt_client *client, const struct pjrt_shape *shape, const void *data,
                                   const int64_t *strides, uint32_t semantics, struct pjrt_event **done) {
    bool in_place = shape->count == 0 || lies_as(shape, strides);
    bool lent = semantics == PJRT_ZERO_COPY || semantics == PJRT_MUTABLE_ZERO_COPY;
    if (lent && in_place && shape->nbytes > WORTH_ALIASING && pjrt_is_aligned(data, shape->type)) {
        struct pjrt_block *block = pjrt_block_over(client, (void *)data, shape->nbytes);
        struct pjrt_event *event = block ? pjrt_event_new() : NULL;
        if (event) {
            block->foreign = semantics == PJRT_ZERO_COPY;
            block->promised = true;
            block->done = event;
            *done = pjrt_event_keep(event);
            return block;
        }
        pjrt_block_release(block);
        return NULL;
    }
    struct pjrt_block *block = pjrt_block_new(client, shape->nbytes);
    if (!block) return NULL;
    int64_t to_strides[PJRT_MAX_RANK];
    pjrt_shape_strides(shape, to_strides);
    pjrt_copy_strided(block->data, to_strides, data, strides, shape->dims, shape->rank, pjrt_type_size(shape->type));
    *done = pjrt_event_done();
    return block;
}

struct pjrt_error *pjrt_client_buffer_from_host_buffer(struct pjrt_client_buffer_from_host_buffer_args *args) {
    struct pjrt_error *error = NULL;
    if (args->host_buffer_semantics > PJRT_MUTABLE_ZERO_COPY)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "there are no host buffer semantics %u", args->host_buffer_semantics);
    struct pjrt_shape *shape =
        pjrt_shape_with_layout(args->type, args->dims, args->num_dims, args->device_layout, &error);
    if (!shape) return error;
    int64_t strides[PJRT_MAX_RANK];
    const int64_t *given = args->num_byte_strides ? args->byte_strides : strides;
    if (given == strides) dense_strides(shape, strides);
    if (args->num_byte_strides && args->num_byte_strides != args->num_dims)
        error = pjrt_fail(PJRT_INVALID_ARGUMENT, "%zu strides for an array of rank %zu", args->num_byte_strides,
                          args->num_dims);
    else if (!args->data && shape->nbytes)
        error = pjrt_fail(PJRT_INVALID_ARGUMENT, "the array on the host has no address");
    if (error) {
        pjrt_shape_release(shape);
        return error;
    }
    struct pjrt_event *done;
    struct pjrt_block *block = block_of(args->client, shape, args->data, given, args->host_buffer_semantics, &done);
    if (!block) {
        error = no_memory(shape->nbytes);
        pjrt_shape_release(shape);
        return error;
    }
    args->buffer = pjrt_buffer_new(args->client, pjrt_memory_of(args->client, args->device, args->memory), shape, block,
                                   pjrt_event_done());
    if (!args->buffer) {
        pjrt_event_release(done);
        return no_memory(0);
    }
    args->done_with_host_buffer = done;
    return NULL;
}

/* To the host. */

/* The strides and bytes of an array of the host in a layout (NULL: row-major). */
static struct pjrt_error *host_strides(const struct pjrt_shape *shape, const struct pjrt_memory_layout *layout,
                                       int64_t *strides, size_t *nbytes) {
    struct pjrt_error *error = NULL;
    *nbytes = shape->nbytes;
    if (!layout) {
        dense_strides(shape, strides);
        return NULL;
    }
    if (layout->type != PJRT_STRIDES) {
        struct pjrt_shape *host = pjrt_shape_with_layout(shape->type, shape->dims, (size_t)shape->rank, layout, &error);
        if (!host) return error;
        pjrt_shape_strides(host, strides);
        pjrt_shape_release(host);
        return NULL;
    }
    if (layout->strides.num_byte_strides != (size_t)shape->rank)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "%zu strides for an array of rank %d", layout->strides.num_byte_strides,
                         shape->rank);
    int64_t end = pjrt_type_size(shape->type);
    for (int i = 0; i < shape->rank; i++) {
        int64_t stride = layout->strides.byte_strides[i], reach;
        strides[i] = stride;
        if (shape->count == 0 || shape->dims[i] == 1) continue;
        if (stride < 0) return pjrt_fail(PJRT_UNIMPLEMENTED, "strides on the host must not be negative here");
        if (__builtin_mul_overflow(stride, shape->dims[i] - 1, &reach) || __builtin_add_overflow(end, reach, &end))
            return pjrt_fail(PJRT_INVALID_ARGUMENT, "strides that reach farther than can be counted");
    }
    *nbytes = shape->count ? (size_t)end : 0;
    return NULL;
}

static struct pjrt_block *hold(struct pjrt_buffer *buffer, struct pjrt_error **error) {
    struct pjrt_block *block = pjrt_buffer_hold(buffer);
    if (!block) *error = pjrt_fail(PJRT_FAILED_PRECONDITION, "Buffer has been deleted or donated");
    return block;
}

struct pjrt_error *pjrt_buffer_to_host_buffer(struct pjrt_buffer_to_host_buffer_args *args) {
    struct pjrt_buffer *buffer = args->src;
    struct pjrt_shape *shape = buffer->shape;
    struct pjrt_copy copy;
    size_t nbytes;
    struct pjrt_error *error = host_strides(shape, args->host_layout, copy.strides, &nbytes);
    if (error) return error;
    if (!args->dst) { /* only asked for the size */
        args->dst_size = nbytes;
        args->event = nbytes ? NULL : pjrt_event_done(); /* a place for nothing may be NULL, too */
        return NULL;
    }
    if (args->dst_size < nbytes)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "%zu bytes on the host for an array of %zu", args->dst_size, nbytes);
    copy.from = hold(buffer, &error);
    if (error) return error;
    copy.to = NULL;
    copy.source = copy.from->data;
    copy.target = args->dst;
    copy.nbytes = shape->nbytes;
    copy.shape = lies_as(shape, copy.strides) ? NULL : pjrt_shape_keep(shape);
    return pjrt_copy_after(buffer->ready, copy, &args->event);
}

/* Bytes as they are. */

static struct pjrt_error *check_range(const struct pjrt_buffer *buffer, int64_t offset, int64_t size) {
    int64_t nbytes = (int64_t)buffer->shape->nbytes;
    if (offset >= 0 && size >= 0 && offset <= nbytes && size <= nbytes - offset) return NULL;
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "there are no %lld bytes from byte %lld on in a buffer of %lld", (long long)size,
                     (long long)offset, (long long)nbytes);
}

struct pjrt_error *pjrt_buffer_copy_raw_to_host(struct pjrt_buffer_copy_raw_to_host_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    struct pjrt_error *error = check_range(buffer, args->offset, args->transfer_size);
    if (!error && !args->dst && args->transfer_size)
        error = pjrt_fail(PJRT_INVALID_ARGUMENT, "the place on the host has no address");
    struct pjrt_block *from = error ? NULL : hold(buffer, &error);
    if (error) return error;
    return pjrt_copy_after(buffer->ready,
                           (struct pjrt_copy){.from = from, .source = (char *)from->data + args->offset,
                                              .target = args->dst, .nbytes = (size_t)args->transfer_size},
                           &args->event);
}

/* A copy to a place that is told later. */
struct promised {
    struct pjrt_block *from;
    struct pjrt_event *ready, *done;
    int64_t offset, size;
};

static void place_told(struct pjrt_buffer_copy_raw_to_host_future_callback_args *args) {
    struct promised *promised = args->callback_data;
    if (args->error_code) {
        pjrt_block_release(promised->from);
        pjrt_event_finish(promised->done,
                          pjrt_fail_text(args->error_code, args->error_message, args->error_message_size));
    } else {
        pjrt_copy_then(promised->ready,
                       (struct pjrt_copy){.from = promised->from, .source = (char *)promised->from->data + promised->offset,
                                          .target = args->dst, .nbytes = (size_t)promised->size},
                       promised->done);
    }
    pjrt_event_release(promised->ready);
    pjrt_event_release(promised->done);
    free(promised);
}

struct pjrt_error *pjrt_buffer_copy_raw_to_host_future(struct pjrt_buffer_copy_raw_to_host_future_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    struct pjrt_error *error = check_range(buffer, args->offset, args->transfer_size);
    struct pjrt_block *from = error ? NULL : hold(buffer, &error);
    if (error) return error;
    struct promised *promised = malloc(sizeof *promised);
    struct pjrt_event *done = promised ? pjrt_event_new() : NULL;
    if (!done) {
        free(promised);
        pjrt_block_release(from);
        return no_memory(0);
    }
    *promised = (struct promised){from, pjrt_event_keep(buffer->ready), done, args->offset, args->transfer_size};
    args->event = pjrt_event_keep(done);
    args->callback_data = promised;
    args->future_ready_callback = place_told;
    return NULL;
}
