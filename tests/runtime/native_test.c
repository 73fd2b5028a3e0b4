/* Exercises the thread pool and the pooled memory without Python, for the sanitizers: prints "ok" or aborts.
 *
 * Usage: native_test [nofork]   (ThreadSanitizer does not follow forks of threaded processes)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fpstate.h"
#include "memory.h"
#include "pool.h"

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
            abort();                                                          \
        }                                                                     \
    } while (0)

/* Not atomic on purpose: each unit is written by exactly one thread, and the caller reads after the loop. */
struct loop {
    int64_t *done, units, chunk;
    _Atomic int64_t pieces;
    struct hilo_ctx *ctx;
};

static void count_body(void **bufs, int64_t begin, int64_t end) {
    struct loop *l = bufs[0];
    CHECK(begin % l->chunk == 0 && begin < end);
    CHECK(end - begin == l->chunk || end == l->units);
    CHECK(hilo_fp_read() == HILO_FP_DEFAULT);
    for (int64_t i = begin; i < end; i++) l->done[i]++;
    atomic_fetch_add_explicit(&l->pieces, 1, memory_order_relaxed);
}

static void run_loop(int threads, int64_t units, int64_t chunk) {
    struct hilo_ctx ctx = {.parallel_for = hilo_parallel_for, .threads = threads};
    struct loop l = {.done = calloc((size_t)units + 1, sizeof(int64_t)), .units = units, .chunk = chunk, .ctx = &ctx};
    void *bufs[] = {&l};
    hilo_parallel_for(&ctx, count_body, bufs, units, chunk);
    for (int64_t i = 0; i < units; i++) CHECK(l.done[i] == 1);
    CHECK(l.pieces == (units + chunk - 1) / chunk);
    free(l.done);
}

static void shapes(void) {
    for (int threads = 1; threads <= 5; threads++)
        for (int64_t units = 0; units <= 40; units++)
            for (int64_t chunk = 1; chunk <= 7; chunk += 2) run_loop(threads, units, chunk);
}

static void many_small(void) {
    hilo_pool_enter();
    for (int i = 0; i < 3000; i++) run_loop(2 + i % 3, 6, 1);
    hilo_pool_leave();
}

/* A caller with another floating-point state starts workers: they have the default one all the same. */
static void state_body(void **bufs, int64_t begin, int64_t end) {
    (void)end;
    ((hilo_fpstate *)bufs[0])[begin] = hilo_fp_read();
    usleep(100);
}

static void float_state_of_workers(void) {
#if defined(__x86_64__)
    hilo_fpstate states[100], before = hilo_fp_read(), other = HILO_FP_DEFAULT | 0x8040; /* flush subnormals */
    struct hilo_ctx ctx = {.parallel_for = hilo_parallel_for, .threads = 3};
    void *bufs[] = {states};
    int workers = 0;
    for (int attempt = 0; attempt < 100 && !workers; attempt++) {
        hilo_pool_shutdown();
        hilo_fp_write(other);
        hilo_parallel_for(&ctx, state_body, bufs, 100, 1);
        hilo_fp_write(before);
        for (int i = 0; i < 100; i++) workers += states[i] == HILO_FP_DEFAULT;
        for (int i = 0; i < 100; i++) CHECK(states[i] == HILO_FP_DEFAULT || states[i] == other);
    }
    CHECK(workers > 0);
#endif
}

static void outer_body(void **bufs, int64_t begin, int64_t end) {
    struct loop *l = bufs[0];
    CHECK(hilo_pool_inside());
    for (int64_t i = begin; i < end; i++) {
        run_loop(4, 9, 2); /* inline, in this thread */
        l->done[i]++;
    }
}

static void nested(void) {
    struct hilo_ctx ctx = {.parallel_for = hilo_parallel_for, .threads = 4};
    int64_t done[50] = {0};
    struct loop l = {.done = done, .units = 50, .chunk = 1};
    void *bufs[] = {&l};
    hilo_parallel_for(&ctx, outer_body, bufs, 50, 1);
    for (int i = 0; i < 50; i++) CHECK(done[i] == 1);
    CHECK(!hilo_pool_inside());
}

/* Loops end while workers sleep, wake up, wake others and join. */
static void with_pauses(void) {
    for (int i = 0; i < 40; i++) {
        usleep(i % 4 ? 300 : 2500);
        run_loop(i % 2 ? 4 : 12, 64, 1);
    }
}

/* Little loops: nobody is woken for a few of them in a run; those of many wake workers; all of each is done. */
static void run_little(int64_t units, int64_t chunk) {
    struct hilo_ctx ctx = {.parallel_for = hilo_parallel_for, .threads = 3};
    struct loop l = {.done = calloc((size_t)units, sizeof(int64_t)), .units = units, .chunk = chunk, .ctx = &ctx};
    void *bufs[] = {&l};
    hilo_parallel_for(&ctx, count_body, bufs, units, -chunk);
    for (int64_t i = 0; i < units; i++) CHECK(l.done[i] == 1);
    CHECK(l.pieces == (units + chunk - 1) / chunk);
    free(l.done);
}

static void little(int cores) {
    hilo_pool_shutdown();
    for (int run = 0; run < 5; run++) {
        hilo_pool_enter();
        for (int i = 0; i < 8; i++) run_little(6 + i, 3);
        hilo_pool_leave();
    }
    CHECK(hilo_pool_workers() == 0);
    hilo_pool_enter();
    for (int i = 0; i < 9; i++) run_little(6, 1);
    hilo_pool_leave();
    CHECK((hilo_pool_workers() > 0) == (cores >= 3)); /* without spinning nobody is ever awake */
    for (int i = 0; i < 3000; i++) {
        if (i % 500 == 0) usleep(2500);
        run_little(2 + i % 9, 1 + i % 4);
    }
}

static void *caller(void *arg) {
    int threads = (int)(intptr_t)arg;
    hilo_pool_enter();
    for (int i = 0; i < 500; i++) run_loop(threads, 20 + i % 9, 1 + i % 3), run_little(2 + i % 9, 1 + i % 3);
    hilo_pool_leave();
    return NULL;
}

static void several_callers(void) {
    pthread_t t[5];
    for (intptr_t i = 0; i < 5; i++) CHECK(!pthread_create(&t[i], NULL, caller, (void *)(i + 1)));
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
}

static void *allocator(void *arg) {
    unsigned seed = (unsigned)(intptr_t)arg;
    struct {
        unsigned char *block;
        size_t nbytes;
    } held[32] = {{0}};
    for (int i = 0; i < 4000; i++) {
        int slot = rand_r(&seed) % 32;
        if (held[slot].block) {
            unsigned char mark = (unsigned char)slot;
            CHECK(held[slot].block[0] == mark && held[slot].block[held[slot].nbytes - 1] == mark);
            hilo_memory_free(held[slot].block, held[slot].nbytes);
            held[slot].block = NULL;
        } else {
            size_t nbytes = (size_t)1 << rand_r(&seed) % 22;
            nbytes += (size_t)rand_r(&seed) % nbytes;
            held[slot].nbytes = nbytes;
            held[slot].block = hilo_memory_alloc(nbytes);
            CHECK(held[slot].block && (uintptr_t)held[slot].block % 64 == 0);
            held[slot].block[0] = held[slot].block[nbytes - 1] = (unsigned char)slot;
        }
    }
    for (int i = 0; i < 32; i++) hilo_memory_free(held[i].block, held[i].nbytes);
    return NULL;
}

static void memory_in_threads(size_t limit) {
    hilo_memory_set_limit(limit);
    pthread_t t[4];
    for (intptr_t i = 0; i < 4; i++) CHECK(!pthread_create(&t[i], NULL, allocator, (void *)(i + 1)));
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    struct hilo_memory_stats s = hilo_memory_stats();
    CHECK(s.in_use == 0 && s.kept <= limit);
}

static void memory_sizes(void) {
    hilo_memory_set_limit((size_t)64 << 20);
    for (size_t nbytes = 0; nbytes < 5000; nbytes += 7) {
        char *block = hilo_memory_alloc(nbytes);
        memset(block, 1, nbytes);
        hilo_memory_free(block, nbytes);
    }
    for (size_t nbytes = (1 << 20) - 1; nbytes < 5 << 20; nbytes += 99991) {
        char *block = hilo_memory_alloc(nbytes);
        CHECK(block && (nbytes < 1 << 20 || (uintptr_t)block % (2 << 20) == 0));
        memset(block, 1, nbytes);
        hilo_memory_free(block, nbytes);
        CHECK(hilo_memory_alloc(nbytes) == (void *)block); /* comes back */
        hilo_memory_free(block, nbytes);
    }
    CHECK(hilo_memory_alloc(SIZE_MAX) == NULL && hilo_memory_alloc(SIZE_MAX / 8) == NULL);
    hilo_memory_set_limit(0);
    CHECK(hilo_memory_stats().kept == 0 && hilo_memory_stats().in_use == 0);
}

static void forks(void) {
    for (int i = 0; i < 10; i++) {
        run_loop(4, 50, 1);
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            CHECK(hilo_pool_workers() == 0);
            many_small();
            several_callers();
            hilo_memory_free(hilo_memory_alloc(100), 100);
            hilo_pool_shutdown();
            _exit(0);
        }
        run_loop(4, 50, 1);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    for (int cores = 1; cores <= 8; cores += 7) { /* with and without spinning */
        hilo_pool_set_cores(cores);
        shapes();
        many_small();
        nested();
        with_pauses();
        little(cores);
        float_state_of_workers();
        several_callers();
        hilo_pool_shutdown();
        CHECK(hilo_pool_workers() == 0);
    }
    memory_sizes();
    memory_in_threads((size_t)1 << 20);
    memory_in_threads((size_t)256 << 20);
    if (argc == 1) forks();
    hilo_memory_set_limit(0);
    hilo_pool_shutdown();
    puts("ok");
    return 0;
}
