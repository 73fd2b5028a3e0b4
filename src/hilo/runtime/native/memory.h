/* Pooled memory: blocks come back warm. No Python here; every function may be called from any thread. */
#ifndef HILO_MEMORY_H
#define HILO_MEMORY_H

#include <stddef.h>

struct hilo_memory_stats {
    size_t in_use, kept, limit; /* bytes handed out, kept for reuse, and the most that is kept */
    size_t hits, misses;        /* allocations served from kept blocks, and from the system */
};

/* A block of at least nbytes, 64-byte aligned (from 1 MiB on: 2 MiB aligned, in huge pages where the system has them);
 * NULL if there is no memory. Contents are arbitrary. */
void *hilo_memory_alloc(size_t nbytes);

/* Gives a block back; nbytes is what it was asked for with. NULL is allowed. */
void hilo_memory_free(void *block, size_t nbytes);

/* Bounds what is kept, and releases what is over it (0: everything). */
void hilo_memory_set_limit(size_t limit);

struct hilo_memory_stats hilo_memory_stats(void);

#endif
