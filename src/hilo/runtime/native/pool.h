/* The process-wide thread pool behind parallel_for. No Python here. */
#ifndef HILO_POOL_H
#define HILO_POOL_H

#include "abi.h"

#define HILO_MAX_THREADS 512

/* How many threads may run at once (affinity, cgroup limits): with more than that nobody spins. */
void hilo_pool_set_cores(int cores);

/* Brackets a program's run: workers wait for the next loop by spinning while a run is in progress. */
void hilo_pool_enter(void);
void hilo_pool_leave(void);

/* ctx->parallel_for: runs body over [0, units) in pieces of `chunk` (the last may be shorter) on up to ctx->threads
 * threads, the calling one among them, and returns when all is done. Inside a piece it runs in the calling thread. A
 * negative chunk, of -chunk units, says that there is little work, which is shared with threads that are awake. */
void hilo_parallel_for(struct hilo_ctx *ctx, hilo_body body, void **bufs, int64_t units, int64_t chunk);

/* Whether the calling thread is inside a piece of a parallel loop. */
int hilo_pool_inside(void);

/* Number of worker threads alive. */
int hilo_pool_workers(void);

/* Ends and joins the workers; the next loop starts new ones. Not to be called while a loop may be running. */
void hilo_pool_shutdown(void);

#endif
