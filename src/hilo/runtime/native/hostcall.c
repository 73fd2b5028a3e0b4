/* Calls from a program into Python: custom calls.
 *
 * `bufs` holds pointers to the operands, then the results. The function gets copies of the operands as arrays (it may
 * keep them) and returns an array, or a sequence of arrays, that must be exactly what the program expects. It runs in
 * the thread that called the program, with the GIL and with that thread's own floating-point state. An exception ends
 * the program and comes out of the call.
 */
#include "program.h"

#include <string.h>

#include "pool.h"

int hilo_hosts_parse(PyObject *sequence, struct hilo_program *program) {
    PyObject *items = PySequence_Fast(sequence, "host_calls: expected a sequence");
    if (!items) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int failed = 0;
    program->hosts = PyMem_Calloc(count ? (size_t)count : 1, sizeof *program->hosts);
    if (!program->hosts) failed = PyErr_NoMemory() == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        struct hilo_host *host = &program->hosts[i];
        PyObject *parts[3];
        program->num_hosts = i + 1;
        failed = hilo_unpack(PySequence_Fast_GET_ITEM(items, i), 3, parts, "(function, operands, results)") < 0;
        if (failed) break;
        host->function = Py_NewRef(parts[0]);
        failed = hilo_specs_parse(parts[1], &host->operands) < 0 || hilo_specs_parse(parts[2], &host->results) < 0;
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

/* The operands as a tuple of new arrays. */
static PyObject *copy_operands(const struct hilo_host *host, void **bufs) {
    PyObject *tuple = PyTuple_New(host->operands.count);
    for (Py_ssize_t i = 0; tuple && i < host->operands.count; i++) {
        PyArrayObject *array = hilo_array_new(&host->operands.items[i]);
        if (array) {
            memcpy(PyArray_DATA(array), bufs[i], host->operands.items[i].nbytes);
            PyTuple_SET_ITEM(tuple, i, (PyObject *)array);
        } else {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

static int store_results(const struct hilo_host *host, PyObject *returned, void **bufs) {
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
        const struct hilo_spec *spec = &host->results.items[i];
        PyArrayObject *array = hilo_spec_fits(spec, item) ? (PyArrayObject *)Py_NewRef(item)
                                                          : hilo_spec_adapt(spec, item, "result of a host call", i);
        failed = array == NULL;
        if (array) memcpy(bufs[i], PyArray_DATA(array), spec->nbytes);
        Py_XDECREF(array);
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

static int32_t call_function(const struct hilo_host *host, void **bufs) {
    PyObject *operands = copy_operands(host, bufs);
    PyObject *returned = operands ? PyObject_CallObject(host->function, operands) : NULL;
    int failed = !returned || store_results(host, returned, bufs + host->operands.count) < 0;
    Py_XDECREF(returned);
    Py_XDECREF(operands);
    return failed ? HILO_HOST_CALL_FAILED : 0;
}

int32_t hilo_host_call(struct hilo_ctx *ctx, int64_t index, void **bufs) {
    struct hilo_run *run = (struct hilo_run *)ctx;
    if (hilo_pool_inside()) return HILO_HOST_CALL_IN_WORKER;
    int released = run->released != NULL;
    if (released) PyEval_RestoreThread(run->released);
    hilo_fp_leave(run->host_fp);
    int32_t code = HILO_HOST_CALL_FAILED;
    if (index < 0 || index >= run->program->num_hosts)
        hilo_raise("%U: there is no host call %lld", run->program->name, (long long)index);
    else
        code = call_function(&run->program->hosts[index], bufs);
    run->host_fp = hilo_fp_enter();
    if (released) run->released = PyEval_SaveThread();
    return code;
}
