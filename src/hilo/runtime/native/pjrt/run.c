/* One run of a program on the calling thread, with or without Python. */
#include "python.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "../memory.h"

#define SMALL_ARENA 4096 /* bytes on the stack up to which a run needs no memory from the pool */

/* What keeps the memory of a call for Python objects that look into it. */
struct hold {
    size_t count;
    struct pjrt_block *blocks[];
};

static void release_hold(PyObject *capsule) {
    struct hold *hold = PyCapsule_GetPointer(capsule, NULL);
    for (size_t i = 0; i < hold->count; i++) pjrt_block_release(hold->blocks[i]);
    free(hold);
}

static PyObject *keep_blocks(struct pjrt_block **blocks, size_t count) {
    struct hold *hold = malloc(sizeof *hold + count * sizeof *hold->blocks);
    PyObject *capsule = hold ? PyCapsule_New(hold, NULL, release_hold) : NULL;
    if (!capsule) {
        free(hold);
        PyErr_Clear();
        return NULL;
    }
    hold->count = 0;
    for (size_t i = 0; i < count; i++)
        if (blocks[i]) hold->blocks[hold->count++] = pjrt_block_keep(blocks[i]);
    return capsule;
}

/* Gives the memory of the run to those who keep views of it, if there are any; whether they have the arena. */
static bool end_lease(struct hilo_run *run, void *arena, struct pjrt_block **held, size_t num_held) {
    struct hilo_lease *lease = run->lease;
    if (!lease) return false;
    bool kept = Py_REFCNT(lease) > 1;
    if (kept) {
        lease->keep = keep_blocks(held, num_held);
        lease->arena = arena;
        lease->arena_size = run->program->arena_size;
    }
    Py_DECREF(lease);
    return kept;
}

static struct pjrt_error *without_memory(struct pjrt_executable *e) {
    return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "%s: no memory for %zu bytes of temporaries", e->name, e->program->arena_size);
}

/* What a run's code means. */
static struct pjrt_error *failure(struct hilo_run *run, int32_t code) {
    if (!pjrt_python_alive()) return pjrt_fail(PJRT_INTERNAL, "the program failed with code %d", (int)code);
    PyGILState_STATE state = PyGILState_Ensure();
    hilo_run_raise(run, code);
    struct pjrt_error *error = pjrt_python_error(PJRT_INTERNAL);
    PyGILState_Release(state);
    return error;
}

/* The run of a program that calls Python: the thread needs a Python state of its own, which it gives up while native code
 * runs, so that the functions get exactly what hostcall.c expects. */
static struct pjrt_error *run_with_python(struct pjrt_executable *e, struct hilo_run *run, void **arguments, void **results,
                                          struct pjrt_block **held, size_t num_held) {
    if (!pjrt_python_alive()) return pjrt_fail(PJRT_FAILED_PRECONDITION, "%s calls Python, which has ended", e->name);
    size_t arena_size = e->program->arena_size;
    void *arena = arena_size ? hilo_memory_alloc(arena_size) : NULL;
    if (arena_size && !arena) return without_memory(e);
    PyGILState_STATE state = PyGILState_Ensure();
    run->released = PyEval_SaveThread();
    int32_t code = hilo_run_code(run, arguments, results, arena);
    PyEval_RestoreThread(run->released);
    struct pjrt_error *error = NULL;
    if (code || PyErr_Occurred()) {
        hilo_run_raise(run, code);
        error = pjrt_python_error(PJRT_INTERNAL);
    }
    if (end_lease(run, arena, held, num_held)) arena = NULL;
    PyGILState_Release(state);
    hilo_memory_free(arena, arena_size);
    return error;
}

static struct pjrt_error *run(struct pjrt_executable *e, void **arguments, void **results, void **forms,
                              struct pjrt_block **held, size_t num_held) {
    struct hilo_run native;
    native.program = e->program;
    native.released = NULL;
    native.forms = forms;
    if (e->calls_python) return run_with_python(e, &native, arguments, results, held, num_held);
    size_t arena_size = e->program->arena_size;
    _Alignas(64) char small[SMALL_ARENA];
    void *arena = arena_size <= sizeof small ? small : hilo_memory_alloc(arena_size);
    if (!arena) return without_memory(e);
    int32_t code = hilo_run_code(&native, arguments, results, arena);
    if (arena != small) hilo_memory_free(arena, arena_size);
    return code ? failure(&native, code) : NULL;
}

/* The same in the context of an execution, for handlers of foreign functions. */
static struct pjrt_error *run_in_context(struct pjrt_executable *e, struct pjrt_context *context, void **arguments,
                                         void **results, void **forms, struct pjrt_block **held, size_t num_held) {
    if (!e->program->num_hosts) return run(e, arguments, results, forms, held, num_held);
    struct pjrt_context *before = pjrt_context_use(context); /* of a run that this one is a part of */
    struct pjrt_error *error = run(e, arguments, results, forms, held, num_held);
    pjrt_context_use(before);
    return error;
}

static long long nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct pjrt_error *pjrt_run(struct pjrt_executable *e, struct pjrt_context *context, void **arguments, void **results,
                            struct pjrt_block **held, size_t num_held) {
    long long begin = isnan(e->cost) ? nanoseconds() : 0;
    struct pjrt_error *error;
    if (e->program->num_forms) {
        struct pjrt_forms forms;
        pjrt_forms_take(&forms, e, held, arguments);
        error = run_in_context(e, context, arguments, results, forms.count ? forms.pointers : NULL, held, num_held);
        pjrt_forms_give_back(&forms);
    } else {
        error = run_in_context(e, context, arguments, results, NULL, held, num_held);
    }
    if (begin) atomic_store_explicit(&e->took, nanoseconds() - begin + 1, memory_order_relaxed);
    return error;
}
