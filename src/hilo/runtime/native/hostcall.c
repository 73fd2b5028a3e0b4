/* Calls from a program into code outside of it: custom calls, by their index.
 *
 * `bufs` holds pointers to the operands, then the results; run-time sizes among their dims, in order, stand before it
 * (`bufs[-1]`, `bufs[-2]` ...). The code runs in the thread that called the program, with that thread's own
 * floating-point state.
 *
 * A Python function gets read-only arrays over the operands' memory, with the GIL (and, if it `fills`, arrays over the
 * results' places) and returns an array, or a sequence of arrays, that must be exactly what the program expects. An
 * exception ends the program and comes out of the call. An array that somebody keeps afterwards gets memory of its own;
 * views of it keep the memory of the whole call alive.
 */
#include "program.h"

#include <string.h>

#include "foreign.h"
#include "memory.h"
#include "pool.h"

/* What keeps a call's memory alive for those who keep views of it. */

static void lease_dealloc(PyObject *self) {
    struct hilo_lease *lease = (struct hilo_lease *)self;
    hilo_memory_free(lease->arena, lease->arena_size);
    Py_XDECREF(lease->keep);
    PyObject_Free(self);
}

PyTypeObject hilo_Lease_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "hilo.runtime._native.Lease",
    .tp_basicsize = sizeof(struct hilo_lease),
    .tp_dealloc = lease_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The memory of one call of a program.",
};

static PyObject *run_lease(struct hilo_run *run) {
    if (!run->lease) {
        run->lease = PyObject_New(struct hilo_lease, &hilo_Lease_Type);
        if (run->lease) *run->lease = (struct hilo_lease){run->lease->ob_base, NULL, 0, NULL};
    }
    return (PyObject *)run->lease;
}

/* Construction. */

static int parse_host(PyObject *item, struct hilo_host *host) {
    if (Py_TYPE(item) == &hilo_Foreign_Type) {
        host->function = Py_NewRef(item);
        host->foreign = (struct hilo_foreign *)item;
        return 0;
    }
    PyObject *parts[4];
    int with_fill = PyTuple_Check(item) && PyTuple_GET_SIZE(item) == 4;
    if (hilo_unpack(item, with_fill ? 4 : 3, parts, "(function, operands, results[, fills])") < 0) return -1;
    host->function = Py_NewRef(parts[0]);
    host->fills = with_fill ? PyObject_IsTrue(parts[3]) : 0;
    if (host->fills < 0) return -1;
    return hilo_specs_parse(parts[1], &host->operands) < 0 || hilo_specs_parse(parts[2], &host->results) < 0 ? -1 : 0;
}

int hilo_hosts_parse(PyObject *sequence, struct hilo_program *program) {
    PyObject *items = PySequence_Fast(sequence, "host_calls: expected a sequence");
    if (!items) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int failed = 0;
    program->hosts = PyMem_Calloc(count ? (size_t)count : 1, sizeof *program->hosts);
    if (!program->hosts) failed = PyErr_NoMemory() == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        program->num_hosts = i + 1;
        failed = parse_host(PySequence_Fast_GET_ITEM(items, i), &program->hosts[i]) < 0;
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

void hilo_hosts_clear(struct hilo_program *program) {
    for (Py_ssize_t i = 0; i < program->num_hosts; i++) {
        Py_CLEAR(program->hosts[i].function);
        hilo_specs_clear(&program->hosts[i].operands);
        hilo_specs_clear(&program->hosts[i].results);
    }
    program->num_hosts = 0;
    PyMem_Free(program->hosts);
    program->hosts = NULL;
}

/* Calling Python. */

/* An array over a buffer. `sizes`: where the next run-time size is; goes down past those used. */
static PyArrayObject *wrap(const struct hilo_spec *spec, void *data, int64_t **sizes, PyObject *lease, int writable) {
    struct hilo_spec closed = *spec;
    npy_intp dims[NPY_MAXDIMS];
    if (spec->open) {
        for (int i = 0; i < spec->ndim; i++) dims[i] = spec->dims[i] == -1 ? *--*sizes : spec->dims[i];
        if (hilo_spec_close(spec, dims, &closed) < 0) return NULL;
    }
    PyArrayObject *array = hilo_array_over(&closed, data, Py_NewRef(lease));
    if (array && !writable) PyArray_CLEARFLAGS(array, NPY_ARRAY_WRITEABLE);
    return array;
}

static PyObject *wrap_all(const struct hilo_host *host, void **bufs, PyObject *lease) {
    Py_ssize_t operands = host->operands.count, count = operands + host->results.count;
    PyObject *tuple = PyTuple_New(count);
    int64_t *sizes = (int64_t *)bufs;
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        const struct hilo_spec *spec = i < operands ? &host->operands.items[i] : &host->results.items[i - operands];
        PyArrayObject *array = wrap(spec, bufs[i], &sizes, lease, i >= operands);
        if (array)
            PyTuple_SET_ITEM(tuple, i, (PyObject *)array);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* `places`: arrays over the results' memory. */
static int store_results(const struct hilo_host *host, PyObject *returned, PyObject **places) {
    Py_ssize_t count = host->results.count;
    PyObject *items;
    if (count == 1 && !PyTuple_Check(returned) && !PyList_Check(returned))
        items = PyTuple_Pack(1, returned);
    else if (count == 0 && returned == Py_None)
        items = PyTuple_New(0);
    else
        items = PySequence_Fast(returned, "a host call must return an array or a sequence of arrays");
    if (!items) return -1;
    int failed = PySequence_Fast_GET_SIZE(items) != count;
    if (failed)
        hilo_raise("host call %R: expected %zd results, got %zd", host->function, count, PySequence_Fast_GET_SIZE(items));
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        PyArrayObject *place = (PyArrayObject *)places[i];
        struct hilo_spec spec = host->results.items[i];
        failed = hilo_spec_close(&host->results.items[i], PyArray_DIMS(place), &spec) < 0;
        PyArrayObject *array = NULL;
        if (!failed)
            array = hilo_spec_fits(&spec, item) ? (PyArrayObject *)Py_NewRef(item)
                                                : hilo_spec_adapt(&spec, item, "result of a host call", i);
        failed = array == NULL;
        if (array && spec.nbytes && PyArray_DATA(array) != PyArray_DATA(place))
            memmove(PyArray_DATA(place), PyArray_DATA(array), spec.nbytes);
        Py_XDECREF(array);
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

/* Gives up the arrays of a call; those that somebody else keeps get memory of their own. */
static int release_arrays(PyObject *arrays, PyObject *lease) {
    PyObject *type, *value, *traceback; /* of the call itself; its frames may keep arrays */
    PyErr_Fetch(&type, &value, &traceback);
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arrays); i++) {
        PyObject *array = PyTuple_GET_ITEM(arrays, i);
        if (Py_REFCNT(array) > 1 && hilo_array_keep((PyArrayObject *)array, lease) < 0) failed = 1;
    }
    Py_DECREF(arrays);
    if (type) {
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
    return failed || type ? -1 : 0;
}

static int32_t call_python(const struct hilo_host *host, struct hilo_run *run, void **bufs) {
    PyObject *lease = run_lease(run);
    PyObject *arrays = lease ? wrap_all(host, bufs, lease) : NULL;
    if (!arrays) return HILO_HOST_CALL_FAILED;
    Py_ssize_t operands = host->operands.count, given = host->fills ? PyTuple_GET_SIZE(arrays) : operands;
    PyObject **items = &PyTuple_GET_ITEM(arrays, 0);
    PyObject *returned = PyObject_Vectorcall(host->function, items, (size_t)given, NULL);
    if (returned) {
        store_results(host, returned, items + operands);
        Py_DECREF(returned);
    }
    return release_arrays(arrays, lease) < 0 ? HILO_HOST_CALL_FAILED : 0;
}

int32_t hilo_host_call(struct hilo_ctx *ctx, int64_t index, void **bufs) {
    struct hilo_run *run = (struct hilo_run *)ctx;
    if (hilo_pool_inside()) return HILO_HOST_CALL_IN_WORKER;
    struct hilo_host *host = index >= 0 && index < run->program->num_hosts ? &run->program->hosts[index] : NULL;
    int32_t code = HILO_HOST_CALL_FAILED;
    hilo_fp_leave(run->host_fp);
    if (host && host->foreign) {
        code = hilo_foreign_call(host->foreign, bufs, ctx->message, (size_t)ctx->message_size, &run->text);
        if (code) ctx->failed = index;
    } else {
        int released = run->released != NULL;
        if (released) PyEval_RestoreThread(run->released);
        if (host)
            code = call_python(host, run, bufs);
        else
            hilo_raise("%U: there is no host call %lld", run->program->name, (long long)index);
        if (released) run->released = PyEval_SaveThread();
    }
    run->host_fp = hilo_fp_enter();
    return code;
}
