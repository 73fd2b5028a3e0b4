/* Functions that programs for this process call instead of bringing their own: each does what a function of loop IR
 * with the attribute `ready` says. */
#ifndef HILO_READY_H
#define HILO_READY_H

#include <stdint.h>

void hilo_conv_walk(void **bufs, const void *places, const void *table, int64_t begin, int64_t end);

void hilo_radix_starts(char *counts, int64_t step, int64_t chunks, int64_t values);
void hilo_radix_count(uint32_t *counts, const uint64_t *elements, int64_t lo, int64_t hi, int64_t low, int64_t most);
void hilo_radix_move(uint32_t *restrict places, const uint64_t *restrict here, uint64_t *restrict there, int64_t lo,
                     int64_t hi, int64_t low, int64_t most);
void hilo_radix_last(uint32_t *restrict places, const uint64_t *restrict here, uint32_t *restrict there, int64_t lo,
                     int64_t hi, int64_t low, int64_t most);
int64_t hilo_radix_pass(uint32_t *counts, const uint64_t *here, uint64_t *there, int64_t n, int64_t low, int64_t most);

void hilo_bytes_flip(const uint8_t *from, uint8_t *to, int64_t n);
void hilo_bytes_group(const uint8_t *from, int64_t row, int64_t rows, uint32_t *to, int64_t columns);
void hilo_bytes_sum(const uint8_t *from, int64_t row, int64_t rows, int32_t *to, int64_t columns);

#endif
