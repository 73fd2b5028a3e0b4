/* Blocks: memory that buffers stand on, pooled or somebody else's, shared by counting. */
#include <stdlib.h>

#include "../memory.h"
#include "pjrt.h"

static void raise_to(atomic_llong *most, long long value) {
    long long now = atomic_load_explicit(most, memory_order_relaxed);
    while (value > now && !atomic_compare_exchange_weak_explicit(most, &now, value, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
    }
}

static void count_new(struct pjrt_counts *counts, long long nbytes) {
    long long before = atomic_fetch_add_explicit(&counts->bytes, nbytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->allocations, 1, memory_order_relaxed);
    raise_to(&counts->peak_bytes, before + nbytes);
    raise_to(&counts->largest, nbytes);
}

struct pjrt_block *pjrt_block_new(struct pjrt_client *client, size_t nbytes) {
    struct pjrt_block *block = malloc(sizeof *block);
    void *data = block ? hilo_memory_alloc(nbytes) : NULL;
    if (!data) {
        free(block);
        return NULL;
    }
    *block = (struct pjrt_block){.references = 1, .data = data, .size = nbytes, .ours = true, .client = client};
    count_new(&client->counts, (long long)nbytes);
    return block;
}

struct pjrt_block *pjrt_block_over(struct pjrt_client *client, void *data, size_t nbytes) {
    struct pjrt_block *block = malloc(sizeof *block);
    if (block)
        *block = (struct pjrt_block){.references = 1, .data = data, .size = nbytes, .foreign = true, .client = client};
    return block;
}

struct pjrt_block *pjrt_block_keep(struct pjrt_block *block) {
    atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
    return block;
}

void pjrt_block_release(struct pjrt_block *block) {
    if (!block || atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel) > 1) return;
    if (block->form) pjrt_form_forget(block);
    if (block->ours) {
        atomic_fetch_sub_explicit(&block->client->counts.bytes, (long long)block->size, memory_order_relaxed);
        hilo_memory_free(block->data, block->size);
    }
    if (block->on_delete) block->on_delete(block->data, block->on_delete_arg);
    if (block->done) {
        pjrt_event_finish(block->done, NULL);
        pjrt_event_release(block->done);
    }
    free(block);
}
