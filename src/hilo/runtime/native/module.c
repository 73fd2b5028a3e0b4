/* hilo.runtime._native: the part of the runtime that must be native. */
#define _GNU_SOURCE
#define HILO_IMPORTS_NUMPY
#include "arrays.h"

#include <time.h>

#include "dlpack.h"
#include "foreign.h"
#include "memory.h"
#include "pjrt/pjrt.h"
#include "pool.h"
#include "program.h"
#include "ready.h"

static PyObject *set_cores(PyObject *module, PyObject *arg) {
    (void)module;
    long cores = PyLong_AsLong(arg);
    if (cores == -1 && PyErr_Occurred()) return NULL;
    hilo_pool_set_cores(cores < 1 ? 1 : cores > HILO_MAX_THREADS ? HILO_MAX_THREADS : (int)cores);
    Py_RETURN_NONE;
}

static PyObject *set_memory_limit(PyObject *module, PyObject *arg) {
    (void)module;
    size_t limit = PyLong_AsSize_t(arg);
    if (limit == (size_t)-1 && PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS
    hilo_memory_set_limit(limit);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *memory_stats(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    struct hilo_memory_stats s = hilo_memory_stats();
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "in_use", (Py_ssize_t)s.in_use, "kept", (Py_ssize_t)s.kept, "limit",
                         (Py_ssize_t)s.limit, "hits", (Py_ssize_t)s.hits, "misses", (Py_ssize_t)s.misses);
}

static PyObject *empty(PyObject *module, PyObject *args) {
    (void)module;
    struct hilo_specs specs;
    PyObject *pair = PyTuple_Pack(1, args);
    PyObject *array = NULL;
    if (pair && hilo_specs_parse(pair, &specs) == 0) array = (PyObject *)hilo_array_new(&specs.items[0]);
    if (pair) hilo_specs_clear(&specs);
    Py_XDECREF(pair);
    return array;
}

static PyObject *workers(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLong(hilo_pool_workers());
}

static PyObject *ready(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *found = PyDict_New();
    struct {
        const char *name;
        void *address;
    } functions[] = {
        {"conv_walk", (void *)hilo_conv_walk},       {"radix_starts", (void *)hilo_radix_starts},
        {"radix_count", (void *)hilo_radix_count},   {"radix_move", (void *)hilo_radix_move},
        {"radix_pass", (void *)hilo_radix_pass},     {"radix_last", (void *)hilo_radix_last},
        {"bytes_flip", (void *)hilo_bytes_flip},     {"bytes_group", (void *)hilo_bytes_group},
        {"bytes_sum", (void *)hilo_bytes_sum},
    };
    for (size_t i = 0; found && i < sizeof functions / sizeof *functions; i++) {
        PyObject *address = PyLong_FromVoidPtr(functions[i].address);
        if (!address || PyDict_SetItemString(found, functions[i].name, address) < 0) Py_CLEAR(found);
        Py_XDECREF(address);
    }
    return found;
}

static PyObject *pjrt_api(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromVoidPtr((void *)hilo_pjrt_api());
}

/* Waits, without the GIL, for what other threads do. NULL: a signal's handler raised. */
static PyObject *wait_until(bool (*is_so)(void)) {
    while (!is_so()) {
        Py_BEGIN_ALLOW_THREADS
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0) return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *pjrt_settle(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    pjrt_queues_mark(); /* what is queued from now on, by threads that never end, is not waited for */
    return wait_until(pjrt_queues_are_idle);
}

static PyObject *pjrt_end(PyObject *module, PyObject *unused) {
    PyObject *settled = pjrt_settle(module, unused);
    if (!settled) return NULL;
    Py_DECREF(settled);
    return wait_until(pjrt_python_end);
}

static PyObject *pjrt_set_patience_to(PyObject *module, PyObject *seconds) {
    (void)module;
    long n = PyLong_AsLong(seconds);
    if (n == -1 && PyErr_Occurred()) return NULL;
    pjrt_set_patience((int)n);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_cores", set_cores, METH_O, PyDoc_STR("set_cores(n)\n--\n\nWith more threads than n nobody spins.")},
    {"set_memory_limit", set_memory_limit, METH_O,
     PyDoc_STR("set_memory_limit(nbytes)\n--\n\nBounds the memory kept for reuse, and releases what is over it.")},
    {"memory_stats", memory_stats, METH_NOARGS,
     PyDoc_STR("memory_stats()\n--\n\nThe memory pool: bytes in_use, kept, limit; allocations that were hits, misses.")},
    {"empty", empty, METH_VARARGS,
     PyDoc_STR("empty(dtype, shape)\n--\n\nA numpy array over pooled memory, 64-byte aligned, contents arbitrary.")},
    {"from_dlpack", hilo_from_dlpack, METH_VARARGS,
     PyDoc_STR("from_dlpack(capsule, dtypes)\n--\n\nA read-only array over what a DLPack capsule holds.")},
    {"pjrt_api", pjrt_api, METH_NOARGS,
     PyDoc_STR("pjrt_api()\n--\n\nThe address of the PJRT C API's table of functions.")},
    {"pjrt_set_patience", pjrt_set_patience_to, METH_O,
     PyDoc_STR("pjrt_set_patience(seconds)\n--\n\nHow long a compilation for a topology waits for the GIL; for tests.")},
    {"pjrt_end", pjrt_end, METH_NOARGS,
     PyDoc_STR("pjrt_end()\n--\n\nAt the end of Python: waits for what clients of PJRT have queued, or do with Python.")},
    {"pjrt_settle", pjrt_settle, METH_NOARGS,
     PyDoc_STR("pjrt_settle()\n--\n\nWaits until all that clients of PJRT have queued is done.")},
    {"ready", ready, METH_NOARGS,
     PyDoc_STR("ready()\n--\n\nAddresses of the functions, by name, that programs need not bring along.")},
    {"register_ffi_type", hilo_register_ffi_type, METH_VARARGS,
     PyDoc_STR("register_ffi_type(name, type_id, type_info)\n--\n\nRegisters a type of states by addresses.")},
    {"workers", workers, METH_NOARGS, PyDoc_STR("workers()\n--\n\nNumber of worker threads alive.")},
    {NULL, NULL, 0, NULL},
};

static int exec_module(PyObject *module) {
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "hilo.runtime._native does not support subinterpreters");
        return -1;
    }
    if (_import_array() < 0) return -1;
    if (PyType_Ready(&hilo_Buffer_Type) < 0 || PyType_Ready(&hilo_Lease_Type) < 0) return -1;
    if (PyModule_AddType(module, &hilo_Foreign_Type) < 0) return -1;
    return PyModule_AddType(module, &hilo_Program_Type);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hilo.runtime._native",
    .m_doc = PyDoc_STR("Thread pool, pooled memory and callable programs."),
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
