/* Forms of arguments: an operand of a product in panels, as kernels read it, which whoever calls may keep from call to call
 * (hilo.kernels.contraction_bound.Panels). */
#ifndef HILO_FORMS_H
#define HILO_FORMS_H

#include "program.h"

/* Nested loops: `count` pairs of how many turns, and the elements from one to the next; the last one is the innermost. */
struct hilo_loops {
    int64_t count, turns; /* of all together */
    const int64_t *pairs;
};

/* Of an operand B[batch, k, n]: blocks of `block_k` rows, in each the panels of columns one after the other, in each of
 * these its rows. Columns from n on are zeros. */
struct hilo_form {
    Py_ssize_t argument;
    size_t nbytes;
    int64_t size, block_k; /* bytes of an element */
    struct hilo_loops batch, k, n;
    int64_t num_panels, columns;
    const int64_t *widths; /* columns of each panel */
    int64_t *numbers;      /* all of the layout, and how many numbers that takes */
    Py_ssize_t num_numbers;
};

/* Reads a sequence of (argument, bytes, numbers) into a program whose arguments are parsed; 0, or -1 with an exception. */
int hilo_forms_parse(PyObject *sequence, struct hilo_program *program);
void hilo_forms_clear(struct hilo_program *program);

/* Whether two forms are the same bytes of the same argument. */
int hilo_form_same(const struct hilo_form *a, const struct hilo_form *b);

/* Fills `target` from the argument, on up to `threads` threads. */
void hilo_form_pack(const struct hilo_form *form, const void *source, void *target, int64_t threads);

#endif
