/* Native code that programs call, and the interpreter (foreign.h): `Foreign(...)(*arrays) -> list of arrays`. */
#include "foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "hilo_custom_call.h"

#define ON_STACK 4096

/* XLA's status, whose content only its functions know. Code that finds these two here tells us the reason; code that
 * brings its own leaves something else than zeros. */

#define STATUS_IS_OURS 0x6f6c6968u
struct status {
    uint32_t owner;
    char message[252];
};

__attribute__((visibility("default"))) void XlaCustomCallStatusSetFailure(struct status *s, const char *message, size_t n);
__attribute__((visibility("default"))) void XlaCustomCallStatusSetSuccess(struct status *s);

void XlaCustomCallStatusSetFailure(struct status *s, const char *message, size_t n) {
    s->owner = STATUS_IS_OURS;
    n = n < sizeof s->message ? n : sizeof s->message - 1;
    memcpy(s->message, message, n);
    s->message[n] = 0;
}

void XlaCustomCallStatusSetSuccess(struct status *s) { memset(s, 0, sizeof *s); }

static int32_t read_status(const struct status *s, char *message, size_t message_size) {
    static const struct status success;
    if (!memcmp(s, &success, sizeof success)) return 0;
    snprintf(message, message_size, "%s", s->owner == STATUS_IS_OURS ? s->message : "");
    return 1;
}

/* Calls. */

static int32_t call_plain(const struct hilo_foreign *f, void **bufs, int64_t *const *dims, struct hilo_buffer *room,
                          char *message, size_t message_size) {
    Py_ssize_t operands = f->operands.count, count = operands + f->results.count;
    for (Py_ssize_t i = 0; i < count; i++) {
        const struct hilo_spec *spec = i < operands ? &f->operands.items[i] : &f->results.items[i - operands];
        room[i] = (struct hilo_buffer){bufs[i], dims[i], spec->ndim, f->types[i]};
    }
    struct hilo_call call = {
        .size = sizeof call,
        .num_operands = operands,
        .num_results = f->results.count,
        .operands = room,
        .results = room + operands,
        .config = PyBytes_AS_STRING(f->config),
        .config_size = PyBytes_GET_SIZE(f->config),
        .message = message,
        .message_size = (int64_t)message_size,
    };
    return ((hilo_custom_call)(uintptr_t)f->code[FFI_EXECUTE])(&call);
}

static int32_t call_xla(const struct hilo_foreign *f, void **bufs, char *message, size_t message_size) {
    typedef void (*original)(void *out, const void **in);
    typedef void (*with_status)(void *out, const void **in, struct status *status);
    typedef void (*unified)(void *out, const void **in, const char *config, size_t config_size, struct status *status);
    uintptr_t code = (uintptr_t)f->code[FFI_EXECUTE];
    const void **in = (const void **)bufs;
    void **results = bufs + f->operands.count;
    void *out = f->is_tuple ? (void *)results : results[0];
    struct status status = {0};
    switch (f->convention) {
    case HILO_XLA: ((original)code)(out, in); break;
    case HILO_XLA_STATUS: ((with_status)code)(out, in, &status); break;
    default:
        ((unified)code)(out, in, PyBytes_AS_STRING(f->config), (size_t)PyBytes_GET_SIZE(f->config), &status);
    }
    return read_status(&status, message, message_size);
}

/* Room for a value's buffer, its address and its kind. */
struct ffi_slot {
    struct ffi_buffer buffer;
    void *address;
    int32_t kind;
};

static struct ffi_values ffi_values(const struct hilo_foreign *f, int which, void **bufs, int64_t *const *dims,
                                    struct ffi_buffer *buffers, void **addresses, int32_t *kinds) {
    Py_ssize_t first = which ? f->operands.count : 0;
    const struct hilo_spec *specs = which ? f->results.items : f->operands.items;
    for (Py_ssize_t i = 0; i < f->num_values[which]; i++) {
        Py_ssize_t k = f->values[which][i];
        buffers[i] = (struct ffi_buffer){.size = sizeof *buffers, .type = FFI_TOKEN};
        if (k >= 0)
            buffers[i] = (struct ffi_buffer){sizeof *buffers, NULL, f->types[first + k], bufs[first + k], specs[k].ndim,
                                             dims[first + k]};
        addresses[i] = &buffers[i];
        kinds[i] = FFI_BUFFER;
    }
    return (struct ffi_values){sizeof(struct ffi_values), NULL, f->num_values[which], kinds, addresses};
}

static char *call_ffi(const struct hilo_foreign *f, void **bufs, int64_t *const *dims, void *room) {
    Py_ssize_t n = f->num_values[0], total = n + f->num_values[1];
    struct ffi_buffer *buffers = room;
    void **addresses = (void **)(buffers + total);
    int32_t *kinds = (int32_t *)(addresses + total);
    struct ffi_state_of states[FFI_STAGES] = {f->states[FFI_INSTANTIATE]};
    struct ffi_context context = {states, f->user_data};
    struct ffi_frame frame = {
        .context = &context,
        .arguments = ffi_values(f, 0, bufs, dims, buffers, addresses, kinds),
        .results = ffi_values(f, 1, bufs, dims, buffers + n, addresses + n, kinds + n),
        .attributes = f->attributes,
    };
    char *problem = NULL;
    for (int stage = FFI_PREPARE; !problem && stage < FFI_STAGES; stage++) {
        if (!f->code[stage]) continue;
        frame.stage = stage;
        problem = hilo_ffi_call((ffi_handler)(uintptr_t)f->code[stage], &frame);
    }
    for (int stage = FFI_PREPARE; stage < FFI_STAGES; stage++) hilo_ffi_state_clear(&states[stage]);
    return problem;
}

int32_t hilo_foreign_call(const struct hilo_foreign *f, void **bufs, char *message, size_t message_size, char **text) {
    if (f->convention >= HILO_XLA && f->convention <= HILO_XLA_UNIFIED) return call_xla(f, bufs, message, message_size);
    Py_ssize_t operands = f->operands.count, count = operands + f->results.count;
    Py_ssize_t values = f->num_values[0] + f->num_values[1];
    size_t need = (size_t)count * (sizeof(int64_t *) + sizeof(struct hilo_buffer)) +
                  (size_t)values * sizeof(struct ffi_slot) + (size_t)f->num_dims * sizeof(int64_t);
    _Alignas(16) char stack[ON_STACK];
    char *block = need <= sizeof stack ? stack : PyMem_RawMalloc(need);
    if (!block) {
        snprintf(message, message_size, "there is no memory");
        return 1;
    }
    int64_t **dims = (int64_t **)block;
    int64_t *next = (int64_t *)(dims + count);
    int64_t *sizes = (int64_t *)bufs;
    for (Py_ssize_t i = 0; i < count; i++) {
        const struct hilo_spec *spec = i < operands ? &f->operands.items[i] : &f->results.items[i - operands];
        dims[i] = next;
        for (int d = 0; d < spec->ndim; d++) *next++ = spec->dims[d] == -1 ? *--sizes : spec->dims[d];
    }
    int32_t code;
    if (f->convention == HILO_PLAIN)
        code = call_plain(f, bufs, dims, (struct hilo_buffer *)next, message, message_size);
    else
        code = (*text = call_ffi(f, bufs, dims, next)) != NULL;
    if (block != stack) PyMem_RawFree(block);
    return code;
}

/* From Python. */

static PyObject *raise_message(const char *message, int32_t code) {
    return message[0] ? hilo_raise("%s", message) : hilo_raise("it ended with status %d", (int)code);
}

static PyObject *foreign_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    struct hilo_foreign *f = (struct hilo_foreign *)self;
    Py_ssize_t operands = f->operands.count, count = operands + f->results.count;
    if (kwargs && PyDict_GET_SIZE(kwargs)) return hilo_raise("there are no keyword arguments");
    if (PyTuple_GET_SIZE(args) != operands)
        return hilo_raise("expected %zd operands, got %zd", operands, PyTuple_GET_SIZE(args));
    PyObject *list = NULL, *adapted = PyList_New(operands);
    void **block = PyMem_Calloc((size_t)(count + f->num_dims) + 1, sizeof(void *));
    if (!block) PyErr_NoMemory();
    if (!adapted || !block) goto done;
    void **bufs = block + f->num_dims;
    int64_t *sizes = (int64_t *)bufs;
    for (Py_ssize_t i = 0; i < operands; i++) {
        const struct hilo_spec *spec = &f->operands.items[i];
        PyObject *item = PyTuple_GET_ITEM(args, i);
        PyArrayObject *array = hilo_spec_fits(spec, item) ? (PyArrayObject *)Py_NewRef(item)
                                                          : hilo_spec_adapt(spec, item, "operand", i);
        if (!array) goto done;
        PyList_SET_ITEM(adapted, i, (PyObject *)array);
        bufs[i] = PyArray_DATA(array);
        for (int d = 0; d < spec->ndim; d++)
            if (spec->dims[d] == -1) *--sizes = PyArray_DIMS(array)[d];
    }
    if (!(list = PyList_New(f->results.count))) goto done;
    for (Py_ssize_t i = 0; i < f->results.count; i++) {
        PyArrayObject *array = NULL;
        if (f->results.items[i].open)
            hilo_raise("the size of result %zd is not known", i);
        else
            array = hilo_array_new(&f->results.items[i]);
        if (!array) {
            Py_CLEAR(list);
            goto done;
        }
        PyList_SET_ITEM(list, i, (PyObject *)array);
        bufs[operands + i] = PyArray_DATA(array);
    }
    for (Py_ssize_t i = 0; i < f->num_aliases; i++) { /* both at one place, which starts as the operand */
        struct hilo_foreign_alias a = f->aliases[i];
        memcpy(bufs[operands + a.result], bufs[a.operand], f->results.items[a.result].nbytes);
        bufs[a.operand] = bufs[operands + a.result];
    }
    char message[256] = "", *text = NULL;
    int32_t code;
    Py_BEGIN_ALLOW_THREADS
    code = hilo_foreign_call(f, bufs, message, sizeof message, &text);
    Py_END_ALLOW_THREADS
    if (code) {
        Py_CLEAR(list);
        raise_message(text ? text : message, code);
    }
    free(text);
done:
    PyMem_Free(block);
    Py_XDECREF(adapted);
    return list;
}

PyObject *hilo_register_ffi_type(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    Py_ssize_t length;
    PyObject *type, *info;
    if (!PyArg_ParseTuple(args, "s#OO:register_ffi_type", &name, &length, &type, &info)) return NULL;
    void *type_address = PyLong_AsVoidPtr(type), *info_address = PyLong_AsVoidPtr(info);
    if (PyErr_Occurred()) return NULL;
    const char *problem = hilo_ffi_register_type(name, (size_t)length, type_address, info_address);
    if (problem) return hilo_raise("type %s of XLA's FFI: %s", name, problem);
    Py_RETURN_NONE;
}

/* Construction. */

static int take_numbers(PyObject *sequence, Py_ssize_t low, Py_ssize_t high, Py_ssize_t *count, Py_ssize_t **numbers) {
    PyObject *items = PySequence_Fast(sequence, "expected a sequence of numbers");
    if (!items) return -1;
    *count = PySequence_Fast_GET_SIZE(items);
    *numbers = PyMem_Calloc((size_t)*count + 1, sizeof **numbers);
    if (!*numbers) PyErr_NoMemory();
    for (Py_ssize_t i = 0; *numbers && !PyErr_Occurred() && i < *count; i++) {
        Py_ssize_t n = (*numbers)[i] = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(items, i));
        if (!PyErr_Occurred() && (n < low || n >= high)) PyErr_Format(PyExc_ValueError, "%zd is not expected here", n);
    }
    Py_DECREF(items);
    return PyErr_Occurred() ? -1 : 0;
}

static int take_types(struct hilo_foreign *f, PyObject *sequence) {
    Py_ssize_t count, *numbers = NULL;
    int failed = take_numbers(sequence, 0, 1 << 16, &count, &numbers) < 0;
    if (!failed && count != f->operands.count + f->results.count) {
        PyErr_SetString(PyExc_ValueError, "types: one for each operand and result");
        failed = 1;
    }
    f->types = failed ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *f->types);
    if (!failed && !f->types) PyErr_NoMemory();
    for (Py_ssize_t i = 0; f->types && i < count; i++) f->types[i] = (int32_t)numbers[i];
    PyMem_Free(numbers);
    return f->types ? 0 : -1;
}

static int take_aliases(struct hilo_foreign *f, PyObject *sequence) {
    Py_ssize_t count, *numbers = NULL;
    int failed = take_numbers(sequence, 0, PY_SSIZE_T_MAX, &count, &numbers) < 0;
    f->num_aliases = failed ? 0 : count / 2;
    f->aliases = (struct hilo_foreign_alias *)numbers; /* pairs, flat */
    for (Py_ssize_t i = 0; !failed && i < f->num_aliases; i++) {
        struct hilo_foreign_alias a = f->aliases[i];
        failed = a.result >= f->results.count || a.operand >= f->operands.count ||
                 f->results.items[a.result].nbytes != f->operands.items[a.operand].nbytes;
        if (failed) PyErr_SetString(PyExc_ValueError, "aliases: result and operand do not fit");
    }
    return failed ? -1 : 0;
}

/* The version and, for the first stage, the state. */
static int start_ffi(struct hilo_foreign *f) {
    struct ffi_context context = {f->states, f->user_data};
    char *problem = NULL;
    for (int stage = 0; stage < FFI_STAGES; stage++) {
        if (!f->code[stage]) continue;
        struct ffi_metadata metadata = {.size = sizeof metadata, .version = {.size = sizeof metadata.version}};
        struct ffi_metadata_extension extension = {{sizeof extension, FFI_METADATA, NULL}, &metadata};
        struct ffi_frame ask = {.extensions = &extension.base, .context = &context, .stage = stage};
        ask.arguments.size = ask.results.size = sizeof ask.arguments;
        ask.attributes.size = sizeof ask.attributes;
        if ((problem = hilo_ffi_call((ffi_handler)(uintptr_t)f->code[stage], &ask))) {
            hilo_raise("the handler does not say its version: %s", problem);
            free(problem);
            return -1;
        }
        if (metadata.version.major != FFI_MAJOR)
            return hilo_raise("the handler is for version %d.%d of XLA's FFI, hilo knows %d.%d", metadata.version.major,
                              metadata.version.minor, FFI_MAJOR, FFI_MINOR) ? 0 : -1;
    }
    if (!f->code[FFI_INSTANTIATE]) return 0;
    struct ffi_frame frame = {.context = &context, .stage = FFI_INSTANTIATE, .attributes = f->attributes};
    frame.arguments.size = frame.results.size = sizeof frame.arguments;
    problem = hilo_ffi_call((ffi_handler)(uintptr_t)f->code[FFI_INSTANTIATE], &frame);
    if (!problem) return 0;
    raise_message(problem, 1);
    free(problem);
    return -1;
}

static int take_code(struct hilo_foreign *f, PyObject *code) {
    if (!PyTuple_Check(code) || PyTuple_GET_SIZE(code) != FFI_STAGES) {
        PyErr_SetString(PyExc_TypeError, "code: expected four addresses, by stage; 0 for none");
        return -1;
    }
    for (int i = 0; i < FFI_STAGES; i++) f->code[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(code, i));
    if (!PyErr_Occurred() && !f->code[FFI_EXECUTE]) PyErr_SetString(PyExc_ValueError, "code: there is nothing to execute");
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *foreign_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"convention", "code",    "operands", "results",  "types",   "operand_values", "result_values",
                            "config",     "aliases", "is_tuple", "attributes", "keep", "user_data", NULL};
    int convention, is_tuple;
    PyObject *code, *operands, *results, *types, *values[2], *config, *aliases, *attributes, *keep, *user_data = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iOOOOOOSOpOO|O:Foreign", names, &convention, &code, &operands, &results,
                                     &types, &values[0], &values[1], &config, &aliases, &is_tuple, &attributes, &keep,
                                     &user_data))
        return NULL;
    struct hilo_foreign *f = (struct hilo_foreign *)type->tp_alloc(type, 0);
    if (!f) return NULL;
    f->convention = convention;
    f->is_tuple = is_tuple;
    f->config = Py_NewRef(config);
    f->keep = Py_NewRef(keep);
    f->attributes = (struct ffi_attributes){.size = sizeof f->attributes};
    f->user_data = user_data ? PyLong_AsVoidPtr(user_data) : NULL;
    int failed = PyErr_Occurred() || take_code(f, code) < 0 || hilo_specs_parse(operands, &f->operands) < 0 ||
                 hilo_specs_parse(results, &f->results) < 0 || take_types(f, types) < 0 || take_aliases(f, aliases) < 0;
    for (int i = 0; !failed && i < 2; i++)
        failed = take_numbers(values[i], -1, i ? f->results.count : f->operands.count, &f->num_values[i], &f->values[i]) < 0;
    if (!failed && (convention < HILO_PLAIN || convention > HILO_XLA_FFI)) {
        PyErr_Format(PyExc_ValueError, "there is no convention %d", convention);
        failed = 1;
    }
    if (!failed && f->results.count == 0 && convention >= HILO_XLA && convention <= HILO_XLA_UNIFIED) f->is_tuple = 1;
    for (Py_ssize_t i = 0; !failed && i < f->operands.count; i++) f->num_dims += f->operands.items[i].ndim;
    for (Py_ssize_t i = 0; !failed && i < f->results.count; i++) f->num_dims += f->results.items[i].ndim;
    if (!failed && convention == HILO_XLA_FFI) {
        void *address = PyLong_AsVoidPtr(attributes);
        failed = !address && PyErr_Occurred();
        if (address) f->attributes = *(const struct ffi_attributes *)address;
        failed = failed || start_ffi(f) < 0;
    }
    if (failed) Py_CLEAR(f);
    return (PyObject *)f;
}

static int foreign_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((struct hilo_foreign *)self)->keep);
    return 0;
}

static void foreign_dealloc(PyObject *self) {
    struct hilo_foreign *f = (struct hilo_foreign *)self;
    PyObject_GC_UnTrack(self);
    for (int stage = 0; stage < FFI_STAGES; stage++) hilo_ffi_state_clear(&f->states[stage]);
    hilo_specs_clear(&f->operands);
    hilo_specs_clear(&f->results);
    PyMem_Free(f->types);
    PyMem_Free(f->aliases);
    PyMem_Free(f->values[0]);
    PyMem_Free(f->values[1]);
    Py_XDECREF(f->config);
    Py_XDECREF(f->keep);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject hilo_Foreign_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "hilo.runtime._native.Foreign",
    .tp_basicsize = sizeof(struct hilo_foreign),
    .tp_new = foreign_new,
    .tp_dealloc = foreign_dealloc,
    .tp_traverse = foreign_traverse,
    .tp_call = foreign_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = PyDoc_STR("Foreign(convention, code, operands, results, types, operand_values, result_values, config, aliases, "
                        "is_tuple, attributes, keep, user_data)\n--\n\nA call of native code, callable with arrays."),
};
