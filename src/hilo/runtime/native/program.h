/* A compiled program as a Python callable. */
#ifndef HILO_PROGRAM_H
#define HILO_PROGRAM_H

#include "arrays.h" /* first: Python.h */

#include "abi.h"
#include "fpstate.h"

struct hilo_foreign;
struct hilo_form;

/* What a program calls: native code (`foreign`, which `function` then is, too), or a Python function; see hostcall.c. */
struct hilo_host {
    PyObject *function;
    struct hilo_foreign *foreign;
    struct hilo_specs operands, results;
    int fills; /* the function gets the results' places, too */
};

/* The memory of one call, if arrays over it may outlive the call. */
struct hilo_lease {
    PyObject_HEAD
    void *arena; /* owned, once the call is over */
    size_t arena_size;
    PyObject *keep;
};

struct hilo_alias {
    Py_ssize_t result, argument;
};

/* Where a run-time size comes from: axis `index` of an argument, or its element `index`. */
struct hilo_symbol {
    int is_value;
    Py_ssize_t argument, index;
};

struct hilo_program {
    PyObject_HEAD
    vectorcallfunc call;
    hilo_entry entry;
    struct hilo_specs arguments, results;
    size_t arena_size;
    int64_t threads;
    int release_gil;
    Py_ssize_t num_constants, num_hosts, num_aliases;
    void **constants;
    struct hilo_host *hosts;
    struct hilo_alias *aliases;
    hilo_shapes shapes; /* NULL if all sizes are known; see sizes.c */
    struct hilo_symbol *symbols;
    Py_ssize_t num_symbols, num_sizes; /* num_sizes: what `shapes` writes */
    PyObject *explain;                 /* (code, symbol values) -> message for codes of `shapes` */
    PyObject *failure;                 /* (index, code, message) -> exception for a custom call that failed */
    struct hilo_form *forms; /* forms.h */
    Py_ssize_t num_forms;
    void **no_forms; /* what a call brings that brings none */
    PyObject *name;
    PyObject *constant_arrays; /* tuple: keeps the memory behind `constants` */
    PyObject *errors;          /* mapping: error code -> message, or None */
    PyObject *keep;            /* whatever must live as long as the code */
};

/* One call of a program; starts with what compiled code knows. */
struct hilo_run {
    struct hilo_ctx ctx;
    struct hilo_program *program;
    PyThreadState *released; /* the calling thread's state while it does not hold the GIL, or NULL */
    hilo_fpstate host_fp;
    struct hilo_lease *lease; /* NULL: no array over the call's memory was made */
    void **forms; /* what the call brings; NULL: none */
    char *text; /* of a call in native code that failed: more than fits into the message; or NULL. For hilo_run_raise */
    char message[256];
};

extern PyTypeObject hilo_Program_Type, hilo_Lease_Type;

/* Reads a sequence of (function, operand specs, result specs[, fills]), or `Foreign`s, into a zeroed program; 0 or -1. */
int hilo_hosts_parse(PyObject *sequence, struct hilo_program *program);
void hilo_hosts_clear(struct hilo_program *program);

/* Reads a sequence of (is_value, argument, index) into a program whose arguments and results are parsed; 0 or -1. */
int hilo_symbols_parse(PyObject *sequence, struct hilo_program *program);

/* The symbols' values for a call, then the arena's bytes and the results' sizes: all in one block of
 * num_symbols + num_sizes numbers. 0, or -1 with an exception for arguments whose sizes the program refuses. */
int hilo_sizes_compute(struct hilo_program *program, void **arguments, npy_intp *const *shapes, int64_t *block);

/* Runs the code, on the calling thread. `program`, `forms` and `released` must be set: the thread's state if it does not
 * hold the GIL. 0 or a code; an exception may be set as well. */
int32_t hilo_run_code(struct hilo_run *run, void **arguments, void **results, void *arena);

/* Makes a code that the program ended with an exception, if none is set yet. */
void hilo_run_raise(struct hilo_run *run, int32_t code);

/* ctx->host_call. */
int32_t hilo_host_call(struct hilo_ctx *ctx, int64_t index, void **bufs);

#endif
