/* Buffers that do not come from an array of the host: over memory of others, without contents (yet), and over the memory of
 * another buffer.
 */
#include <stdlib.h>

#include "copies.h"

static struct pjrt_error *no_memory(size_t nbytes) {
    return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a buffer of %zu bytes", nbytes);
}

/* A buffer over pooled memory with arbitrary contents; takes over the references to the shape and the event, also if it
 * fails. */
static struct pjrt_error *create(struct pjrt_client *client, struct pjrt_memory *memory, struct pjrt_shape *shape,
                                 struct pjrt_event *ready, struct pjrt_buffer **buffer) {
    size_t nbytes = shape->nbytes;
    struct pjrt_block *block = pjrt_block_new(client, nbytes);
    if (!block) {
        pjrt_shape_release(shape);
        pjrt_event_release(ready);
        return no_memory(nbytes);
    }
    *buffer = pjrt_buffer_new(client, memory, shape, block, ready);
    return *buffer ? NULL : no_memory(nbytes);
}

struct pjrt_error *pjrt_client_create_uninitialized_buffer(struct pjrt_client_create_uninitialized_buffer_args *args) {
    struct pjrt_error *error = NULL;
    struct pjrt_shape *shape = pjrt_shape_with_layout(args->shape_element_type, args->shape_dims, args->shape_num_dims,
                                                      args->shape_layout, &error);
    if (!shape) return error;
    struct pjrt_memory *memory = pjrt_memory_of(args->client, args->device, args->memory);
    return create(args->client, memory, shape, pjrt_event_done(), &args->buffer);
}

/* The memory behind a view must suit programs as an argument of theirs does. */
static struct pjrt_error *check_view(const struct pjrt_shape *shape, const void *data) {
    if (!data && shape->nbytes) return pjrt_fail(PJRT_INVALID_ARGUMENT, "the memory to be viewed has no address");
    if (!pjrt_is_aligned(data, shape->type))
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "the address %p is not aligned for elements of %s", data,
                         pjrt_type_name(shape->type));
    return NULL;
}

struct pjrt_error *pjrt_client_create_view_of_device_buffer(struct pjrt_client_create_view_of_device_buffer_args *args) {
    struct pjrt_error *error = NULL;
    struct pjrt_shape *shape =
        pjrt_shape_with_layout(args->element_type, args->dims, args->num_dims, args->layout, &error);
    if (!shape) return error;
    error = check_view(shape, args->device_buffer_ptr);
    struct pjrt_block *block = error ? NULL : pjrt_block_over(args->client, args->device_buffer_ptr, shape->nbytes);
    if (!block) {
        if (!error) error = no_memory(shape->nbytes);
        pjrt_shape_release(shape);
        return error;
    }
    struct pjrt_memory *memory = PJRT_KNOWS(args, memory) ? args->memory : NULL;
    pjrt_block_keep(block); /* the callback belongs to the buffer only once there is one */
    args->buffer = pjrt_buffer_new(args->client, pjrt_memory_of(args->client, args->device, memory), shape, block,
                                   pjrt_event_done());
    if (args->buffer) {
        block->on_delete = args->on_delete_callback;
        block->on_delete_arg = args->on_delete_callback_arg;
    }
    pjrt_block_release(block);
    return args->buffer ? NULL : no_memory(0);
}

/* A buffer whose contents are an error has no memory: whoever wants to use it asks its event first. */
struct pjrt_error *pjrt_client_create_error_buffer(struct pjrt_client_create_error_buffer_args *args) {
    struct pjrt_error *error = NULL;
    if (!args->error_code) return pjrt_fail(PJRT_INVALID_ARGUMENT, "a buffer of an error needs an error code");
    struct pjrt_shape *shape = pjrt_shape_with_layout(args->shape_element_type, args->shape_dims, args->shape_num_dims,
                                                      args->shape_layout, &error);
    if (!shape) return error;
    struct pjrt_event *failed =
        pjrt_event_failed(pjrt_fail_text(args->error_code, args->error_message, args->error_message_size));
    struct pjrt_block *block = pjrt_block_over(args->client, NULL, shape->nbytes);
    if (!block || !failed->error) {
        pjrt_shape_release(shape);
        pjrt_event_release(failed);
        pjrt_block_release(block);
        return no_memory(0);
    }
    args->buffer =
        pjrt_buffer_new(args->client, pjrt_memory_of(args->client, NULL, args->memory), shape, block, failed);
    return args->buffer ? NULL : no_memory(0);
}

/* Aliases: buffers that exist before the one whose contents they will have. They have memory of their own from the start,
 * so that programs may be given the address, and the contents are copied there. */

struct pjrt_fulfill {
    struct pjrt_client *client;
    struct pjrt_shape *shape;
    struct pjrt_block *block;
    struct pjrt_event *ready;
};

struct pjrt_error *pjrt_client_create_alias_buffer(struct pjrt_client_create_alias_buffer_args *args) {
    struct pjrt_error *error = NULL;
    struct pjrt_shape *shape = pjrt_shape_with_layout(args->shape_element_type, args->shape_dims, args->shape_num_dims,
                                                      args->shape_layout, &error);
    if (!shape) return error;
    struct pjrt_fulfill *fulfill = malloc(sizeof *fulfill);
    struct pjrt_event *ready = fulfill ? pjrt_event_new() : NULL;
    if (!ready) {
        free(fulfill);
        pjrt_shape_release(shape);
        return no_memory(0);
    }
    *fulfill = (struct pjrt_fulfill){.client = args->client, .shape = pjrt_shape_keep(shape), .ready = pjrt_event_keep(ready)};
    error = create(args->client, pjrt_memory_of(args->client, NULL, args->memory), shape, ready, &args->alias_buffer);
    if (error) {
        pjrt_shape_release(fulfill->shape);
        pjrt_event_release(fulfill->ready);
        free(fulfill);
        return error;
    }
    fulfill->block = pjrt_buffer_hold(args->alias_buffer);
    args->fulfill_alias_buffer_cb = fulfill;
    return NULL;
}

/* Copies the buffer's contents to where the alias is. */
static struct pjrt_error *fulfill_with(struct pjrt_fulfill *fulfill, struct pjrt_buffer *buffer) {
    if (!buffer) return pjrt_fail(PJRT_INVALID_ARGUMENT, "an alias without an error needs a buffer");
    if (!pjrt_shape_same_array(fulfill->shape, buffer->shape))
        return pjrt_fail(PJRT_INVALID_ARGUMENT, "an alias must have the element type and the sizes of its buffer");
    struct pjrt_block *from = pjrt_buffer_hold(buffer);
    if (!from) return pjrt_fail(PJRT_FAILED_PRECONDITION, "Buffer has been deleted or donated");
    struct pjrt_copy copy = {.from = from, .to = pjrt_block_keep(fulfill->block), .source = from->data,
                             .target = fulfill->block->data, .shape = pjrt_shape_keep(buffer->shape)};
    pjrt_shape_strides(fulfill->shape, copy.strides);
    pjrt_copy_then(buffer->ready, copy, fulfill->ready);
    return NULL;
}

struct pjrt_error *pjrt_client_fulfill_alias_buffer(struct pjrt_client_fulfill_alias_buffer_args *args) {
    struct pjrt_fulfill *fulfill = args->fulfill_alias_buffer_cb;
    if (!fulfill) return pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no alias to fulfill");
    struct pjrt_error *error = NULL;
    if (args->status_code)
        pjrt_event_finish(fulfill->ready,
                          pjrt_fail_text(args->status_code, args->error_message, args->error_message_size));
    else if ((error = fulfill_with(fulfill, args->buffer)))
        pjrt_event_finish(fulfill->ready, pjrt_error_copy(error));
    pjrt_shape_release(fulfill->shape);
    pjrt_block_release(fulfill->block);
    pjrt_event_release(fulfill->ready);
    free(fulfill);
    return error;
}

/* Donation to a new buffer whose contents count only once something else has happened, too. */

struct dependency {
    struct pjrt_event *contents, *ready; /* of the old buffer, of the new one */
};

static void finish_ready(struct pjrt_error *error, void *ready) {
    pjrt_event_finish(ready, error);
    pjrt_event_release(ready);
}

static void dependency_ready(struct pjrt_buffer_donate_with_control_dependency_callback_args *args) {
    struct dependency *dependency = args->callback_data;
    struct pjrt_event *ready = dependency->ready;
    if (args->error_code) {
        finish_ready(pjrt_fail_text(args->error_code, args->error_message, args->error_message_size), ready);
    } else {
        struct pjrt_error *error = pjrt_event_then(dependency->contents, finish_ready, ready);
        if (error) finish_ready(error, ready);
    }
    pjrt_event_release(dependency->contents);
    free(dependency);
}

struct pjrt_error *pjrt_buffer_donate_with_control_dependency(
    struct pjrt_buffer_donate_with_control_dependency_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    struct dependency *dependency = malloc(sizeof *dependency);
    struct pjrt_event *ready = dependency ? pjrt_event_new() : NULL;
    struct pjrt_buffer *result = NULL;
    if (ready)
        result = pjrt_buffer_new(buffer->client, buffer->memory, pjrt_shape_keep(buffer->shape), NULL,
                                 pjrt_event_keep(ready));
    if (!result) {
        pjrt_event_release(ready);
        free(dependency);
        return no_memory(0);
    }
    bool exclusive; /* the block goes on as it is, whoever else has it */
    result->block = pjrt_buffer_donate(buffer, &exclusive);
    if (!result->block) {
        pjrt_buffer_free(result);
        pjrt_event_release(ready);
        free(dependency);
        return pjrt_fail(PJRT_FAILED_PRECONDITION, "Buffer has been deleted or donated");
    }
    *dependency = (struct dependency){pjrt_event_keep(buffer->ready), ready};
    args->callback_data = dependency;
    args->dependency_ready_callback = dependency_ready;
    args->out_buffer = result;
    return NULL;
}
