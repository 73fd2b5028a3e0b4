/* Pooled memory: size classes (eight per power of two) with free lists, and one list of all kept blocks by age.
 *
 * A freed block is kept, with its pages mapped, for the next request of its class; when more than the limit would be
 * kept, the oldest blocks go back to the system. The lists run through the blocks themselves, and a block's size is
 * told by the class of the size it was asked with, so that blocks have no headers.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGN ((size_t)64)
#define HUGE_ALIGN ((size_t)2 << 20)
#define HUGE_MIN ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define CLASSES (64 * 8)

/* What a kept block holds in its first bytes (at most ALIGN). */
struct kept {
    struct kept *newer, *older;     /* among all kept blocks */
    struct kept *previous, *next;   /* in the list of the class */
    size_t class, size;
};
_Static_assert(sizeof(struct kept) <= ALIGN, "a kept block must fit into the smallest one");

static struct kept *lists[CLASSES];
static struct kept *newest, *oldest;
static struct hilo_memory_stats stats = {.limit = (size_t)256 << 20};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forking = PTHREAD_ONCE_INIT;

static void acquire(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
static void register_fork(void) { pthread_atfork(acquire, release, release); }

/* The class of a request and the size of its blocks; 0 if no block can be that large. */
static size_t class_of(size_t nbytes, size_t *class) {
    if (nbytes <= 8 * ALIGN) {
        size_t n = nbytes ? (nbytes + ALIGN - 1) / ALIGN : 1;
        *class = n - 1;
        return n * ALIGN;
    }
    if (nbytes > SIZE_MAX / 4) return 0;
    int log = 63 - __builtin_clzll((unsigned long long)nbytes - 1); /* 2^log < nbytes <= 2^(log+1) */
    size_t step = (size_t)1 << (log - 3);
    size_t steps = (nbytes + step - 1) / step; /* 9 .. 16 */
    *class = (size_t)log * 8 + steps - 9;
    return steps * step;
}

static void *from_system(size_t size) {
    if (size < HUGE_MIN) {
        void *block = NULL;
        return posix_memalign(&block, ALIGN, size) ? NULL : block;
    }
    size = (size + PAGE - 1) & ~(PAGE - 1);
    char *start = mmap(NULL, size + HUGE_ALIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    char *block = (char *)(((uintptr_t)start + HUGE_ALIGN - 1) & ~(uintptr_t)(HUGE_ALIGN - 1));
    if (block > start) munmap(start, (size_t)(block - start));
    munmap(block + size, (size_t)(start + HUGE_ALIGN - block));
#ifdef MADV_HUGEPAGE
    madvise(block, size, MADV_HUGEPAGE);
#endif
    return block;
}

static void to_system(void *block, size_t size) {
    if (size < HUGE_MIN)
        free(block);
    else
        munmap(block, (size + PAGE - 1) & ~(PAGE - 1));
}

static void unlink_kept(struct kept *k) {
    *(k->newer ? &k->newer->older : &newest) = k->older;
    *(k->older ? &k->older->newer : &oldest) = k->newer;
    *(k->previous ? &k->previous->next : &lists[k->class]) = k->next;
    if (k->next) k->next->previous = k->previous;
    stats.kept -= k->size;
}

static void link_kept(struct kept *k, size_t class, size_t size) {
    *k = (struct kept){.older = newest, .next = lists[class], .class = class, .size = size};
    *(newest ? &newest->newer : &oldest) = k;
    newest = k;
    if (k->next) k->next->previous = k;
    lists[class] = k;
    stats.kept += size;
}

/* Takes blocks off the old end until at most `limit` is kept; returns them chained by `next`. Needs the lock. */
static struct kept *cut_to(size_t limit) {
    struct kept *cut = NULL;
    while (stats.kept > limit) {
        struct kept *k = oldest;
        unlink_kept(k);
        k->next = cut;
        cut = k;
    }
    return cut;
}

/* Unmapping takes long: done without the lock. */
static void release_all(struct kept *cut) {
    while (cut) {
        struct kept *next = cut->next;
        to_system(cut, cut->size);
        cut = next;
    }
}

void *hilo_memory_alloc(size_t nbytes) {
    size_t class, size = class_of(nbytes, &class);
    if (!size) return NULL;
    acquire();
    struct kept *k = lists[class];
    if (k) unlink_kept(k);
    *(k ? &stats.hits : &stats.misses) += 1;
    stats.in_use += size;
    release();
    if (k) return k;

    pthread_once(&forking, register_fork);
    void *block = from_system(size);
    if (!block) { /* once more without what is kept */
        acquire();
        struct kept *cut = cut_to(0);
        release();
        release_all(cut);
        block = from_system(size);
    }
    if (!block) {
        acquire();
        stats.in_use -= size;
        release();
    }
    return block;
}

void hilo_memory_free(void *block, size_t nbytes) {
    if (!block) return;
    size_t class, size = class_of(nbytes, &class);
    struct kept *cut = NULL;
    acquire();
    stats.in_use -= size;
    int keep = size <= stats.limit;
    if (keep) {
        link_kept(block, class, size);
        if (stats.kept > stats.limit) cut = cut_to(stats.limit);
    }
    release();
    if (!keep) to_system(block, size);
    release_all(cut);
}

void hilo_memory_set_limit(size_t limit) {
    acquire();
    stats.limit = limit;
    struct kept *cut = cut_to(limit);
    release();
    release_all(cut);
}

struct hilo_memory_stats hilo_memory_stats(void) {
    acquire();
    struct hilo_memory_stats s = stats;
    release();
    return s;
}
