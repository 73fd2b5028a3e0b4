/* Native code that programs call: one call of it, ready to be made (foreign.c). */
#ifndef HILO_FOREIGN_H
#define HILO_FOREIGN_H

#include "arrays.h" /* first: Python.h */

#include "xla_ffi.h"

/* What the code at an address expects. XLA's older conventions have the numbers of `api_version`. */
enum hilo_convention {
    HILO_PLAIN = 0,   /* hilo_custom_call.h */
    HILO_XLA = 1,     /* void (void *out, const void **in) */
    HILO_XLA_STATUS,  /* void (void *out, const void **in, status *) */
    HILO_XLA_UNIFIED, /* void (void *out, const void **in, const char *config, size_t config_size, status *) */
    HILO_XLA_FFI,     /* xla_ffi.h */
};

struct hilo_foreign_alias {
    Py_ssize_t result, operand;
};

struct hilo_foreign {
    PyObject_HEAD
    int convention;
    int is_tuple;           /* `out` of the older conventions: an array of pointers, also for one result */
    void *code[FFI_STAGES]; /* by stage; all but the last only for HILO_XLA_FFI, and NULL for none */
    struct hilo_specs operands, results;
    int32_t *types;           /* of operands, then results: hilo_type */
    Py_ssize_t num_values[2]; /* of operands and results as the code sees them, tokens included */
    Py_ssize_t *values[2];    /* number of the operand or result; -1: a token */
    Py_ssize_t num_aliases, num_dims;
    struct hilo_foreign_alias *aliases; /* for calls from Python */
    struct ffi_attributes attributes;
    void *user_data; /* for handlers that ask for user data of the execution; or NULL */
    struct ffi_state_of states[FFI_STAGES];
    PyObject *config; /* bytes */
    PyObject *keep;   /* what must live as long: the code, the attributes */
};

extern PyTypeObject hilo_Foreign_Type;

/* register_ffi_type(name, address of the number, address of the type's info or 0) */
PyObject *hilo_register_ffi_type(PyObject *module, PyObject *args);

/* Makes the call on `bufs` (hostcall.c); needs no GIL. 0, or a code and what it means: in `message`, or as a text of any
 * length at `*text` (which is NULL before), for free(). */
int32_t hilo_foreign_call(const struct hilo_foreign *f, void **bufs, char *message, size_t message_size, char **text);

#endif
