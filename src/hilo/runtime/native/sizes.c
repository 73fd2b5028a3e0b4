/* Sizes that are known only when a program is called (program.h). */
#include "program.h"

int hilo_symbols_parse(PyObject *sequence, struct hilo_program *p) {
    PyObject *items = PySequence_Fast(sequence, "symbols: expected a sequence of (is_value, argument, index)");
    if (!items) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int failed = 0;
    p->symbols = PyMem_New(struct hilo_symbol, count ? count : 1);
    if (!p->symbols) failed = PyErr_NoMemory() == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *part[3];
        failed = hilo_unpack(PySequence_Fast_GET_ITEM(items, i), 3, part, "(is_value, argument, index)") < 0;
        if (failed) break;
        struct hilo_symbol s = {PyObject_IsTrue(part[0]), PyLong_AsSsize_t(part[1]), PyLong_AsSsize_t(part[2])};
        int valid = !PyErr_Occurred() && s.argument >= 0 && s.argument < p->arguments.count && s.index >= 0;
        if (valid) {
            const struct hilo_spec *spec = &p->arguments.items[s.argument];
            valid = s.is_value ? !spec->open && (size_t)s.index * PyDataType_ELSIZE(spec->descr) < spec->nbytes
                               : s.index < spec->ndim;
        }
        if (!valid) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "symbol %zd is no size of an argument", i);
            failed = 1;
        }
        p->symbols[i] = s;
        p->num_symbols = i + 1;
    }
    Py_DECREF(items);
    p->num_sizes = 1;
    for (Py_ssize_t i = 0; i < p->results.count; i++) p->num_sizes += p->results.items[i].ndim;
    return failed ? -1 : 0;
}

/* Element `index` of an array of integers. */
static int64_t read_integer(const struct hilo_spec *spec, const char *data, Py_ssize_t index) {
    data += index * PyDataType_ELSIZE(spec->descr);
    int is_signed = spec->descr->kind == 'i';
    switch (PyDataType_ELSIZE(spec->descr)) {
    case 1: return is_signed ? *(const int8_t *)data : *(const uint8_t *)data;
    case 2: return is_signed ? *(const int16_t *)data : *(const uint16_t *)data;
    case 4: return is_signed ? (int64_t)*(const int32_t *)data : (int64_t)*(const uint32_t *)data;
    default: return *(const int64_t *)data;
    }
}

/* Raises the error for a code of `shapes`. */
static void explain(struct hilo_program *p, int32_t code, const int64_t *symbols) {
    PyObject *values = PyList_New(p->num_symbols);
    for (Py_ssize_t i = 0; values && i < p->num_symbols; i++) {
        PyObject *v = PyLong_FromLongLong(symbols[i]);
        if (!v) Py_CLEAR(values);
        else PyList_SET_ITEM(values, i, v);
    }
    PyObject *text = values ? PyObject_CallFunction(p->explain, "iO", (int)code, values) : NULL;
    Py_XDECREF(values);
    if (text) hilo_raise("%U: %S", p->name, text);
    Py_XDECREF(text);
}

int hilo_sizes_compute(struct hilo_program *p, void **arguments, npy_intp *const *shapes, int64_t *block) {
    for (Py_ssize_t i = 0; i < p->num_symbols; i++) {
        struct hilo_symbol s = p->symbols[i];
        block[i] = s.is_value ? read_integer(&p->arguments.items[s.argument], arguments[s.argument], s.index)
                              : shapes[s.argument][s.index];
    }
    int32_t code = p->shapes(block, block + p->num_symbols);
    if (code) explain(p, code, block);
    return code ? -1 : 0;
}
