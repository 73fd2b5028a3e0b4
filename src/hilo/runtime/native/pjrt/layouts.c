/* Layouts as values: how a shape lies in memory, written as XLA does, from minor to major: "{1,0}".
 *
 * A shape knows its layout, so that a layout is a shape (struct pjrt_layout is never defined): those of an executable are
 * its own list of shapes, and the others are references to count.
 */
#include <stdio.h>
#include <stdlib.h>

#include "pjrt.h"

static struct pjrt_layout *as_layout(struct pjrt_shape *shape) { return (struct pjrt_layout *)shape; }
static struct pjrt_shape *as_shape(struct pjrt_layout *layout) { return (struct pjrt_shape *)layout; }

static struct pjrt_error *destroy(struct pjrt_layouts_memory_layout_destroy_args *args) {
    if (args->layout) pjrt_shape_release(as_shape(args->layout));
    return NULL;
}

/* Texts of row-major layouts, by rank. jaxlib asks for that of each array that becomes one of numpy's. */
static char *const row_major[] = {"{}", "{0}", "{1,0}", "{2,1,0}", "{3,2,1,0}", "{4,3,2,1,0}", "{5,4,3,2,1,0}"};

static bool is_descending(const struct pjrt_shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (shape->minor_to_major[i] != shape->rank - 1 - i) return false;
    return true;
}

static void keep(void *text) { (void)text; }

static struct pjrt_error *serialize(struct pjrt_layouts_memory_layout_serialize_args *args) {
    const struct pjrt_shape *shape = as_shape(args->layout);
    if ((size_t)shape->rank < sizeof row_major / sizeof *row_major && is_descending(shape)) {
        args->serialized_bytes = row_major[shape->rank];
        args->serialized_bytes_size = shape->rank ? (size_t)shape->rank * 2 + 1 : 2;
        args->serialized_layout = row_major[shape->rank];
        args->serialized_layout_deleter = keep;
        return NULL;
    }
    char *text = malloc((size_t)shape->rank * 21 + 3), *at = text; /* a number has at most 20 characters */
    if (!text) return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "no memory for the text of a layout");
    *at++ = '{';
    for (int i = 0; i < shape->rank; i++) at += sprintf(at, i ? ",%lld" : "%lld", (long long)shape->minor_to_major[i]);
    *at++ = '}';
    *at = 0;
    args->serialized_bytes = text;
    args->serialized_bytes_size = (size_t)(at - text);
    args->serialized_layout = text;
    args->serialized_layout_deleter = free;
    return NULL;
}

static struct pjrt_error *new_default(uint32_t type, const int64_t *dims, size_t rank, struct pjrt_layout **layout) {
    struct pjrt_error *error = NULL;
    *layout = as_layout(pjrt_shape_new(type, dims, rank, NULL, &error));
    return error;
}

static struct pjrt_error *default_of_client(struct pjrt_layouts_client_get_default_layout_args *args) {
    return new_default(args->type, args->dims, args->num_dims, &args->layout);
}

static struct pjrt_error *default_of_topology(struct pjrt_layouts_topology_get_default_layout_args *args) {
    return new_default(args->type, args->dims, args->num_dims, &args->layout);
}

static struct pjrt_error *of_buffer(struct pjrt_layouts_buffer_memory_layout_args *args) {
    args->layout = as_layout(pjrt_shape_keep(args->buffer->shape));
    return NULL;
}

static struct pjrt_error *of_outputs(struct pjrt_layouts_executable_get_output_layouts_args *args) {
    args->num_outputs = args->executable->num_results;
    args->layouts = (struct pjrt_layout *const *)args->executable->results;
    return NULL;
}

static struct pjrt_error *of_parameters(struct pjrt_layouts_executable_get_parameter_layouts_args *args) {
    args->num_parameters = args->executable->num_arguments;
    args->layouts = (struct pjrt_layout *const *)args->executable->arguments;
    return NULL;
}

struct pjrt_layouts_extension pjrt_layouts_extension = {
    .base = {sizeof pjrt_layouts_extension, PJRT_EXTENSION_LAYOUTS, NULL},
    .layouts_memory_layout_destroy = destroy,
    .layouts_memory_layout_serialize = serialize,
    .layouts_client_get_default_layout = default_of_client,
    .layouts_buffer_memory_layout = of_buffer,
    .layouts_topology_get_default_layout = default_of_topology,
    .layouts_executable_get_output_layouts = of_outputs,
    .layouts_executable_get_parameter_layouts = of_parameters,
};
