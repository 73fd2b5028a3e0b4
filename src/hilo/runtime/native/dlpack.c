/* Reading other frameworks' arrays through DLPack (dlpack.h).
 *
 * numpy's own reader knows only numpy's own types; this one takes bf16 and f8 too. Both forms of capsule are read: the
 * older without a version, and version 1.
 */
#include "dlpack.h"

#define CPU 1
#define CPU_PINNED_CUDA 3
#define CPU_PINNED_ROCM 11

struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct managed {
    struct tensor tensor;
    void *context;
    void (*deleter)(struct managed *);
};

struct managed_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct managed_versioned *);
    uint64_t flags;
    struct tensor tensor;
};

/* Owners of what was taken out of a capsule. A deleter may run Python code, and an exception may be on its way. */

static void release(PyObject *owner, int versioned) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    void *pointer = PyCapsule_GetPointer(owner, "hilo.dlpack");
    struct managed *m = pointer;
    struct managed_versioned *v = pointer;
    if (versioned && v->deleter) v->deleter(v);
    if (!versioned && m->deleter) m->deleter(m);
    PyErr_Restore(type, value, traceback);
}

static void release_managed(PyObject *owner) { release(owner, 0); }
static void release_versioned(PyObject *owner) { release(owner, 1); }

/* Takes the tensor out of the capsule, so that its deleter is ours to call: a new owner, or NULL. */
static PyObject *take(PyObject *capsule, struct tensor **tensor) {
    int versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    if (!versioned && !PyCapsule_IsValid(capsule, "dltensor")) {
        PyErr_SetString(PyExc_BufferError, "not a DLPack capsule, or one that was used before");
        return NULL;
    }
    void *pointer = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
    PyObject *owner = PyCapsule_New(pointer, "hilo.dlpack", versioned ? release_versioned : release_managed);
    if (!owner) return NULL;
    PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
    if (!versioned) {
        *tensor = &((struct managed *)pointer)->tensor;
    } else if (((struct managed_versioned *)pointer)->major == 1) {
        *tensor = &((struct managed_versioned *)pointer)->tensor;
    } else {
        PyErr_Format(PyExc_BufferError, "DLPack version %u is not known", ((struct managed_versioned *)pointer)->major);
        Py_CLEAR(owner);
    }
    return owner;
}

/* The numpy dtype (borrowed) of the elements, or NULL. */
static PyArray_Descr *find_dtype(const struct tensor *t, PyObject *dtypes) {
    PyObject *key = Py_BuildValue("ii", t->code, t->bits);
    PyObject *found = key ? PyDict_GetItemWithError(dtypes, key) : NULL;
    Py_XDECREF(key);
    if (found && t->lanes == 1 && PyArray_DescrCheck(found)) return (PyArray_Descr *)found;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_BufferError, "DLPack elements of type code %d with %d bits and %d lanes cannot be read", t->code,
                     t->bits, t->lanes);
    return NULL;
}

static PyObject *make_array(const struct tensor *t, PyArray_Descr *descr, PyObject *owner) {
    static int64_t nothing; /* what arrays without elements point to */
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    if (t->ndim < 0 || t->ndim > NPY_MAXDIMS) {
        PyErr_Format(PyExc_BufferError, "arrays of rank %d cannot be read", t->ndim);
        return NULL;
    }
    npy_intp dense = PyDataType_ELSIZE(descr), size = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        dims[i] = t->shape[i];
        strides[i] = t->strides ? t->strides[i] * PyDataType_ELSIZE(descr) : dense;
        dense *= dims[i];
        size *= dims[i];
    }
    void *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    if (!size) data = &nothing;
    if (!data) {
        PyErr_SetString(PyExc_BufferError, "the array has elements but no memory");
        return NULL;
    }
    Py_INCREF(descr); /* stolen */
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, t->ndim, dims, size ? strides : NULL, data, 0, NULL);
    if (array && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(owner)) < 0) Py_CLEAR(array);
    return array;
}

PyObject *hilo_from_dlpack(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *dtypes, *array = NULL;
    struct tensor *t;
    if (!PyArg_ParseTuple(args, "OO!:from_dlpack", &capsule, &PyDict_Type, &dtypes)) return NULL;
    PyObject *owner = take(capsule, &t);
    if (!owner) return NULL;
    if (t->device_type != CPU && t->device_type != CPU_PINNED_CUDA && t->device_type != CPU_PINNED_ROCM) {
        PyErr_Format(PyExc_BufferError, "the array is not in host memory (DLPack device type %d)", t->device_type);
    } else {
        PyArray_Descr *descr = find_dtype(t, dtypes);
        if (descr) array = make_array(t, descr, owner);
    }
    Py_DECREF(owner);
    return array;
}
