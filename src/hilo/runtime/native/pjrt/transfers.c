/* Transfers to buffers that exist before their contents, in pieces; and what there is no use for on a host. */
#include <stdlib.h>
#include <string.h>

#include "copies.h"

struct target {
    struct pjrt_buffer *buffer; /* NULL once somebody retrieved it */
    struct pjrt_shape *shape;
    struct pjrt_block *block;
    struct pjrt_event *ready;
};

struct pjrt_transfers {
    struct pjrt_client *client;
    pthread_mutex_t lock; /* guards `buffer` of targets */
    size_t count;
    struct target targets[];
};

static struct pjrt_error *no_memory(size_t nbytes) {
    return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a buffer of %zu bytes", nbytes);
}

/* Creation and destruction. */

static struct pjrt_error *prepare(struct pjrt_client *client, struct pjrt_memory *memory, struct pjrt_shape *shape,
                                  struct target *target) {
    target->shape = shape;
    target->block = pjrt_block_new(client, shape->nbytes);
    target->ready = pjrt_event_new();
    if (!target->block || !target->ready) return no_memory(shape->nbytes);
    target->buffer = pjrt_buffer_new(client, memory, pjrt_shape_keep(shape), pjrt_block_keep(target->block),
                                     pjrt_event_keep(target->ready));
    return target->buffer ? NULL : no_memory(shape->nbytes);
}

/* What never got its contents gets an error instead. */
static void destroy(struct pjrt_transfers *transfers) {
    for (size_t i = 0; i < transfers->count; i++) {
        struct target *target = &transfers->targets[i];
        if (target->ready && !pjrt_event_is_over(target->ready))
            pjrt_event_finish(target->ready,
                              pjrt_fail(PJRT_CANCELLED, "the transfer to buffer %zu was given up before its end", i));
        if (target->buffer) pjrt_buffer_free(target->buffer);
        pjrt_shape_release(target->shape);
        pjrt_block_release(target->block);
        pjrt_event_release(target->ready);
    }
    pthread_mutex_destroy(&transfers->lock);
    free(transfers);
}

struct pjrt_error *pjrt_client_create_buffers_for_async_host_to_device(
    struct pjrt_client_create_buffers_for_async_host_to_device_args *args) {
    size_t count = args->num_shape_specs;
    if (args->num_device_layouts && args->num_device_layouts != count)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "%zu layouts for %zu buffers", args->num_device_layouts, count);
    struct pjrt_transfers *transfers = calloc(1, sizeof *transfers + count * sizeof *transfers->targets);
    if (!transfers) return no_memory(0);
    pthread_mutex_init(&transfers->lock, NULL);
    transfers->client = args->client;
    struct pjrt_memory *memory = pjrt_memory_of(args->client, NULL, args->memory);
    for (size_t i = 0; i < count; i++) {
        const struct pjrt_shape_spec *spec = &args->shape_specs[i];
        struct pjrt_error *error = NULL;
        struct pjrt_shape *shape = pjrt_shape_with_layout(
            spec->element_type, spec->dims, spec->num_dims, args->num_device_layouts ? args->device_layouts[i] : NULL, &error);
        transfers->count = i + 1;
        if (shape) error = prepare(args->client, memory, shape, &transfers->targets[i]);
        if (error) {
            destroy(transfers);
            return error;
        }
    }
    args->transfer_manager = transfers;
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_destroy(struct pjrt_transfer_manager_destroy_args *args) {
    if (args->transfer_manager) destroy(args->transfer_manager);
    return NULL;
}

/* What it is. */

static struct target *find(struct pjrt_transfers *transfers, int32_t index, struct pjrt_error **error) {
    if (index >= 0 && (size_t)index < transfers->count) return &transfers->targets[index];
    *error = pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no buffer %d among %zu", index, transfers->count);
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_device(struct pjrt_transfer_manager_device_args *args) {
    args->device_out = &args->transfer_manager->client->device;
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_buffer_count(struct pjrt_transfer_manager_buffer_count_args *args) {
    args->buffer_count = args->transfer_manager->count;
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_buffer_size(struct pjrt_transfer_manager_buffer_size_args *args) {
    struct pjrt_error *error = NULL;
    struct target *target = find(args->transfer_manager, args->buffer_index, &error);
    if (target) args->buffer_size = target->shape->nbytes;
    return error;
}

struct pjrt_error *pjrt_transfer_manager_retrieve_buffer(struct pjrt_transfer_manager_retrieve_buffer_args *args) {
    struct pjrt_error *error = NULL;
    struct target *target = find(args->transfer_manager, args->buffer_index, &error);
    if (!target) return error;
    pthread_mutex_lock(&args->transfer_manager->lock);
    args->buffer_out = target->buffer;
    target->buffer = NULL;
    pthread_mutex_unlock(&args->transfer_manager->lock);
    return args->buffer_out ? NULL
                            : pjrt_fail(PJRT_FAILED_PRECONDITION, "buffer %d was retrieved before", args->buffer_index);
}

/* Transfers: at once, since the host's memory is the device's. */

static struct target *find_open(struct pjrt_transfers *transfers, int32_t index, struct pjrt_error **error) {
    struct target *target = find(transfers, index, error);
    if (!target || !pjrt_event_is_over(target->ready)) return target;
    *error = pjrt_fail(PJRT_FAILED_PRECONDITION, "the transfer to buffer %d is over", index);
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_transfer_data(struct pjrt_transfer_manager_transfer_data_args *args) {
    struct pjrt_error *error = NULL;
    struct target *target = find_open(args->transfer_manager, args->buffer_index, &error);
    if (!target) return error;
    int64_t nbytes = (int64_t)target->shape->nbytes, offset = args->offset, size = args->transfer_size;
    if (offset < 0 || size < 0 || offset > nbytes || size > nbytes - offset)
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "%lld bytes to byte %lld of a buffer of %lld", (long long)size,
                         (long long)offset, (long long)nbytes);
    if (!args->data && size) return pjrt_fail(PJRT_INVALID_ARGUMENT, "the bytes to be transferred have no address");
    if (size) memcpy((char *)target->block->data + offset, args->data, (size_t)size);
    if (args->is_last_transfer) pjrt_event_finish(target->ready, NULL);
    args->done_with_h2d_transfer = pjrt_event_done();
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_transfer_literal(struct pjrt_transfer_manager_transfer_literal_args *args) {
    struct pjrt_error *error = NULL;
    struct target *target = find_open(args->transfer_manager, args->buffer_index, &error);
    if (!target) return error;
    struct pjrt_shape *shape = pjrt_shape_with_layout(args->shape_element_type, args->shape_dims, args->shape_num_dims,
                                                      args->shape_layout, &error);
    if (!shape) return error;
    if (!pjrt_shape_same_array(shape, target->shape))
        error = pjrt_fail(PJRT_INVALID_ARGUMENT, "a literal must have the element type and the sizes of its buffer");
    else if (!args->data && shape->nbytes)
        error = pjrt_fail(PJRT_INVALID_ARGUMENT, "the literal has no address");
    if (!error) {
        int64_t from_strides[PJRT_MAX_RANK], to_strides[PJRT_MAX_RANK];
        pjrt_shape_strides(shape, from_strides);
        pjrt_shape_strides(target->shape, to_strides);
        pjrt_copy_strided(target->block->data, to_strides, args->data, from_strides, shape->dims, shape->rank,
                          pjrt_type_size(shape->type));
        pjrt_event_finish(target->ready, NULL);
        args->done_with_h2d_transfer = pjrt_event_done();
    }
    pjrt_shape_release(shape);
    return error;
}

struct pjrt_error *pjrt_transfer_manager_set_buffer_error(struct pjrt_transfer_manager_set_buffer_error_args *args) {
    struct pjrt_error *error = NULL;
    struct target *target = find_open(args->transfer_manager, args->buffer_index, &error);
    if (!target) return error;
    pjrt_event_finish(target->ready, pjrt_fail_text(args->error_code ? args->error_code : PJRT_UNKNOWN, args->error_message,
                                                    args->error_message_size));
    return NULL;
}

struct pjrt_error *pjrt_transfer_manager_add_metadata(struct pjrt_transfer_manager_add_metadata_args *args) {
    (void)args; /* hints for transports; there is none */
    return NULL;
}

/* The device reads all of the host's memory anyway. */

struct pjrt_error *pjrt_client_dma_map(struct pjrt_client_dma_map_args *args) {
    (void)args;
    return NULL;
}

struct pjrt_error *pjrt_client_dma_unmap(struct pjrt_client_dma_unmap_args *args) {
    (void)args;
    return NULL;
}

/* Streams are what programs that receive from the host are fed by. hilo compiles no such programs and so hands out no
 * stream: whatever is asked about one is an error. */

static struct pjrt_error *no_streams(void) {
    return pjrt_fail(PJRT_UNIMPLEMENTED, "hilo has no copy streams: programs that send to or receive from the host by "
                                         "channels are not supported");
}

struct pjrt_error *pjrt_copy_stream_destroy(struct pjrt_copy_stream_destroy_args *args) {
    return args->stream ? no_streams() : NULL;
}

struct pjrt_error *pjrt_copy_stream_add_chunk(struct pjrt_copy_stream_add_chunk_args *args) {
    (void)args;
    return no_streams();
}

struct pjrt_error *pjrt_copy_stream_total_bytes(struct pjrt_copy_stream_total_bytes_args *args) {
    (void)args;
    return no_streams();
}

struct pjrt_error *pjrt_copy_stream_granule_size(struct pjrt_copy_stream_granule_size_args *args) {
    (void)args;
    return no_streams();
}

struct pjrt_error *pjrt_copy_stream_current_bytes(struct pjrt_copy_stream_current_bytes_args *args) {
    (void)args;
    return no_streams();
}
