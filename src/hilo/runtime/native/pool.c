/* The thread pool.
 *
 * One pool per process; one loop ("job") runs on it at a time. The job is published in `state`, one atomic word:
 * generation, number of threads wanted, an open bit and the number of workers inside. A worker joins by raising that
 * number while the job is open; the caller closes the job once no piece is left to claim and waits only for workers
 * that did join. So a worker that sleeps through a job delays nobody.
 *
 * Pieces are cut by the caller's chunk size alone. Thread t owns the t-th contiguous share of them, takes these first
 * (the same rows from loop to loop, for its caches) and then steals from its neighbours, piece by piece.
 *
 * A worker that sits on the caller's core cannot help: `part` sends it to another one (Linux). Kernels leave a thread
 * where it last ran when they believe that all cores are busy, and may take tens of milliseconds to part two threads.
 *
 * Little work is shared with threads that are awake: handing a piece to one that spins takes less than a microsecond,
 * waking one that sleeps several. A run of many little loops wakes them all the same.
 *
 * Several threads may call: one owns the pool, the others work through their pieces alone and take the pool over for
 * what is left as soon as it is free. Loops inside a piece run inline.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "fpstate.h"
#include "park.h"

#define SPIN_IN_RUN 1000000 /* ns that a worker spins for the next loop of a run */
#define SPIN_AFTER 100000   /* ns that it spins for the next run */
#define SPIN_JOIN 1000000   /* ns that the caller spins for the last pieces */
#define MANY_LITTLE 8        /* loops of a run that nobody helped with, after which sleeping workers are woken */
#define WAKE_FAN 4
#define STACK_BYTES (8u << 20)

#if defined(__x86_64__) || defined(__i386__)
#define pause_cpu() _mm_pause()
#elif defined(__aarch64__)
#define pause_cpu() __asm__ volatile("yield")
#else
#define pause_cpu() ((void)0)
#endif

#ifndef __linux__
pthread_mutex_t hilo_park_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t hilo_park_cond = PTHREAD_COND_INITIALIZER;
#endif

/* state: | generation 32 | open 1 | threads 15 | workers inside 16 | */
#define INSIDE(s) ((s) & 0xffff)
#define THREADS(s) ((int)((s) >> 16 & 0x7fff))
#define OPEN ((uint64_t)1 << 31)
#define GENERATION(s) ((uint32_t)((s) >> 32))
#define STATE(generation, threads) ((uint64_t)(generation) << 32 | OPEN | (uint64_t)(threads) << 16)

/* Two cache lines, since neighbouring lines are prefetched in pairs. */
struct cursor {
    _Alignas(128) _Atomic int64_t next;
    int64_t end;
};

struct worker {
    _Alignas(128) struct hilo_parker parker;
    pthread_t thread;
    atomic_int core; /* where it ran when it last looked, -1 when it has not */
};

static struct {
    _Alignas(128) _Atomic uint64_t state;
    _Alignas(128) atomic_bool owned;
    struct hilo_parker joiner;
    _Alignas(128) atomic_int runs; /* runs in progress, for the spinning policy */
    atomic_int cores;
    atomic_int workers;
    atomic_bool stop;
    /* The job; written by the owner while the state is closed and nobody is inside. */
    hilo_body body;
    void **bufs;
    int64_t units, chunk;
    struct cursor cursors[HILO_MAX_THREADS];
    struct worker worker[HILO_MAX_THREADS];
} pool = {.cores = 1};

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forking = PTHREAD_ONCE_INIT;
static _Thread_local int inside;
static _Thread_local int little_alone; /* little loops of the run that the thread did alone, since nobody was awake */

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Spinning is for the case that everybody has a core: workers of the pool and all callers. */
static int may_spin(int threads) {
    int runs = atomic_load_explicit(&pool.runs, memory_order_relaxed);
    return threads - 1 + (runs > 1 ? runs : 1) <= atomic_load_explicit(&pool.cores, memory_order_relaxed);
}

/* Wakes the workers that thread `id` has to wake: a tree, since each wake-up costs its caller some microseconds. */
static void wake_below(int id, int threads) {
    for (int i = WAKE_FAN * id + 1; i <= WAKE_FAN * (id + 1) && i < threads; i++) hilo_unpark(&pool.worker[i].parker);
}

/* Placement. */

#ifdef __linux__
static int this_core(void) { return sched_getcpu(); }

/* Sends worker `id` to the cores on which the calling thread may run, but for `core`. Only the pool's own threads are
 * ever bound, and never to nothing: with one core there is nowhere to go. */
static void send_away(int id, int core) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) || !CPU_ISSET(core, &cores) || CPU_COUNT(&cores) < 2) return;
    CPU_CLR(core, &cores);
    if (!pthread_setaffinity_np(pool.worker[id].thread, sizeof cores, &cores))
        atomic_store_explicit(&pool.worker[id].core, -1, memory_order_relaxed);
}
#else
static int this_core(void) { return -1; }
static void send_away(int id, int core) { (void)id, (void)core; }
#endif

/* Parts the workers of a job from the caller, whose core they may share: asleep, or waiting for it to get off. */
static void part(int threads) {
    int core = this_core();
    int workers = atomic_load_explicit(&pool.workers, memory_order_relaxed); /* fewer, if the system gave no more */
    if (core < 0) return;
    for (int id = 1; id < threads && id <= workers; id++)
        if (atomic_load_explicit(&pool.worker[id].core, memory_order_relaxed) == core) send_away(id, core);
}

static void note_core(int id) {
    int core = this_core();
    atomic_int *noted = &pool.worker[id].core;
    if (atomic_load_explicit(noted, memory_order_relaxed) != core) atomic_store_explicit(noted, core, memory_order_relaxed);
}

static int64_t claim(struct cursor *c) {
    if (atomic_load_explicit(&c->next, memory_order_relaxed) >= c->end) return -1;
    int64_t piece = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
    return piece < c->end ? piece : -1;
}

static void run_piece(hilo_body body, void **bufs, int64_t units, int64_t chunk, int64_t piece) {
    int64_t begin = piece * chunk;
    body(bufs, begin, units - begin > chunk ? begin + chunk : units);
}

/* The own share first, then the shares of the next threads. */
static void work(int id, int threads) {
    for (int i = 0; i < threads; i++) {
        struct cursor *c = &pool.cursors[(id + i) % threads];
        for (int64_t piece; (piece = claim(c)) >= 0;) run_piece(pool.body, pool.bufs, pool.units, pool.chunk, piece);
    }
}

/* Workers. Number `id` is thread `id` of a job; the caller is thread 0. */

static int joinable(uint64_t state, int id, uint32_t seen) {
    return (state & OPEN) && id < THREADS(state) && GENERATION(state) != seen;
}

/* Spins, then sleeps, until there is a job to join; returns the state seen, or 0 to end the thread. */
static uint64_t await_job(int id, uint32_t seen) {
    struct hilo_parker *parker = &pool.worker[id].parker;
    int64_t start = now();
    for (int spins = 1;; spins++) {
        uint64_t state = atomic_load(&pool.state);
        if (joinable(state, id, seen)) return state;
        if (atomic_load(&pool.stop)) return 0;
        pause_cpu();
        if (spins % 64) continue;
        note_core(id);
        int64_t limit = atomic_load_explicit(&pool.runs, memory_order_relaxed) > 0 ? SPIN_IN_RUN : SPIN_AFTER;
        if (now() - start < limit && may_spin(id + 1)) continue;
        hilo_park_prepare(parker);
        if (joinable(atomic_load(&pool.state), id, seen) || atomic_load(&pool.stop)) {
            hilo_park_cancel(parker);
        } else {
            hilo_park(parker);
            start = now();
        }
    }
}

static void *worker_main(void *arg) {
    int id = (int)(intptr_t)arg;
    uint32_t seen = 0;
    hilo_fp_enter();
    inside = 1;
    for (uint64_t state; (state = await_job(id, seen));) {
        if (!atomic_compare_exchange_strong(&pool.state, &state, state + 1)) continue;
        seen = GENERATION(state);
        note_core(id);
        wake_below(id, THREADS(state));
        work(id, THREADS(state));
        state = atomic_fetch_sub(&pool.state, 1) - 1;
        if (!(state & OPEN) && INSIDE(state) == 0) hilo_unpark(&pool.joiner);
    }
    return NULL;
}

/* Fork: the child has no workers and nobody else's job; it starts its own when it needs them. */

static void before_fork(void) { pthread_mutex_lock(&growing); }
static void after_fork_parent(void) { pthread_mutex_unlock(&growing); }
static void after_fork_child(void) {
    uint32_t generation = GENERATION(atomic_load(&pool.state));
    atomic_store(&pool.state, (uint64_t)generation << 32);
    atomic_store(&pool.owned, 0);
    atomic_store(&pool.runs, 0);
    atomic_store(&pool.workers, 0);
    hilo_park_cancel(&pool.joiner);
    pthread_mutex_unlock(&growing);
}
static void register_fork(void) { pthread_atfork(before_fork, after_fork_parent, after_fork_child); }

static int start_worker(int id) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return 0;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    hilo_park_cancel(&pool.worker[id].parker);
    atomic_store(&pool.worker[id].core, -1);
    /* Signals are for the threads of the host program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&pool.worker[id].thread, &attr, worker_main, (void *)(intptr_t)id);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
#ifdef __linux__
    char name[16];
    snprintf(name, sizeof name, "hilo-%u", (unsigned)id % 1000);
    if (!failed) pthread_setname_np(pool.worker[id].thread, name);
#endif
    return !failed;
}

/* Has workers 1 .. threads-1 running; with fewer, if the system gives no more, the others do their shares. */
static void grow(int threads) {
    pthread_once(&forking, register_fork);
    pthread_mutex_lock(&growing);
    int count = atomic_load(&pool.workers);
    while (count < threads - 1 && start_worker(count + 1)) count++;
    atomic_store(&pool.workers, count);
    pthread_mutex_unlock(&growing);
}

/* The caller's side. */

static void await_workers(int threads) {
    int64_t start = 0;
    for (int spins = 1; INSIDE(atomic_load(&pool.state)); spins++) {
        pause_cpu();
        if (spins % 64) continue;
        if (!start) start = now();
        part(threads);
        if (now() - start < SPIN_JOIN && may_spin(threads)) continue;
        hilo_park_prepare(&pool.joiner);
        if (INSIDE(atomic_load(&pool.state)))
            hilo_park(&pool.joiner);
        else
            hilo_park_cancel(&pool.joiner);
    }
}

/* Runs the pieces first..pieces on the pool, which the caller owns. */
static void run_job(hilo_body body, void **bufs, int64_t units, int64_t chunk, int64_t first, int64_t pieces, int threads) {
    if (threads > pieces - first) threads = (int)(pieces - first);
    if (atomic_load_explicit(&pool.workers, memory_order_relaxed) < threads - 1) grow(threads);
    pool.body = body;
    pool.bufs = bufs;
    pool.units = units;
    pool.chunk = chunk;
    int64_t share = pieces / threads, extra = pieces % threads, begin = 0;
    for (int t = 0; t < threads; t++) {
        int64_t end = begin + share + (t < extra);
        atomic_store_explicit(&pool.cursors[t].next, begin > first ? begin : first, memory_order_relaxed);
        pool.cursors[t].end = end;
        begin = end;
    }
    uint32_t generation = GENERATION(atomic_load_explicit(&pool.state, memory_order_relaxed)) + 1;
    part(threads);
    atomic_store(&pool.state, STATE(generation, threads));
    wake_below(0, threads);
    work(0, threads);
    atomic_fetch_and(&pool.state, ~OPEN);
    await_workers(threads);
}

/* Whether a little loop is worth sharing: the first worker waits for it, or sleeps through many of them. With more
 * threads than cores nobody waits. */
static int worth_sharing(int threads) {
    if (!may_spin(threads)) return 0;
    if (atomic_load_explicit(&pool.workers, memory_order_relaxed) && !hilo_asleep(&pool.worker[1].parker)) return 1;
    if (++little_alone <= MANY_LITTLE) return 0;
    little_alone = 0;
    return 1;
}

void hilo_parallel_for(struct hilo_ctx *ctx, hilo_body body, void **bufs, int64_t units, int64_t chunk) {
    if (units <= 0) return;
    int little = chunk < 0;
    if (little) chunk = -chunk;
    if (chunk <= 0 || chunk > units) chunk = units;
    int64_t pieces = units / chunk + (units % chunk != 0), piece = 0;
    int threads = ctx->threads < HILO_MAX_THREADS ? (int)ctx->threads : HILO_MAX_THREADS;
    int nested = inside;
    if (little && !nested && threads > 1 && pieces > 1 && !worth_sharing(threads)) threads = 1;
    inside = 1;
    for (; piece < pieces; piece++) {
        if (!nested && threads > 1 && pieces - piece > 1 && !atomic_load_explicit(&pool.owned, memory_order_relaxed) &&
            !atomic_exchange(&pool.owned, 1)) {
            run_job(body, bufs, units, chunk, piece, pieces, threads);
            atomic_store(&pool.owned, 0);
            break;
        }
        run_piece(body, bufs, units, chunk, piece);
    }
    inside = nested;
}

void hilo_pool_set_cores(int cores) { atomic_store(&pool.cores, cores); }
void hilo_pool_enter(void) {
    little_alone = 0;
    atomic_fetch_add_explicit(&pool.runs, 1, memory_order_relaxed);
}
void hilo_pool_leave(void) { atomic_fetch_sub_explicit(&pool.runs, 1, memory_order_relaxed); }
int hilo_pool_inside(void) { return inside; }
int hilo_pool_workers(void) { return atomic_load(&pool.workers); }

void hilo_pool_shutdown(void) {
    pthread_mutex_lock(&growing);
    atomic_store(&pool.stop, 1);
    int count = atomic_load(&pool.workers);
    for (int id = 1; id <= count; id++) hilo_unpark(&pool.worker[id].parker);
    for (int id = 1; id <= count; id++) pthread_join(pool.worker[id].thread, NULL);
    atomic_store(&pool.workers, 0);
    atomic_store(&pool.stop, 0);
    pthread_mutex_unlock(&growing);
}
