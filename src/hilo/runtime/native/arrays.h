/* Numpy arrays as a program sees them: dtype and shape descriptions, the check of arguments, results over pooled
 * memory. Include after nothing: brings Python.h and numpy's C API (module.c alone imports its table). */
#ifndef HILO_ARRAYS_H
#define HILO_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL hilo_numpy_api
#ifndef HILO_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#if NPY_ABI_VERSION < 0x02000000
#define PyDataType_ELSIZE(descr) ((descr)->elsize)
#endif

/* What one argument or result must be. A size of -1 is any (`open`; nbytes then says nothing). */
struct hilo_spec {
    PyArray_Descr *descr;
    int ndim;
    npy_intp *dims;
    size_t nbytes;
    int open;
};

struct hilo_specs {
    Py_ssize_t count;
    struct hilo_spec *items;
};

/* Owner of a block of pooled memory: the base of result arrays. */
extern PyTypeObject hilo_Buffer_Type;

/* Reads a sequence of (dtype, shape); 0, or -1 with an exception. Clear in both cases. */
int hilo_specs_parse(PyObject *sequence, struct hilo_specs *specs);
void hilo_specs_clear(struct hilo_specs *specs);
int hilo_specs_traverse(const struct hilo_specs *specs, visitproc visit, void *arg);

/* Whether `object` can be used in place: a dense, aligned array of exactly the dtype and shape. */
int hilo_spec_fits(const struct hilo_spec *spec, PyObject *object);

/* A new reference to an array that fits, made from something that does not fit in place (other memory order, another
 * framework's array), or NULL with an hilo.errors.Error that begins with `what` and `index` ("argument", 2). */
PyArrayObject *hilo_spec_adapt(const struct hilo_spec *spec, PyObject *object, const char *what, Py_ssize_t index);

/* `spec` with the sizes `dims` (kept by the caller); 0, or -1 with an exception if there are too many elements. */
int hilo_spec_close(const struct hilo_spec *spec, npy_intp *dims, struct hilo_spec *closed);

/* A new array over pooled memory, contents arbitrary. */
PyArrayObject *hilo_array_new(const struct hilo_spec *spec);

/* Makes `*array`, which lies in memory of `lease`, the owner of a copy of its own; 0, or -1 with an exception. `lease`
 * stays alive with it, since views may look into it. */
int hilo_array_keep(PyArrayObject *array, PyObject *lease);

/* An array over the memory of `base` (reference stolen, also on failure). */
PyArrayObject *hilo_array_over(const struct hilo_spec *spec, void *data, PyObject *base);

/* The items (borrowed) of a tuple that must have `count` of them; 0, or -1 with a TypeError that says `what` it is. */
int hilo_unpack(PyObject *tuple, Py_ssize_t count, PyObject **items, const char *what);

/* Sets hilo.errors.Error; format as for PyErr_Format. Returns NULL. */
void *hilo_raise(const char *format, ...);

#endif
