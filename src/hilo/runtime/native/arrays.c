/* Numpy arrays as a program sees them (arrays.h). */
#include "arrays.h"

#include <string.h>

#include "memory.h"

/* The owner of a block. */

struct buffer {
    PyObject_HEAD
    void *block;
    size_t nbytes;
    PyObject *lease; /* other memory that views of the array may look into, or NULL */
};

static void buffer_dealloc(PyObject *self) {
    struct buffer *b = (struct buffer *)self;
    Py_XDECREF(b->lease);
    hilo_memory_free(b->block, b->nbytes);
    PyObject_Free(self);
}

PyTypeObject hilo_Buffer_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "hilo.runtime._native.Buffer",
    .tp_basicsize = sizeof(struct buffer),
    .tp_dealloc = buffer_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A block of pooled memory; it goes back to the pool with this object.",
};

PyArrayObject *hilo_array_over(const struct hilo_spec *spec, void *data, PyObject *base) {
    Py_INCREF(spec->descr); /* stolen */
    PyObject *array = PyArray_NewFromDescr(
        &PyArray_Type, spec->descr, spec->ndim, spec->dims, NULL, data, NPY_ARRAY_CARRAY, NULL);
    if (!array) {
        Py_DECREF(base);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) Py_CLEAR(array);
    return (PyArrayObject *)array;
}

static struct buffer *new_buffer(size_t nbytes) {
    struct buffer *b = PyObject_New(struct buffer, &hilo_Buffer_Type);
    if (!b) return NULL;
    b->nbytes = nbytes;
    b->lease = NULL;
    b->block = hilo_memory_alloc(nbytes);
    if (!b->block) {
        Py_DECREF(b);
        PyErr_NoMemory();
        return NULL;
    }
    return b;
}

PyArrayObject *hilo_array_new(const struct hilo_spec *spec) {
    struct buffer *b = new_buffer(spec->nbytes);
    return b ? hilo_array_over(spec, b->block, (PyObject *)b) : NULL;
}

int hilo_array_keep(PyArrayObject *array, PyObject *lease) {
    size_t nbytes = (size_t)PyArray_NBYTES(array);
    struct buffer *b = new_buffer(nbytes);
    if (!b) return -1;
    memcpy(b->block, PyArray_DATA(array), nbytes);
    b->lease = Py_NewRef(lease);
    PyArrayObject_fields *fields = (PyArrayObject_fields *)array;
    PyObject *before = fields->base;
    fields->data = b->block;
    fields->base = (PyObject *)b;
    Py_XDECREF(before);
    return 0;
}

/* Specifications. */

static int parse_one(PyObject *item, struct hilo_spec *spec) {
    PyObject *pair[2];
    if (hilo_unpack(item, 2, pair, "(dtype, shape)") < 0) return -1;
    if (!PyArray_DescrConverter(pair[0], &spec->descr)) return -1;
    PyObject *dims = PySequence_Fast(pair[1], "expected a shape: a sequence of ints");
    if (!dims) return -1;
    Py_ssize_t ndim = PySequence_Fast_GET_SIZE(dims);
    npy_intp total = PyDataType_ELSIZE(spec->descr);
    int failed = 0;
    spec->dims = PyMem_New(npy_intp, ndim ? ndim : 1);
    if (!spec->dims) failed = PyErr_NoMemory() == NULL;
    if (!failed && ndim > NPY_MAXDIMS) {
        hilo_raise("rank %zd is more than the %d that numpy arrays can have", ndim, NPY_MAXDIMS);
        failed = 1;
    }
    for (Py_ssize_t i = 0; !failed && i < ndim; i++) {
        spec->dims[i] = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(dims, i));
        failed = PyErr_Occurred() != NULL;
        if (spec->dims[i] == -1) {
            spec->open = 1;
            continue;
        }
        if (!failed && (spec->dims[i] < 0 || __builtin_mul_overflow(total, spec->dims[i], &total))) {
            PyErr_Format(PyExc_ValueError, "bad dimension in shape %R", pair[1]);
            failed = 1;
        }
    }
    Py_DECREF(dims);
    if (failed) return -1;
    spec->ndim = (int)ndim;
    spec->nbytes = (size_t)total;
    return 0;
}

int hilo_specs_parse(PyObject *sequence, struct hilo_specs *specs) {
    *specs = (struct hilo_specs){0};
    PyObject *items = PySequence_Fast(sequence, "expected a sequence of (dtype, shape) pairs");
    if (!items) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int failed = 0;
    specs->items = PyMem_Calloc(count ? (size_t)count : 1, sizeof *specs->items);
    if (!specs->items) failed = PyErr_NoMemory() == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        specs->count = i + 1;
        failed = parse_one(PySequence_Fast_GET_ITEM(items, i), &specs->items[i]) < 0;
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

void hilo_specs_clear(struct hilo_specs *specs) {
    for (Py_ssize_t i = 0; i < specs->count; i++) {
        Py_XDECREF(specs->items[i].descr);
        PyMem_Free(specs->items[i].dims);
    }
    PyMem_Free(specs->items);
    *specs = (struct hilo_specs){0};
}

int hilo_specs_traverse(const struct hilo_specs *specs, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < specs->count; i++) Py_VISIT(specs->items[i].descr);
    return 0;
}

/* Arguments. */

/* Whether it is a numpy array of exactly the dtype and shape, however it lies in memory. */
static int has_type(const struct hilo_spec *spec, PyObject *object) {
    if (!PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_DESCR(array) != spec->descr && !PyArray_EquivTypes(PyArray_DESCR(array), spec->descr)) return 0;
    if (PyArray_NDIM(array) != spec->ndim) return 0;
    for (int i = 0; i < spec->ndim; i++)
        if (PyArray_DIMS(array)[i] != spec->dims[i] && spec->dims[i] != -1) return 0;
    return 1;
}

int hilo_spec_close(const struct hilo_spec *spec, npy_intp *dims, struct hilo_spec *closed) {
    npy_intp total = PyDataType_ELSIZE(spec->descr);
    for (int i = 0; i < spec->ndim; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(total, dims[i], &total)) {
            PyErr_NoMemory();
            return -1;
        }
    *closed = (struct hilo_spec){spec->descr, spec->ndim, dims, (size_t)total, 0};
    return 0;
}

int hilo_spec_fits(const struct hilo_spec *spec, PyObject *object) {
    return has_type(spec, object) &&
           PyArray_CHKFLAGS((PyArrayObject *)object, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
}

PyArrayObject *hilo_spec_adapt(const struct hilo_spec *spec, PyObject *object, const char *what, Py_ssize_t index) {
    if (has_type(spec, object)) {
        struct hilo_spec closed;
        if (hilo_spec_close(spec, PyArray_DIMS((PyArrayObject *)object), &closed) < 0) return NULL;
        PyArrayObject *dense = hilo_array_new(&closed);
        if (dense && PyArray_CopyInto(dense, (PyArrayObject *)object) < 0) Py_CLEAR(dense);
        return dense;
    }
    PyObject *module = PyImport_ImportModule("hilo.runtime.adapt");
    if (!module) return NULL;
    PyObject *shape = PyArray_IntTupleFromIntp(spec->ndim, spec->dims);
    PyObject *array = NULL;
    if (shape) array = PyObject_CallMethod(module, "adapt", "OOOsn", object, (PyObject *)spec->descr, shape, what, index);
    Py_XDECREF(shape);
    Py_DECREF(module);
    if (array && !hilo_spec_fits(spec, array)) {
        hilo_raise("%s %zd: the array made from %.200s does not fit", what, index, Py_TYPE(object)->tp_name);
        Py_CLEAR(array);
    }
    return (PyArrayObject *)array;
}

int hilo_unpack(PyObject *tuple, Py_ssize_t count, PyObject **items, const char *what) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "expected a tuple %s, got %R", what, tuple);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GET_ITEM(tuple, i);
    return 0;
}

void *hilo_raise(const char *format, ...) {
    PyObject *module = PyImport_ImportModule("hilo.errors");
    PyObject *error = module ? PyObject_GetAttrString(module, "Error") : NULL;
    if (error) {
        va_list args;
        va_start(args, format);
        PyErr_FormatV(error, format, args);
        va_end(args);
    }
    Py_XDECREF(error);
    Py_XDECREF(module);
    return NULL;
}
