/* Functions that programs for this process call instead of bringing their own: each does what a function of loop IR
 * with the attribute `ready` says. */
#ifndef HILO_READY_H
#define HILO_READY_H

#include <stdint.h>

void hilo_conv_walk(void **bufs, const void *places, const void *table, int64_t begin, int64_t end);

#endif
