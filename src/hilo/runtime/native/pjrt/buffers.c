/* Buffers: a shape, a block, and the event of its contents.
 *
 * Deleting or donating takes the block away; what else a buffer is stays known. Whoever works with the contents holds the
 * block. External references (others who look at the memory, such as numpy arrays) hold it through the buffer: `held`
 * stays until the last of them is gone, whatever happens to the buffer's own reference.
 */
#include <sched.h>
#include <stdlib.h>

#include "copies.h"

#define RESULT_ALIGN 64 /* what results of programs must have (docs/architecture.md) */

static void enter(struct pjrt_buffer *buffer) {
    while (atomic_flag_test_and_set_explicit(&buffer->busy, memory_order_acquire)) sched_yield();
}

static void leave(struct pjrt_buffer *buffer) { atomic_flag_clear_explicit(&buffer->busy, memory_order_release); }

static struct pjrt_error *deleted(void) {
    return pjrt_fail(PJRT_FAILED_PRECONDITION, "Buffer has been deleted or donated");
}

static struct pjrt_error *no_memory(void) { return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a buffer"); }

struct pjrt_buffer *pjrt_buffer_new(struct pjrt_client *client, struct pjrt_memory *memory, struct pjrt_shape *shape,
                                    struct pjrt_block *block, struct pjrt_event *ready) {
    struct pjrt_buffer *buffer = malloc(sizeof *buffer);
    if (!buffer) {
        pjrt_shape_release(shape);
        pjrt_block_release(block);
        pjrt_event_release(ready);
        return NULL;
    }
    *buffer = (struct pjrt_buffer){.client = client, .memory = memory, .shape = shape, .ready = ready,
                                   .busy = ATOMIC_FLAG_INIT, .block = block};
    return buffer;
}

void pjrt_buffer_free(struct pjrt_buffer *buffer) {
    pjrt_block_release(buffer->block);
    pjrt_block_release(buffer->held);
    pjrt_event_release(buffer->ready);
    pjrt_shape_release(buffer->shape);
    free(buffer);
}

struct pjrt_block *pjrt_buffer_hold(struct pjrt_buffer *buffer) {
    enter(buffer);
    struct pjrt_block *block = buffer->block;
    if (block) pjrt_block_keep(block);
    leave(buffer);
    return block;
}

static struct pjrt_block *take(struct pjrt_buffer *buffer) {
    enter(buffer);
    struct pjrt_block *block = buffer->block;
    buffer->block = NULL;
    leave(buffer);
    return block;
}

struct pjrt_block *pjrt_buffer_donate(struct pjrt_buffer *buffer, bool *exclusive) {
    struct pjrt_block *block = take(buffer);
    *exclusive = block && !atomic_load(&block->foreign) && (uintptr_t)block->data % RESULT_ALIGN == 0 &&
                 atomic_load_explicit(&block->references, memory_order_acquire) == 1;
    return block;
}

/* The error for which there will be no contents, as far as it is known; the event's own. */
static const struct pjrt_error *contents_error(struct pjrt_buffer *buffer) {
    return pjrt_event_is_over(buffer->ready) ? buffer->ready->error : NULL;
}

/* Life. */

struct pjrt_error *pjrt_buffer_destroy(struct pjrt_buffer_destroy_args *args) {
    if (args->buffer) pjrt_buffer_free(args->buffer);
    return NULL;
}

struct pjrt_error *pjrt_buffer_delete(struct pjrt_buffer_delete_args *args) {
    pjrt_block_release(take(args->buffer));
    return NULL;
}

struct pjrt_error *pjrt_buffer_is_deleted(struct pjrt_buffer_is_deleted_args *args) {
    args->is_deleted = !atomic_load_explicit(&args->buffer->block, memory_order_relaxed);
    return NULL;
}

struct pjrt_error *pjrt_buffer_ready_event(struct pjrt_buffer_ready_event_args *args) {
    args->event = pjrt_event_keep(args->buffer->ready);
    return NULL;
}

/* What it is. */

struct pjrt_error *pjrt_buffer_element_type(struct pjrt_buffer_element_type_args *args) {
    args->type = args->buffer->shape->type;
    return NULL;
}

struct pjrt_error *pjrt_buffer_dimensions(struct pjrt_buffer_dimensions_args *args) {
    args->dims = args->buffer->shape->dims;
    args->num_dims = (size_t)args->buffer->shape->rank;
    return NULL;
}

struct pjrt_error *pjrt_buffer_unpadded_dimensions(struct pjrt_buffer_unpadded_dimensions_args *args) {
    args->unpadded_dims = args->buffer->shape->dims;
    args->num_dims = (size_t)args->buffer->shape->rank;
    return NULL;
}

struct pjrt_error *pjrt_buffer_dynamic_dimension_indices(struct pjrt_buffer_dynamic_dimension_indices_args *args) {
    args->dynamic_dim_indices = NULL;
    args->num_dynamic_dims = 0;
    return NULL;
}

struct pjrt_error *pjrt_buffer_get_memory_layout(struct pjrt_buffer_get_memory_layout_args *args) {
    const struct pjrt_shape *shape = args->buffer->shape;
    args->layout = (struct pjrt_memory_layout){
        .struct_size = sizeof args->layout,
        .tiled = {.struct_size = sizeof args->layout.tiled, .minor_to_major = shape->minor_to_major,
                  .minor_to_major_size = (size_t)shape->rank},
        .type = PJRT_TILED,
    };
    return NULL;
}

struct pjrt_error *pjrt_buffer_on_device_size_in_bytes(struct pjrt_buffer_on_device_size_in_bytes_args *args) {
    args->on_device_size_in_bytes = args->buffer->shape->nbytes;
    return NULL;
}

struct pjrt_error *pjrt_buffer_device(struct pjrt_buffer_device_args *args) {
    args->device = &args->buffer->client->device;
    return NULL;
}

struct pjrt_error *pjrt_buffer_memory(struct pjrt_buffer_memory_args *args) {
    args->memory = args->buffer->memory;
    return NULL;
}

struct pjrt_error *pjrt_buffer_is_on_cpu(struct pjrt_buffer_is_on_cpu_args *args) {
    args->is_on_cpu = true;
    return NULL;
}

/* Where it is. */

struct pjrt_error *pjrt_buffer_increase_external_reference_count(
    struct pjrt_buffer_increase_external_reference_count_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    enter(buffer);
    bool alive = buffer->block;
    if (alive && buffer->external++ == 0) buffer->held = pjrt_block_keep(buffer->block);
    leave(buffer);
    return alive ? NULL : deleted();
}

struct pjrt_error *pjrt_buffer_decrease_external_reference_count(
    struct pjrt_buffer_decrease_external_reference_count_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    struct pjrt_block *held = NULL;
    enter(buffer);
    bool referenced = buffer->external > 0;
    if (referenced && --buffer->external == 0) {
        held = buffer->held;
        buffer->held = NULL;
    }
    leave(buffer);
    pjrt_block_release(held);
    return referenced ? NULL : pjrt_fail(PJRT_INVALID_ARGUMENT, "the buffer has no external references");
}

struct pjrt_error *pjrt_buffer_opaque_device_memory_data_pointer(
    struct pjrt_buffer_opaque_device_memory_data_pointer_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    if (contents_error(buffer)) return pjrt_error_copy(contents_error(buffer));
    enter(buffer);
    struct pjrt_block *block = buffer->block ? buffer->block : buffer->held;
    if (block) args->device_memory_ptr = block->data;
    if (block && !buffer->external) atomic_store(&block->foreign, true); /* nobody will say when they are done */
    leave(buffer);
    return block ? NULL : deleted();
}

/* The address as a number is for those who know what they do: it holds nothing, and keeps nobody from donating. */
struct pjrt_error *pjrt_buffer_unsafe_pointer(struct pjrt_buffer_unsafe_pointer_args *args) {
    struct pjrt_block *block = pjrt_buffer_hold(args->buffer);
    if (!block) return deleted();
    if (contents_error(args->buffer)) {
        pjrt_block_release(block);
        return pjrt_error_copy(contents_error(args->buffer));
    }
    args->buffer_pointer = (size_t)(uintptr_t)block->data;
    pjrt_block_release(block);
    return NULL;
}

/* Copies and views. */

static struct pjrt_error *copy_to(struct pjrt_buffer *buffer, struct pjrt_memory *memory, struct pjrt_buffer **result) {
    struct pjrt_block *from = pjrt_buffer_hold(buffer);
    if (!from) return deleted();
    size_t nbytes = buffer->shape->nbytes;
    bool failed = contents_error(buffer); /* then there is nothing to copy but the error */
    struct pjrt_block *to = failed ? pjrt_block_over(memory->client, NULL, nbytes) : pjrt_block_new(memory->client, nbytes);
    if (!to) {
        pjrt_block_release(from);
        return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for a copy of %zu bytes", nbytes);
    }
    struct pjrt_event *done;
    struct pjrt_error *error = pjrt_copy_after(
        buffer->ready,
        (struct pjrt_copy){.from = from, .to = pjrt_block_keep(to), .source = from->data, .target = to->data, .nbytes = nbytes},
        &done);
    if (error) {
        pjrt_block_release(to);
        return error;
    }
    *result = pjrt_buffer_new(memory->client, memory, pjrt_shape_keep(buffer->shape), to, done);
    return *result ? NULL : no_memory();
}

struct pjrt_error *pjrt_buffer_copy_to_device(struct pjrt_buffer_copy_to_device_args *args) {
    struct pjrt_client *client = args->dst_device->client;
    return copy_to(args->buffer, pjrt_memory_of(client, args->dst_device, NULL), &args->dst_buffer);
}

struct pjrt_error *pjrt_buffer_copy_to_memory(struct pjrt_buffer_copy_to_memory_args *args) {
    return copy_to(args->buffer, args->dst_memory, &args->dst_buffer);
}

struct pjrt_error *pjrt_buffer_bitcast(struct pjrt_buffer_bitcast_args *args) {
    struct pjrt_buffer *buffer = args->buffer;
    struct pjrt_error *error = NULL;
    struct pjrt_shape *shape =
        pjrt_shape_with_layout(args->element_type, args->dims, args->num_dims, args->device_layout, &error);
    if (!shape) return error;
    struct pjrt_block *block = NULL;
    if (shape->nbytes != buffer->shape->nbytes)
        error = pjrt_fail(PJRT_INVALID_ARGUMENT, "a buffer of %zu bytes cannot be seen as one of %zu",
                          buffer->shape->nbytes, shape->nbytes);
    else if (!(block = pjrt_buffer_hold(buffer)))
        error = deleted();
    if (error) {
        pjrt_shape_release(shape);
        return error;
    }
    args->out_buffer = pjrt_buffer_new(buffer->client, buffer->memory, shape, block, pjrt_event_keep(buffer->ready));
    return args->out_buffer ? NULL : no_memory();
}
