/* What needs Python: compilation, and what executables are asked about that calls do not need. With the GIL, which the
 * calling thread may or may not hold before; exceptions become errors. */
#include "python.h"

#include <stdlib.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030d0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

bool pjrt_python_alive(void) { return Py_IsInitialized() && !Py_IsFinalizing(); }

void *pjrt_python_pause(void) { return Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : NULL; }

void pjrt_python_resume(void *paused) {
    if (paused) PyEval_RestoreThread(paused);
}

/* The end. A thread that wants the GIL while Python ends is itself ended by Python, and its unwinding stops the process if
 * C++ destructors called us. So a thread without the GIL is counted while it wants or has it, Python's exit waits for those
 * (pjrt_python_end), and after that objects are given up by nobody. What somebody waits for is done even then. */

static atomic_int inside;
static atomic_bool ended;
static pthread_once_t forking = PTHREAD_ONCE_INIT;

static void in_child(void) { atomic_store(&inside, 0); } /* it has none of the threads that are counted */
static void register_fork(void) { pthread_atfork(NULL, NULL, in_child); }

struct visit {
    PyGILState_STATE state;
    bool counted;
};

/* Takes the GIL, or gives false where Python has ended; `is_awaited`: somebody waits for what is to be done. */
static bool enter(struct visit *visit, bool is_awaited) {
    if (!pjrt_python_alive()) return false;
    visit->counted = !PyGILState_Check();
    if (visit->counted) {
        pthread_once(&forking, register_fork);
        atomic_fetch_add(&inside, 1);
        if (!pjrt_python_alive() || (!is_awaited && atomic_load(&ended))) {
            atomic_fetch_sub(&inside, 1);
            return false;
        }
    }
    visit->state = PyGILState_Ensure();
    return true;
}

static void leave(struct visit *visit) {
    PyGILState_Release(visit->state);
    if (visit->counted) atomic_fetch_sub(&inside, 1);
}

bool pjrt_python_end(void) {
    atomic_store(&ended, true);
    return atomic_load(&inside) == 0;
}

void pjrt_python_release(PyObject *object) {
    struct visit visit;
    if (!object || !enter(&visit, false)) return;
    Py_DECREF(object);
    leave(&visit);
}

/* Exceptions as errors. */

static PyObject *error_class(const char *name) {
    PyObject *module = PyImport_ImportModule("hilo.errors");
    PyObject *class = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    if (!class) PyErr_Clear();
    return class;
}

static bool is_a(PyObject *value, const char *class_name) {
    PyObject *class = error_class(class_name);
    bool is = class && PyObject_IsInstance(value, class) == 1;
    Py_XDECREF(class);
    PyErr_Clear();
    return is;
}

/* The exception as Python prints it, with its traceback; or NULL. */
static PyObject *printed(PyObject *type, PyObject *value, PyObject *traceback) {
    PyObject *module = PyImport_ImportModule("traceback");
    PyObject *lines = NULL, *empty = NULL, *text = NULL;
    if (module)
        lines = PyObject_CallMethod(module, "format_exception", "OOO", type, value, traceback ? traceback : Py_None);
    if (lines) empty = PyUnicode_FromString("");
    if (empty) text = PyUnicode_Join(empty, lines);
    Py_XDECREF(module);
    Py_XDECREF(lines);
    Py_XDECREF(empty);
    PyErr_Clear();
    return text;
}

struct pjrt_error *pjrt_python_error(uint32_t code) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (!value) return pjrt_fail(PJRT_INTERNAL, "hilo: something failed, but nobody said why");
    PyObject *text = NULL;
    if (is_a(value, "Error")) {
        if (is_a(value, "Unsupported")) code = PJRT_UNIMPLEMENTED;
        text = PyObject_Str(value);
    } else if (PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) {
        code = PJRT_RESOURCE_EXHAUSTED;
        text = PyUnicode_FromString("hilo: there is no memory");
    } else if (PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt)) {
        code = PJRT_CANCELLED;
        text = PyUnicode_FromString("hilo: interrupted");
        PyErr_SetInterrupt(); /* and the caller's own Python code gets to know as well */
    } else {
        code = PJRT_INTERNAL;
        text = printed(type, value, traceback);
    }
    PyErr_Clear();
    Py_ssize_t size = 0;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    struct pjrt_error *error = message ? pjrt_fail_text(code, message, (size_t)size)
                                       : pjrt_fail(code, "%s (whose text cannot be told)", Py_TYPE(value)->tp_name);
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return error;
}

/* Reading a `Loaded`. */

static struct pjrt_shape *read_shape(PyObject *place) {
    PyObject *parts[3];
    int64_t numbers[2][PJRT_MAX_RANK];
    if (hilo_unpack(place, 3, parts, "(type, dims, minor to major)") < 0) return NULL;
    unsigned long type = PyLong_AsUnsignedLong(parts[0]);
    Py_ssize_t rank = PyErr_Occurred() ? -1 : PySequence_Size(parts[1]);
    if (rank < 0) return NULL;
    if (rank > PJRT_MAX_RANK || PySequence_Size(parts[2]) != rank)
        return hilo_raise("an array of rank %zd, with an order of other dimensions or too many", rank);
    for (int part = 0; part < 2; part++)
        for (Py_ssize_t i = 0; i < rank; i++) {
            PyObject *item = PySequence_GetItem(parts[part + 1], i);
            numbers[part][i] = item ? PyLong_AsLongLong(item) : 0;
            Py_XDECREF(item);
            if (PyErr_Occurred()) return NULL;
        }
    struct pjrt_error *error = NULL;
    struct pjrt_shape *shape = pjrt_shape_new((uint32_t)type, numbers[0], (size_t)rank, numbers[1], &error);
    if (!shape) hilo_raise("%s", error ? error->message : "there is no memory");
    pjrt_error_free(error);
    return shape;
}

static const struct pjrt_memory_description *read_kind(PyObject *kind) {
    const char *text = PyUnicode_AsUTF8(kind);
    for (int i = 0; text && i < PJRT_MEMORIES; i++)
        if (!strcmp(text, pjrt_memory_kinds[i].kind)) return &pjrt_memory_kinds[i];
    return text ? hilo_raise("there is no memory of the kind '%s'", text) : NULL;
}

/* The arrays on one side of the program: shapes and kinds of memory. */
static int read_side(PyObject *loaded, const char *name, const char *kinds_name, const struct hilo_specs *specs,
                     size_t *count, struct pjrt_shape ***shapes, const struct pjrt_memory_description ***kinds) {
    PyObject *places = PyObject_GetAttrString(loaded, name), *names = PyObject_GetAttrString(loaded, kinds_name);
    PyObject *a = places ? PySequence_Fast(places, "expected a sequence") : NULL;
    PyObject *b = names ? PySequence_Fast(names, "expected a sequence") : NULL;
    int failed = !a || !b;
    if (!failed && (PySequence_Fast_GET_SIZE(a) != specs->count || PySequence_Fast_GET_SIZE(b) != specs->count))
        failed = hilo_raise("%s: the native program has %zd", name, specs->count) == NULL;
    if (!failed) {
        *shapes = calloc((size_t)specs->count + 1, sizeof **shapes);
        *kinds = calloc((size_t)specs->count + 1, sizeof **kinds);
        if (!*shapes || !*kinds) failed = PyErr_NoMemory() == NULL;
    }
    for (Py_ssize_t i = 0; !failed && i < specs->count; i++) {
        struct pjrt_shape *shape = (*shapes)[i] = read_shape(PySequence_Fast_GET_ITEM(a, i));
        (*kinds)[i] = shape ? read_kind(PySequence_Fast_GET_ITEM(b, i)) : NULL;
        failed = !(*kinds)[i];
        *count = (size_t)i + 1;
        if (!failed && shape->nbytes != specs->items[i].nbytes)
            failed = hilo_raise("%s %zd: %zu bytes, but %zu in the native program", name, i, shape->nbytes,
                                specs->items[i].nbytes) == NULL;
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(places);
    Py_XDECREF(names);
    return failed ? -1 : 0;
}

static int read_donated(PyObject *loaded, struct pjrt_executable *e) {
    PyObject *list = PyObject_GetAttrString(loaded, "donated");
    PyObject *items = list ? PySequence_Fast(list, "expected a sequence") : NULL;
    int failed = !items;
    if (items && !(e->donated = calloc(e->num_arguments + 1, sizeof *e->donated))) failed = PyErr_NoMemory() == NULL;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(items); i++) {
        size_t k = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(items, i));
        failed = PyErr_Occurred() != NULL;
        if (!failed && k >= e->num_arguments) failed = hilo_raise("there is no argument %zu to donate", k) == NULL;
        if (!failed) e->donated[k] = true;
    }
    Py_XDECREF(items);
    Py_XDECREF(list);
    return failed ? -1 : 0;
}

static int read_size(PyObject *loaded, const char *name, size_t *size) {
    PyObject *value = PyObject_GetAttrString(loaded, name);
    if (value) *size = PyLong_AsSize_t(value);
    Py_XDECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* A copy of a text (as UTF-8) or bytes. */
static int copy_bytes(PyObject *object, struct pjrt_bytes *bytes) {
    const char *data = NULL;
    Py_ssize_t size = 0;
    if (PyUnicode_Check(object)) {
        data = PyUnicode_AsUTF8AndSize(object, &size);
    } else if (PyBytes_Check(object)) {
        data = PyBytes_AS_STRING(object);
        size = PyBytes_GET_SIZE(object);
    } else {
        PyErr_Format(PyExc_TypeError, "expected bytes or a text, got a %.100s", Py_TYPE(object)->tp_name);
    }
    char *copy = data ? malloc((size_t)size + 1) : NULL;
    if (!copy) {
        if (data) PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, data, (size_t)size);
    copy[size] = 0;
    *bytes = (struct pjrt_bytes){copy, (size_t)size};
    return 0;
}

static int read_bytes(PyObject *object, const char *name, struct pjrt_bytes *bytes) {
    PyObject *value = PyObject_GetAttrString(object, name);
    int failed = !value || copy_bytes(value, bytes) < 0;
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static int read_loaded(PyObject *loaded, struct pjrt_executable *e) {
    PyObject *native = PyObject_GetAttrString(loaded, "native");
    if (!native) return -1;
    if (!PyObject_TypeCheck(native, &hilo_Program_Type)) {
        PyErr_Format(PyExc_TypeError, "native: expected a Program, got a %.100s", Py_TYPE(native)->tp_name);
        Py_DECREF(native);
        return -1;
    }
    struct hilo_program *p = e->program = (struct hilo_program *)native; /* and its reference */
    e->loaded = Py_NewRef(loaded);
    for (Py_ssize_t i = 0; i < p->num_hosts; i++) e->calls_python |= p->hosts[i].foreign == NULL;
    PyObject *cost = PyObject_GetAttrString(loaded, "cost");
    e->cost = cost ? PyFloat_AsDouble(cost) : 0;
    Py_XDECREF(cost);
    struct pjrt_bytes name, fingerprint;
    if (PyErr_Occurred() || read_bytes(loaded, "name", &name) < 0) return -1;
    e->name = name.data;
    if (read_bytes(loaded, "fingerprint", &fingerprint) < 0) return -1;
    e->fingerprint = fingerprint.data;
    e->fingerprint_size = fingerprint.size;
    if (read_side(loaded, "arguments", "argument_kinds", &p->arguments, &e->num_arguments, &e->arguments,
                  &e->argument_kinds) < 0 ||
        read_side(loaded, "results", "result_kinds", &p->results, &e->num_results, &e->results, &e->result_kinds) < 0 ||
        read_donated(loaded, e) < 0)
        return -1;
    return read_size(loaded, "num_replicas", &e->num_replicas) < 0 || read_size(loaded, "num_partitions", &e->num_partitions) < 0
               ? -1
               : 0;
}

/* A new executable from `hilo.pjrt.compiler`'s answer (NULL: its exception). Needs the GIL. */
static struct pjrt_error *take(struct pjrt_client *client, PyObject *loaded, struct pjrt_executable **executable) {
    struct pjrt_executable *e = loaded ? pjrt_executable_new(client) : NULL;
    if (loaded && !e) PyErr_NoMemory();
    bool whole = e && read_loaded(loaded, e) == 0 && pjrt_executable_complete(e);
    struct pjrt_error *error = whole ? NULL
                               : PyErr_Occurred() ? pjrt_python_error(loaded ? PJRT_INTERNAL : PJRT_INVALID_ARGUMENT)
                                                  : pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for an executable");
    Py_XDECREF(loaded);
    if (!whole && e) pjrt_executable_release(e);
    if (whole) *executable = e;
    return error;
}

static PyObject *compiler(void) { return PyImport_ImportModule("hilo.pjrt.compiler"); }

static struct pjrt_error *not_alive(void) { return pjrt_fail(PJRT_FAILED_PRECONDITION, "Python, which compiles, has ended"); }

struct pjrt_error *pjrt_python_compile(struct pjrt_client *client, const struct pjrt_program *program, const char *options,
                                       size_t options_size, struct pjrt_executable **executable) {
    struct visit visit;
    if (!enter(&visit, true)) return not_alive();
    PyObject *module = compiler(), *loaded = NULL;
    if (module)
        loaded = PyObject_CallMethod(module, "compile", "s#y#y#", program->format, (Py_ssize_t)program->format_size,
                                     program->code, (Py_ssize_t)program->code_size, options ? options : "",
                                     (Py_ssize_t)options_size);
    Py_XDECREF(module);
    struct pjrt_error *error = take(client, loaded, executable);
    leave(&visit);
    return error;
}

struct pjrt_error *pjrt_python_load(struct pjrt_client *client, const char *data, size_t size, const char *options,
                                    size_t options_size, struct pjrt_executable **executable) {
    struct visit visit;
    if (!enter(&visit, true)) return not_alive();
    PyObject *module = compiler(), *loaded = NULL;
    if (module)
        loaded = PyObject_CallMethod(module, "load", "y#y#", data, (Py_ssize_t)size, options ? options : "",
                                     (Py_ssize_t)options_size);
    Py_XDECREF(module);
    struct pjrt_error *error = take(client, loaded, executable);
    leave(&visit);
    return error;
}

/* Questions. `read` puts the answer where `into` points; 0, or -1 with an exception. */

static struct pjrt_error *ask(struct pjrt_executable *e, const char *name, bool call, int (*read)(PyObject *, void *),
                              void *into) {
    struct visit visit;
    if (!enter(&visit, true)) return not_alive();
    PyObject *answer = call ? PyObject_CallMethod(e->loaded, name, NULL) : PyObject_GetAttrString(e->loaded, name);
    struct pjrt_error *error = NULL;
    if (!answer || read(answer, into) < 0) error = pjrt_python_error(PJRT_INTERNAL);
    Py_XDECREF(answer);
    leave(&visit);
    return error;
}

static int take_bytes(PyObject *answer, void *into) { return copy_bytes(answer, into); }

static int take_pair(PyObject *answer, void *into) {
    struct pjrt_bytes *pair = into;
    PyObject *parts[2];
    if (hilo_unpack(answer, 2, parts, "(format, bytes)") < 0 || copy_bytes(parts[0], &pair[0]) < 0) return -1;
    if (copy_bytes(parts[1], &pair[1]) == 0) return 0;
    free(pair[0].data);
    return -1;
}

static int take_number(PyObject *answer, void *into) {
    *(int64_t *)into = PyLong_AsLongLong(answer);
    return PyErr_Occurred() ? -1 : 0;
}

struct items {
    struct pjrt_named_value *values;
    size_t count;
};

/* Two passes over the dict: how many bytes its texts have, and the values, with the texts behind them. */
static int take_items(PyObject *answer, void *into) {
    if (!PyDict_Check(answer)) {
        PyErr_SetString(PyExc_TypeError, "expected a dict");
        return -1;
    }
    PyObject *key, *value;
    Py_ssize_t at = 0, size, text_size = 0;
    while (PyDict_Next(answer, &at, &key, &value)) {
        if (!PyUnicode_AsUTF8AndSize(key, &size)) return -1;
        text_size += size;
        if (PyUnicode_Check(value) && !PyUnicode_AsUTF8AndSize(value, &size)) return -1;
        if (PyUnicode_Check(value)) text_size += size;
    }
    size_t count = (size_t)PyDict_GET_SIZE(answer);
    struct pjrt_named_value *values = calloc(1, count * sizeof *values + (size_t)text_size + 1), *v = values;
    if (!values) return PyErr_NoMemory() ? 0 : -1;
    char *text = (char *)(values + count);
    for (at = 0; PyDict_Next(answer, &at, &key, &value); v++) {
        const char *name = PyUnicode_AsUTF8AndSize(key, &size);
        *v = (struct pjrt_named_value){.struct_size = sizeof *v, .name = memcpy(text, name, (size_t)size),
                                       .name_size = (size_t)size, .value_size = 1};
        text += size;
        if (PyUnicode_Check(value)) {
            const char *content = PyUnicode_AsUTF8AndSize(value, &size);
            v->type = PJRT_STRING;
            v->value.string = memcpy(text, content, (size_t)size);
            v->value_size = (size_t)size;
            text += size;
        } else if (PyLong_Check(value)) {
            v->type = PJRT_INTEGER;
            v->value.integer = PyLong_AsLongLong(value);
        } else {
            v->type = PJRT_REAL;
            v->value.real = (float)PyFloat_AsDouble(value);
        }
        if (PyErr_Occurred()) {
            free(values);
            return -1;
        }
    }
    *(struct items *)into = (struct items){values, count};
    return 0;
}

struct pjrt_error *pjrt_python_bytes(struct pjrt_executable *e, const char *method, struct pjrt_bytes *bytes) {
    return ask(e, method, true, take_bytes, bytes);
}

struct pjrt_error *pjrt_python_attribute(struct pjrt_executable *e, const char *name, struct pjrt_bytes *bytes) {
    return ask(e, name, false, take_bytes, bytes);
}

struct pjrt_error *pjrt_python_pair(struct pjrt_executable *e, const char *method, struct pjrt_bytes pair[2]) {
    return ask(e, method, true, take_pair, pair);
}

struct pjrt_error *pjrt_python_number(struct pjrt_executable *e, const char *method, int64_t *number) {
    return ask(e, method, true, take_number, number);
}

struct pjrt_error *pjrt_python_items(struct pjrt_executable *e, const char *method, struct pjrt_named_value **items,
                                     size_t *count) {
    struct items found = {NULL, 0};
    struct pjrt_error *error = ask(e, method, true, take_items, &found);
    *items = found.values;
    *count = found.count;
    return error;
}
