/* Entry functions for the tests of the runtime: what compiled programs look like to it, written by hand. */
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "fpstate.h"

#define ENTRY(name) int32_t name(struct hilo_ctx *ctx, void **args, void **results, void *arena)
#define UNUSED (void)ctx, (void)args, (void)results, (void)arena

ENTRY(nothing) { UNUSED; return 0; }

/* result[i] = x[i] + y[i], 8 floats */
ENTRY(add8) {
    UNUSED;
    float *x = args[0], *y = args[1], *out = results[0];
    for (int i = 0; i < 8; i++) out[i] = x[i] + y[i];
    return 0;
}

/* Copies 24 bytes from each argument to the result of the same number; the count is the first constant. */
ENTRY(copies) {
    UNUSED;
    int64_t count = *(int64_t *)ctx->constants[0];
    for (int64_t i = 0; i < count; i++) memcpy(results[i], args[i], 24);
    return 0;
}

/* The code to fail with is the argument. */
ENTRY(fails) { UNUSED; return *(int32_t *)args[0]; }

/* Adds 1 to 8 floats, possibly in place. */
ENTRY(increment8) {
    UNUSED;
    float *x = args[0], *out = results[0];
    for (int i = 0; i < 8; i++) out[i] = x[i] + 1;
    return 0;
}

/* The addresses of the argument, the result itself, and the arena, after writing the arena's 1000 bytes. */
ENTRY(addresses) {
    UNUSED;
    int64_t *out = results[0];
    memset(arena, 1, 1000);
    out[0] = (int64_t)(intptr_t)args[0];
    out[1] = (int64_t)(intptr_t)results[0];
    out[2] = (int64_t)(intptr_t)arena;
    return 0;
}

/* Fills 16 MiB. */
ENTRY(fill16) { UNUSED; memset(results[0], 3, 16 << 20); return 0; }

/* result = half of the smallest normal f32, computed at run time, and the thread's floating-point state. */
ENTRY(subnormal) {
    UNUSED;
    volatile float tiny = 0x1p-126f;
    *(float *)results[0] = tiny * 0.5f;
    *(int64_t *)results[1] = (int64_t)hilo_fp_read();
    return 0;
}

/* Parallel: out[i] = x[i] * x[i] + 1 on 100003 doubles in chunks of 1000. */
static void square(void **bufs, int64_t begin, int64_t end) {
    double *x = bufs[0], *out = bufs[1];
    for (int64_t i = begin; i < end; i++) out[i] = x[i] * x[i] + 1;
}
ENTRY(squares) {
    UNUSED;
    void *bufs[] = {args[0], results[0]};
    ctx->parallel_for(ctx, square, bufs, 100003, 1000);
    return 0;
}

/* Parallel: partial sums of 4096 floats by chunks of 64, then their sum: one answer for any number of threads. */
static void partial(void **bufs, int64_t begin, int64_t end) {
    float *x = bufs[0], *sums = bufs[1], sum = 0;
    for (int64_t i = begin; i < end; i++) sum += x[i];
    sums[begin / 64] = sum;
}
ENTRY(sum4096) {
    UNUSED;
    void *bufs[] = {args[0], arena};
    ctx->parallel_for(ctx, partial, bufs, 4096, 64);
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += ((float *)arena)[i];
    *(float *)results[0] = sum;
    return 0;
}

/* Parallel: the floating-point state that each of 64 pieces sees; every piece takes a while, so that workers join. */
static void states(void **bufs, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) ((int64_t *)bufs[0])[i] = (int64_t)hilo_fp_read();
    usleep(200);
}
ENTRY(states64) { UNUSED; ctx->parallel_for(ctx, states, results, 64, 1); return 0; }

/* Calls the host functions 0 and then 1 on (argument, result) and (result, argument 1's place, here result 1). */
ENTRY(hosts) {
    UNUSED;
    void *first[] = {args[0], results[0]};
    int32_t code = ctx->host_call(ctx, 0, first);
    if (code) return code;
    void *second[] = {results[0], results[1]};
    return ctx->host_call(ctx, 1, second);
}

/* A host call from inside a parallel loop, which is not allowed. */
static void calls_host(void **bufs, int64_t begin, int64_t end) {
    (void)begin, (void)end;
    struct hilo_ctx *ctx = bufs[0];
    *(int32_t *)bufs[1] = ctx->host_call(ctx, 0, bufs);
}
ENTRY(host_in_loop) {
    UNUSED;
    int32_t code = 0;
    void *bufs[] = {ctx, &code};
    ctx->parallel_for(ctx, calls_host, bufs, 1, 1);
    return code;
}

/* Waits until the first argument's int becomes 1; code 1 after 5 seconds. */
ENTRY(waits) {
    UNUSED;
    volatile int32_t *flag = args[0];
    for (int i = 0; i < 5000 && !*flag; i++) usleep(1000);
    return *flag ? 0 : 1;
}

/* Sleeps for 50 ms. */
ENTRY(sleeps) { UNUSED; usleep(50000); return 0; }

/* For ctypes: the calling thread's floating-point state. */
int64_t get_fp_state(void) { return (int64_t)hilo_fp_read(); }
void set_fp_state(int64_t state) { hilo_fp_write((hilo_fpstate)state); }
