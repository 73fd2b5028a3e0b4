/* Steps of sorts by digits: what hilo/kernels/sort_steps.py says in loop IR, made when the package is built. Elements
 * are 8 bytes; a digit is `(element >> low) & most`. */
#include "ready.h"

#include <stddef.h>
#include <string.h>

static uint64_t digit_of(uint64_t element, int64_t low, int64_t most) { return element >> low & (uint64_t)most; }

/* The digits as bytes, 8 apart, if that is what they are: machines have the lowest byte first. NULL: they are not. */
static const uint8_t *bytes_of(const uint64_t *elements, int64_t low, int64_t most) {
    return most == 255 && low % 8 == 0 ? (const uint8_t *)elements + low / 8 : NULL;
}

/* Counts of `chunks` chunks, `step` bytes apart, become first places: digit by digit, of each chunk by chunk. */
void hilo_radix_starts(char *counts, int64_t step, int64_t chunks, int64_t values) {
    uint32_t total = 0;
    for (int64_t d = 0; d < values; d++) {
        for (int64_t c = 0; c < chunks; c++) {
            uint32_t *at = (uint32_t *)(counts + c * step) + d, n = *at;
            *at = total;
            total += n;
        }
    }
}

/* How many of the elements lo..hi have each value of a digit. */
void hilo_radix_count(uint32_t *counts, const uint64_t *elements, int64_t lo, int64_t hi, int64_t low, int64_t most) {
    memset(counts, 0, ((size_t)most + 1) * sizeof *counts);
    const uint8_t *bytes = bytes_of(elements, low, most);
    int64_t i = lo;
    for (; bytes && i + 3 < hi; i += 4) {
        counts[bytes[8 * i]]++;
        counts[bytes[8 * i + 8]]++;
        counts[bytes[8 * i + 16]]++;
        counts[bytes[8 * i + 24]]++;
    }
    for (; i < hi; i++) counts[digit_of(elements[i], low, most)]++;
}

/* Move the elements lo..hi to the places of their digits. */
void hilo_radix_move(uint32_t *restrict places, const uint64_t *restrict here, uint64_t *restrict there, int64_t lo,
                     int64_t hi, int64_t low, int64_t most) {
    const uint8_t *bytes = bytes_of(here, low, most);
    int64_t i = lo;
    for (; bytes && i + 1 < hi; i += 2) {
        there[places[bytes[8 * i]]++] = here[i];
        there[places[bytes[8 * i + 8]]++] = here[i + 1];
    }
    for (; i < hi; i++) there[places[digit_of(here[i], low, most)]++] = here[i];
}

/* The last move: of the lower halves of the elements lo..hi. */
void hilo_radix_last(uint32_t *restrict places, const uint64_t *restrict here, uint32_t *restrict there, int64_t lo,
                     int64_t hi, int64_t low, int64_t most) {
    const uint8_t *bytes = bytes_of(here, low, most);
    int64_t i = lo;
    for (; bytes && i + 1 < hi; i += 2) {
        there[places[bytes[8 * i]]++] = (uint32_t)here[i];
        there[places[bytes[8 * i + 8]]++] = (uint32_t)here[i + 1];
    }
    for (; i < hi; i++) there[places[digit_of(here[i], low, most)]++] = (uint32_t)here[i];
}

/* One pass over a row of `n` elements that are counted, unless all have the same digit; gives whether they moved. */
int64_t hilo_radix_pass(uint32_t *counts, const uint64_t *here, uint64_t *there, int64_t n, int64_t low, int64_t most) {
    if (counts[digit_of(here[0], low, most)] == n) return 0;
    hilo_radix_starts((char *)counts, 0, 1, most + 1);
    hilo_radix_move(counts, here, there, 0, n, low, most);
    return 1;
}
