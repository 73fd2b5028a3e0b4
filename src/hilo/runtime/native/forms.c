/* Reading and making forms of arguments (forms.h). */
#include "forms.h"

#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define WIDEST 256   /* columns of a panel at most */
#define ROWS 64      /* copied at a time, column by column */
#define PIECE 262144 /* bytes that are worth a piece of a parallel loop */

/* Reading. */

/* Takes loops off the front of the numbers; whether they are there, and stay within sizes that can be. */
static int take_loops(const int64_t **at, const int64_t *end, struct hilo_loops *loops, int64_t *reach) {
    if (*at >= end || **at < 0 || **at > (end - *at - 1) / 2) return 0;
    loops->count = *(*at)++;
    loops->pairs = *at;
    loops->turns = 1;
    for (int64_t i = 0; i < loops->count; i++, *at += 2) {
        int64_t turns = (*at)[0], step = (*at)[1], span;
        if (turns < 1 || step < 0 || __builtin_mul_overflow(loops->turns, turns, &loops->turns) ||
            __builtin_mul_overflow(turns - 1, step, &span) || __builtin_add_overflow(*reach, span, reach))
            return 0;
    }
    return 1;
}

/* Whether the numbers are a layout of an argument of so many bytes. */
static int read_layout(struct hilo_form *f, size_t nbytes) {
    const int64_t *at = f->numbers, *end = at + f->num_numbers;
    int64_t reach = 0, all;
    if (end - at < 2) return 0;
    f->size = *at++;
    f->block_k = *at++;
    if ((f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8) || f->block_k < 1) return 0;
    if (!take_loops(&at, end, &f->batch, &reach) || !take_loops(&at, end, &f->k, &reach) ||
        !take_loops(&at, end, &f->n, &reach))
        return 0;
    f->widths = at;
    f->num_panels = end - at;
    f->columns = 0;
    for (; at < end; at++) {
        if (*at < 1 || *at > WIDEST || f->columns >= f->n.turns) return 0;
        f->columns += *at;
    }
    return f->columns >= f->n.turns && reach < (int64_t)(nbytes / (size_t)f->size) &&
           !__builtin_mul_overflow(f->batch.turns, f->k.turns, &all) && !__builtin_mul_overflow(all, f->columns, &all) &&
           !__builtin_mul_overflow(all, f->size, &all) && (size_t)all == f->nbytes;
}

static int parse_form(PyObject *item, struct hilo_program *p, struct hilo_form *f) {
    PyObject *part[3];
    if (hilo_unpack(item, 3, part, "(argument, bytes, numbers)") < 0) return -1;
    f->argument = PyLong_AsSsize_t(part[0]);
    f->nbytes = PyLong_AsSize_t(part[1]);
    if (PyErr_Occurred()) return -1;
    PyObject *numbers = PySequence_Fast(part[2], "a form's layout: expected a sequence of numbers");
    if (!numbers) return -1;
    f->num_numbers = PySequence_Fast_GET_SIZE(numbers);
    f->numbers = PyMem_New(int64_t, f->num_numbers + 1);
    if (!f->numbers) PyErr_NoMemory();
    for (Py_ssize_t i = 0; f->numbers && i < f->num_numbers; i++)
        f->numbers[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(numbers, i));
    Py_DECREF(numbers);
    if (PyErr_Occurred()) return -1;
    int valid = f->argument >= 0 && f->argument < p->arguments.count && !p->arguments.items[f->argument].open &&
                read_layout(f, p->arguments.items[f->argument].nbytes);
    if (!valid) PyErr_Format(PyExc_ValueError, "forms: argument %zd has no such layout", f->argument);
    return valid ? 0 : -1;
}

int hilo_forms_parse(PyObject *sequence, struct hilo_program *p) {
    PyObject *items = PySequence_Fast(sequence, "forms: expected a sequence of (argument, bytes, numbers)");
    if (!items) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    p->forms = PyMem_Calloc((size_t)count + 1, sizeof *p->forms);
    p->no_forms = PyMem_Calloc((size_t)count + 1, sizeof *p->no_forms);
    int failed = !p->forms || !p->no_forms ? PyErr_NoMemory() == NULL : 0;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        p->num_forms = i + 1;
        failed = parse_form(PySequence_Fast_GET_ITEM(items, i), p, &p->forms[i]) < 0;
    }
    Py_DECREF(items);
    return failed ? -1 : 0;
}

void hilo_forms_clear(struct hilo_program *p) {
    for (Py_ssize_t i = 0; i < p->num_forms; i++) PyMem_Free(p->forms[i].numbers);
    PyMem_Free(p->forms);
    PyMem_Free(p->no_forms);
}

int hilo_form_same(const struct hilo_form *a, const struct hilo_form *b) {
    return a == b || (a->nbytes == b->nbytes && a->num_numbers == b->num_numbers &&
                      !memcmp(a->numbers, b->numbers, (size_t)a->num_numbers * sizeof *a->numbers));
}

/* Making. */

/* Where turn `i` of the loops is, in elements. */
static int64_t place(const struct hilo_loops *loops, int64_t i) {
    int64_t at = 0;
    for (int64_t d = loops->count - 1; d >= 0; d--) {
        at += i % loops->pairs[2 * d] * loops->pairs[2 * d + 1];
        i /= loops->pairs[2 * d];
    }
    return at;
}

/* Copies rows x columns elements, found by the tables; a row of the target is `width` elements. */
#define COPY(type)                                                                                        \
    for (int64_t j = 0; j < columns; j++) {                                                               \
        const type *from = (const type *)source + column_at[j];                                           \
        for (int64_t i = 0; i < rows; i++) ((type *)target)[i * width + j] = from[row_at[i]];              \
    }

static void copy_elements(char *target, const char *source, int64_t size, const int64_t *row_at, int64_t rows,
                          const int64_t *column_at, int64_t columns, int64_t width) {
    switch (size) {
    case 1: COPY(uint8_t) break;
    case 2: COPY(uint16_t) break;
    case 4: COPY(uint32_t) break;
    default: COPY(uint64_t)
    }
}

/* One panel of a block of rows. */
static void pack_panel(const struct hilo_form *f, const char *source, char *target, int64_t rows, int64_t first_row,
                       int64_t first_column, int64_t width) {
    int64_t column_at[WIDEST], row_at[ROWS];
    int64_t live = f->n.turns - first_column < width ? f->n.turns - first_column : width;
    int side_by_side = 1;
    for (int64_t j = 0; j < live; j++) {
        column_at[j] = place(&f->n, first_column + j);
        side_by_side &= column_at[j] == column_at[0] + j;
    }
    for (int64_t begin = 0; begin < rows; begin += ROWS) {
        int64_t count = rows - begin < ROWS ? rows - begin : ROWS;
        char *to = target + begin * width * f->size;
        for (int64_t i = 0; i < count; i++) row_at[i] = place(&f->k, first_row + begin + i);
        if (live < width) memset(to, 0, (size_t)(count * width * f->size));
        if (!side_by_side) {
            copy_elements(to, source, f->size, row_at, count, column_at, live, width);
            continue;
        }
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * width * f->size, source + (row_at[i] + column_at[0]) * f->size, (size_t)(live * f->size));
    }
}

/* Units: all panels of a block of rows of a batch. */
static void pack_blocks(void **bufs, int64_t begin, int64_t end) {
    const struct hilo_form *f = bufs[0];
    int64_t blocks = (f->k.turns + f->block_k - 1) / f->block_k;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t batch = unit / blocks, row = unit % blocks * f->block_k;
        int64_t rows = f->k.turns - row < f->block_k ? f->k.turns - row : f->block_k;
        const char *source = (const char *)bufs[1] + place(&f->batch, batch) * f->size;
        char *target = (char *)bufs[2] + (batch * f->k.turns + row) * f->columns * f->size;
        for (int64_t p = 0, column = 0; p < f->num_panels; column += f->widths[p++])
            pack_panel(f, source, target + rows * column * f->size, rows, row, column, f->widths[p]);
    }
}

void hilo_form_pack(const struct hilo_form *f, const void *source, void *target, int64_t threads) {
    void *bufs[] = {(void *)f, (void *)source, target};
    int64_t units = f->batch.turns * ((f->k.turns + f->block_k - 1) / f->block_k);
    int64_t each = (int64_t)(f->nbytes / (size_t)units), chunk = each >= PIECE ? 1 : PIECE / (each + 1) + 1;
    struct hilo_ctx ctx = {.parallel_for = hilo_parallel_for, .threads = threads};
    hilo_parallel_for(&ctx, pack_blocks, bufs, units, chunk);
}
