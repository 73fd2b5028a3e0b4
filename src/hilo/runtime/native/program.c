/* A compiled program as a Python callable (program.h): program(*arrays) -> list of arrays.
 *
 * Donation: `program.consume(list)` empties the list, so that the call owns the references, and lets results take the
 * memory of arguments (the program's `aliases`) that nobody else can see. A plain call cannot tell a caller's variable
 * from a view by counting references, and therefore never overwrites anything.
 */
#include "program.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "forms.h"
#include "memory.h"
#include "pool.h"

#define ON_STACK 64 /* pointers to arguments and results up to which a call needs no extra memory */

/* Calling. */

/* What an argument without elements points to: code may look at a first element that it does not use. */
static _Alignas(64) char nothing[4096];

/* Fills `pointers` from the arguments, and `shapes` (if any sizes are run-time sizes). `*adapted` becomes a list that owns
 * arrays made for this call, or NULL. */
static int take_arguments(struct hilo_program *p, PyObject *const *args, void **pointers, npy_intp **shapes,
                          PyObject **adapted) {
    for (Py_ssize_t i = 0; i < p->arguments.count; i++) {
        const struct hilo_spec *spec = &p->arguments.items[i];
        PyArrayObject *array = (PyArrayObject *)args[i];
        if (!hilo_spec_fits(spec, args[i])) {
            if (!*adapted && !(*adapted = PyList_New(0))) return -1;
            array = hilo_spec_adapt(spec, args[i], "argument", i);
            if (!array) return -1;
            int failed = PyList_Append(*adapted, (PyObject *)array);
            Py_DECREF(array);
            if (failed) return -1;
        }
        pointers[i] = PyArray_DATA(array);
        if (shapes) {
            shapes[i] = PyArray_DIMS(array);
            if (PyArray_SIZE(array) == 0) pointers[i] = nothing;
        }
    }
    return 0;
}

/* Whether nobody but this call can see the memory of an argument. The call holds its only reference (so there is neither
 * a view nor another name for it, nor is it given twice), and it, or a block of ours that only it uses, is the owner. */
static int is_exclusive(PyObject *object) {
    if (Py_REFCNT(object) != 1 || !PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_CHKFLAGS(array, NPY_ARRAY_CARRAY)) return 0;
    PyObject *base = PyArray_BASE(array);
    int owned = base ? Py_TYPE(base) == &hilo_Buffer_Type && Py_REFCNT(base) == 1
                     : PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
    return owned && ((uintptr_t)PyArray_DATA(array) & 63) == 0; /* results are 64-byte aligned */
}

/* Puts results that take the place of an argument into the list. */
static int reuse_arguments(struct hilo_program *p, PyObject *const *args, void **pointers, PyObject *list) {
    for (Py_ssize_t i = 0; i < p->num_aliases; i++) {
        PyObject *object = args[p->aliases[i].argument];
        const struct hilo_spec *spec = &p->results.items[p->aliases[i].result];
        void *data = pointers[p->aliases[i].argument];
        if (!is_exclusive(object) || data != PyArray_DATA((PyArrayObject *)object)) continue;
        PyObject *array = Py_NewRef(object);
        if (!hilo_spec_fits(spec, object)) array = (PyObject *)hilo_array_over(spec, data, array);
        if (!array) return -1;
        PyList_SET_ITEM(list, p->aliases[i].result, array);
    }
    return 0;
}

/* `sizes`: those of all results' axes, or NULL if they are known. */
static PyObject *make_results(struct hilo_program *p, PyObject *const *args, void **arguments, void **results, int donate,
                              int64_t *sizes) {
    PyObject *list = PyList_New(p->results.count);
    if (list && donate && reuse_arguments(p, args, arguments, list) < 0) Py_CLEAR(list);
    for (Py_ssize_t i = 0; list && i < p->results.count; i++) {
        PyArrayObject *array = (PyArrayObject *)PyList_GET_ITEM(list, i);
        const struct hilo_spec *spec = &p->results.items[i];
        struct hilo_spec closed;
        if (sizes) {
            if (hilo_spec_close(spec, (npy_intp *)sizes, &closed) < 0) {
                Py_CLEAR(list);
                break;
            }
            sizes += spec->ndim;
            spec = &closed;
        }
        if (!array && !(array = hilo_array_new(spec))) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, (PyObject *)array);
        results[i] = PyArray_DATA(array);
    }
    return list;
}

int32_t hilo_run_code(struct hilo_run *run, void **arguments, void **results, void *arena) {
    struct hilo_program *p = run->program;
    run->ctx = (struct hilo_ctx){hilo_parallel_for, p->constants,        hilo_host_call, p->threads,
                                 run->message,      sizeof run->message, -1, run->forms ? run->forms : p->no_forms};
    run->message[0] = 0;
    run->text = NULL;
    run->lease = NULL;
    run->host_fp = hilo_fp_enter();
    if (p->threads > 1) hilo_pool_enter();
    int32_t code = p->entry(&run->ctx, arguments, results, arena);
    if (p->threads > 1) hilo_pool_leave();
    hilo_fp_leave(run->host_fp);
    return code;
}

static int32_t run_entry(struct hilo_run *run, void **arguments, void **results, void *arena) {
    run->released = run->program->release_gil ? PyEval_SaveThread() : NULL;
    int32_t code = hilo_run_code(run, arguments, results, arena);
    if (run->released) PyEval_RestoreThread(run->released);
    return code;
}

/* Raises the error of a custom call in native code. */
static void raise_failure(struct hilo_program *p, struct hilo_run *run, int32_t code) {
    run->message[sizeof run->message - 1] = 0;
    const char *said = run->text ? run->text : run->message;
    PyObject *text = PyUnicode_DecodeUTF8(said, (Py_ssize_t)strlen(said), "replace");
    PyObject *error = NULL;
    if (text) error = PyObject_CallFunction(p->failure, "LiO", (long long)run->ctx.failed, (int)code, text);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(text);
}

/* After a call: gives the memory of the call to those who keep views of it, if there are any; whether it did. */
static int end_lease(struct hilo_run *run, PyObject *const *args, PyObject *adapted, PyObject *list, void *arena,
                     size_t arena_size) {
    struct hilo_lease *lease = run->lease;
    if (!lease) return 0;
    int kept = Py_REFCNT(lease) > 1;
    if (kept) { /* if there is no memory for this little list, the arguments and results must not go either */
        PyObject *all = PyList_New(0);
        for (Py_ssize_t i = 0; all && i < run->program->arguments.count; i++) PyList_Append(all, args[i]);
        if (all && adapted) PyList_Append(all, adapted);
        if (all && list) PyList_Append(all, list);
        if (all) PyList_Append(all, (PyObject *)run->program);
        lease->keep = all;
        lease->arena = arena;
        lease->arena_size = arena_size;
    }
    Py_DECREF(lease);
    return kept;
}

/* Turns an error code into an exception. */
static void raise_code(struct hilo_program *p, int32_t code) {
    if (PyErr_Occurred()) return;
    if (code == HILO_HOST_CALL_IN_WORKER) {
        hilo_raise("%U: a host call inside a parallel loop", p->name);
        return;
    }
    PyObject *message = NULL;
    if (p->errors != Py_None) {
        PyObject *key = PyLong_FromLong(code);
        message = key ? PyObject_GetItem(p->errors, key) : NULL;
        Py_XDECREF(key);
        if (!message && !PyErr_ExceptionMatches(PyExc_LookupError)) return;
        PyErr_Clear();
    }
    if (message)
        hilo_raise("%U: %S", p->name, message);
    else
        hilo_raise("%U: the program failed with code %d", p->name, (int)code);
    Py_XDECREF(message);
}

void hilo_run_raise(struct hilo_run *run, int32_t code) {
    struct hilo_program *p = run->program;
    if (!PyErr_Occurred() && run->ctx.failed >= 0 && p->failure != Py_None)
        raise_failure(p, run, code);
    else
        raise_code(p, code);
    free(run->text);
    run->text = NULL;
}

static PyObject *call_with(struct hilo_program *p, PyObject *const *args, void **arguments, void **results, int donate) {
    PyObject *adapted = NULL, *list = NULL;
    void *arena = NULL, *block = NULL;
    size_t arena_size = p->arena_size;
    int64_t *sizes = NULL;
    if (p->shapes) { /* pointers to shapes, pointers to arguments and symbols, numbers */
        Py_ssize_t n = p->arguments.count;
        block = PyMem_Malloc(((size_t)(2 * n + 1) + (size_t)(p->num_symbols + p->num_sizes)) * 8);
        if (!block) {
            PyErr_NoMemory();
            goto done;
        }
        npy_intp **shapes = block;
        void **extended = (void **)block + n;
        sizes = (int64_t *)block + 2 * n + 1;
        if (take_arguments(p, args, extended, shapes, &adapted) < 0 ||
            hilo_sizes_compute(p, extended, shapes, sizes) < 0)
            goto done;
        extended[n] = sizes;
        arguments = extended;
        sizes += p->num_symbols;
        arena_size = (size_t)*sizes++;
    } else if (take_arguments(p, args, arguments, NULL, &adapted) < 0) {
        goto done;
    }
    list = make_results(p, args, arguments, results, donate, sizes);
    if (!list) goto done;
    if (arena_size && !(arena = hilo_memory_alloc(arena_size))) {
        PyErr_NoMemory();
        Py_CLEAR(list);
        goto done;
    }
    struct hilo_run run = {.program = p};
    int32_t code = run_entry(&run, arguments, results, arena);
    if (run.lease && end_lease(&run, args, adapted, list, arena, arena_size)) arena = NULL;
    if (code || (p->num_hosts && PyErr_Occurred())) {
        hilo_run_raise(&run, code);
        Py_CLEAR(list);
    }
    hilo_memory_free(arena, arena_size);
done:
    PyMem_Free(block);
    Py_XDECREF(adapted);
    return list;
}

static PyObject *call_checked(struct hilo_program *p, PyObject *const *args, Py_ssize_t given, int donate) {
    Py_ssize_t count = p->arguments.count + p->results.count;
    if (given != p->arguments.count)
        return hilo_raise("%U takes %zd arguments, got %zd", p->name, p->arguments.count, given);
    void *stack[ON_STACK];
    void **pointers = count <= ON_STACK ? stack : PyMem_New(void *, count);
    if (!pointers) return PyErr_NoMemory();
    PyObject *list = call_with(p, args, pointers, pointers + p->arguments.count, donate);
    if (pointers != stack) PyMem_Free(pointers);
    return list;
}

static PyObject *program_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    struct hilo_program *p = (struct hilo_program *)self;
    if (kwnames && PyTuple_GET_SIZE(kwnames))
        return hilo_raise("%U takes no keyword arguments, got %R", p->name, PyTuple_GET_ITEM(kwnames, 0));
    return call_checked(p, args, PyVectorcall_NARGS(nargsf), 0);
}

static PyObject *program_consume(PyObject *self, PyObject *arrays) {
    if (!PyList_Check(arrays)) {
        PyErr_Format(PyExc_TypeError, "consume expects a list, got a %.200s", Py_TYPE(arrays)->tp_name);
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(arrays);
    PyObject **args = PyMem_New(PyObject *, count ? count : 1);
    if (!args) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) args[i] = Py_NewRef(PyList_GET_ITEM(arrays, i));
    PyObject *list = NULL;
    if (PyList_SetSlice(arrays, 0, count, NULL) == 0) list = call_checked((struct hilo_program *)self, args, count, 1);
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(args[i]);
    PyMem_Free(args);
    return list;
}

/* Construction. */

/* `addresses`, of code that somebody else keeps, stand behind the constants. */
static int take_constants(struct hilo_program *p, PyObject *sequence, PyObject *addresses) {
    p->constant_arrays = PySequence_Tuple(sequence);
    if (!p->constant_arrays) return -1;
    p->num_constants = PyTuple_GET_SIZE(p->constant_arrays);
    Py_ssize_t more = PySequence_Size(addresses);
    if (more < 0) return -1;
    p->constants = PyMem_New(void *, p->num_constants + more + 1);
    if (!p->constants) return PyErr_NoMemory() ? 0 : -1;
    for (Py_ssize_t i = 0; i < more; i++) {
        PyObject *item = PySequence_GetItem(addresses, i);
        p->constants[p->num_constants + i] = item ? PyLong_AsVoidPtr(item) : NULL;
        Py_XDECREF(item);
        if (PyErr_Occurred()) return -1;
    }
    for (Py_ssize_t i = 0; i < p->num_constants; i++) {
        PyObject *item = PyTuple_GET_ITEM(p->constant_arrays, i);
        if (!PyArray_Check(item) ||
            !PyArray_CHKFLAGS((PyArrayObject *)item, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)) {
            PyErr_Format(PyExc_TypeError, "constant %zd: expected a dense numpy array", i);
            return -1;
        }
        p->constants[i] = PyArray_DATA((PyArrayObject *)item);
    }
    return 0;
}

static int take_aliases(struct hilo_program *p, PyObject *sequence) {
    PyObject *items = PySequence_Fast(sequence, "aliases: expected a sequence of (result, argument)");
    if (!items) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int failed = 0;
    p->aliases = PyMem_New(struct hilo_alias, count ? count : 1);
    if (!p->aliases) failed = PyErr_NoMemory() == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *pair[2];
        failed = hilo_unpack(PySequence_Fast_GET_ITEM(items, i), 2, pair, "(result, argument)") < 0;
        if (failed) break;
        struct hilo_alias a = {PyLong_AsSsize_t(pair[0]), PyLong_AsSsize_t(pair[1])};
        if (PyErr_Occurred()) PyErr_Clear(); /* -1: not valid either */
        int valid = a.result >= 0 && a.result < p->results.count && a.argument >= 0 && a.argument < p->arguments.count &&
                    p->results.items[a.result].nbytes == p->arguments.items[a.argument].nbytes;
        for (Py_ssize_t j = 0; j < i; j++)
            valid &= p->aliases[j].result != a.result && p->aliases[j].argument != a.argument;
        if (!valid) {
            PyErr_Format(PyExc_ValueError, "aliases: result %zd cannot take the place of argument %zd", a.result, a.argument);
            failed = 1;
        }
        p->aliases[i] = a;
        p->num_aliases = i + 1;
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"entry",   "arguments",  "results", "name",        "arena_size", "constants",
                            "threads", "host_calls", "aliases", "release_gil", "errors",     "keep",
                            "shapes",  "symbols",    "explain", "failure",     "addresses",  "forms",       NULL};
    PyObject *entry, *arguments, *results, *name = NULL, *errors = Py_None, *keep = Py_None;
    PyObject *constants = NULL, *hosts = NULL, *aliases = NULL, *shapes = NULL, *symbols = NULL, *explain = Py_None;
    PyObject *failure = Py_None, *addresses = NULL, *forms = NULL;
    Py_ssize_t arena_size = 0;
    long long threads = 1;
    int release_gil = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|$UnOLOOpOOOOOOOO:Program", names, &entry, &arguments, &results, &name,
                                     &arena_size, &constants, &threads, &hosts, &aliases, &release_gil, &errors, &keep, &shapes, &symbols,
                                     &explain, &failure, &addresses, &forms))
        return NULL;
    if (arena_size < 0 || threads < 1) {
        PyErr_SetString(PyExc_ValueError, "arena_size must be at least 0 and threads at least 1");
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(entry);
    if (!address) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the entry address is null");
        return NULL;
    }
    struct hilo_program *p = (struct hilo_program *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->call = program_vectorcall;
    p->entry = (hilo_entry)(uintptr_t)address;
    p->arena_size = (size_t)arena_size;
    p->threads = threads < HILO_MAX_THREADS ? threads : HILO_MAX_THREADS;
    p->release_gil = release_gil;
    p->name = name ? Py_NewRef(name) : PyUnicode_FromString("program");
    p->errors = Py_NewRef(errors);
    p->keep = Py_NewRef(keep);
    p->explain = Py_NewRef(explain);
    p->failure = Py_NewRef(failure);
    p->shapes = (hilo_shapes)(uintptr_t)(shapes ? PyLong_AsVoidPtr(shapes) : NULL);
    PyObject *empty = PyTuple_New(0);
    int failed = !p->name || !empty || hilo_specs_parse(arguments, &p->arguments) < 0 ||
                 hilo_specs_parse(results, &p->results) < 0 || take_constants(p, constants ? constants : empty, addresses ? addresses : empty) < 0 ||
                 hilo_hosts_parse(hosts ? hosts : empty, p) < 0 || take_aliases(p, aliases ? aliases : empty) < 0 ||
                 hilo_symbols_parse(symbols ? symbols : empty, p) < 0 || hilo_forms_parse(forms ? forms : empty, p) < 0;
    Py_XDECREF(empty);
    if (failed) Py_CLEAR(p);
    return (PyObject *)p;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg) {
    struct hilo_program *p = (struct hilo_program *)self;
    Py_VISIT(p->constant_arrays);
    Py_VISIT(p->errors);
    Py_VISIT(p->explain);
    Py_VISIT(p->failure);
    Py_VISIT(p->keep);
    for (Py_ssize_t i = 0; i < p->num_hosts; i++) Py_VISIT(p->hosts[i].function);
    return 0;
}

/* Breaks cycles: they can only go through these. */
static int program_clear(PyObject *self) {
    struct hilo_program *p = (struct hilo_program *)self;
    hilo_hosts_clear(p);
    if (p->failure) Py_SETREF(p->failure, Py_NewRef(Py_None));
    Py_CLEAR(p->keep);
    return 0;
}

static void program_dealloc(PyObject *self) {
    struct hilo_program *p = (struct hilo_program *)self;
    PyObject_GC_UnTrack(self);
    program_clear(self);
    hilo_specs_clear(&p->arguments);
    hilo_specs_clear(&p->results);
    PyMem_Free(p->constants);
    PyMem_Free(p->aliases);
    Py_XDECREF(p->constant_arrays);
    Py_XDECREF(p->errors);
    Py_XDECREF(p->explain);
    Py_XDECREF(p->failure);
    PyMem_Free(p->symbols);
    hilo_forms_clear(p);
    Py_XDECREF(p->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *program_repr(PyObject *self) {
    struct hilo_program *p = (struct hilo_program *)self;
    return PyUnicode_FromFormat("<Program %U: %zd arguments, %zd results, %lld threads>", p->name, p->arguments.count,
                                p->results.count, (long long)p->threads);
}

static PyMethodDef program_methods[] = {
    {"consume", program_consume, METH_O,
     PyDoc_STR("consume(arrays)\n--\n\nCall with a list of arrays that are given up: the list is emptied.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef program_members[] = {
    {"name", T_OBJECT, offsetof(struct hilo_program, name), READONLY, "name used in messages"},
    {"arena_size", T_PYSSIZET, offsetof(struct hilo_program, arena_size), READONLY, "bytes of temporaries of one call"},
    {"threads", T_LONGLONG, offsetof(struct hilo_program, threads), READONLY, "threads that a call may use"},
    {"keep", T_OBJECT, offsetof(struct hilo_program, keep), READONLY, "what lives as long as the program"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject hilo_Program_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "hilo.runtime._native.Program",
    .tp_basicsize = sizeof(struct hilo_program),
    .tp_new = program_new,
    .tp_dealloc = program_dealloc,
    .tp_traverse = program_traverse,
    .tp_clear = program_clear,
    .tp_repr = program_repr,
    .tp_methods = program_methods,
    .tp_members = program_members,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(struct hilo_program, call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = PyDoc_STR("Program(entry, arguments, results, *, name, arena_size, constants, threads, host_calls, aliases, "
                        "release_gil, errors, keep, shapes, symbols, explain, failure, addresses, forms)\n--\n\nCompiled code at an address, callable with arrays."),
};
