/* What compiled programs and the runtime agree on (docs/architecture.md, "Program, runtime"). No Python here. */
#ifndef HILO_ABI_H
#define HILO_ABI_H

#include <stdint.h>

struct hilo_ctx;

/* One piece of a parallel loop: does the units begin..end. */
typedef void (*hilo_body)(void **bufs, int64_t begin, int64_t end);

/* The run context: the first argument of a program's entry function. Compiled code knows these fields by offset. */
struct hilo_ctx {
    void (*parallel_for)(struct hilo_ctx *ctx, hilo_body body, void **bufs, int64_t units, int64_t chunk);
    void **constants;
    int32_t (*host_call)(struct hilo_ctx *ctx, int64_t index, void **bufs);
    int64_t threads;
    char *message;        /* where a custom call in C may say why it failed (hilo_custom_call.h); or NULL */
    int64_t message_size; /* bytes there */
    int64_t failed;       /* the index of the custom call that failed; -1: none */
    void **forms;         /* of each form of an argument (forms.h): where the caller has it, or NULL */
};

/* A compiled program; 0 or an error code. */
typedef int32_t (*hilo_entry)(struct hilo_ctx *ctx, void **args, void **results, void *arena);

/* Of a program with run-time sizes: fills `out` with the bytes of the arena, then the sizes of all results' axes, one after
 * the other, from the values of the program's symbols; 0 or a code. The entry finds the symbols behind its arguments. */
typedef int32_t (*hilo_shapes)(const int64_t *symbols, int64_t *out);

/* Error codes that the runtime itself returns; programs use positive ones of their own. */
enum {
    HILO_HOST_CALL_FAILED = -1,    /* a Python exception is set in the calling thread */
    HILO_HOST_CALL_IN_WORKER = -2, /* host_call from inside a parallel loop */
};

#endif
