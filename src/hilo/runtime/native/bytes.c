/* Bringing matrices of bytes into the form that dot products of four bytes take: what hilo/kernels/contraction_bytes.py
 * says in loop IR, made when the package is built, for the widest vectors that the machine has. */
#include "ready.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
static bool is_wide(void) {
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

WIDE static void flip_wide(const uint8_t *from, uint8_t *to, int64_t n) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), sign));
    __mmask64 rest = _cvtu64_mask64(((uint64_t)1 << (n - i)) - 1);
    _mm512_mask_storeu_epi8(to + i, rest, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), sign));
}

WIDE static void group_wide(const uint8_t *from, int64_t row, int64_t rows, uint32_t *to, int64_t columns) {
    for (int64_t i = 0; i < columns; i += 16) {
        int64_t left = columns - i;
        __mmask16 live = _cvtu32_mask16(left < 16 ? (1u << left) - 1 : 0xffff);
        __m512i words = _mm512_setzero_si512();
        for (int64_t r = rows; r-- > 0;) {
            __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(live, from + r * row + i));
            words = _mm512_or_si512(_mm512_slli_epi32(words, 8), bytes);
        }
        _mm512_mask_storeu_epi32(to + i, live, words);
    }
}

WIDE static void sum_wide(const uint8_t *from, int64_t row, int64_t rows, int32_t *to, int64_t columns) {
    const __m512i ones = _mm512_set1_epi8((char)0x80); /* 128, taken as unsigned */
    for (int64_t i = 0; i < columns; i += 16) {
        int64_t left = columns - i;
        __mmask16 live = _cvtu32_mask16(left < 16 ? (1u << left) - 1 : 0xffff);
        __m512i total = _mm512_setzero_si512();
        for (int64_t r = 0; r < rows; r++) {
            total = _mm512_dpbusd_epi32(total, ones, _mm512_maskz_loadu_epi32(live, from + r * row + 4 * i));
        }
        _mm512_mask_storeu_epi32(to + i, live, _mm512_sub_epi32(_mm512_setzero_si512(), total));
    }
}
#else
static bool is_wide(void) { return false; }
#define flip_wide(...) ((void)0)
#define group_wide(...) ((void)0)
#define sum_wide(...) ((void)0)
#endif

/* to[i] = from[i] + 128, as bytes that wrap around. */
void hilo_bytes_flip(const uint8_t *from, uint8_t *to, int64_t n) {
    if (is_wide()) {
        flip_wide(from, to, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) to[i] = from[i] ^ 0x80;
}

/* Words of `rows` (1 to 4) bytes of a column, the first row's lowest; those that are not there are 0. */
void hilo_bytes_group(const uint8_t *from, int64_t row, int64_t rows, uint32_t *to, int64_t columns) {
    if (is_wide()) {
        group_wide(from, row, rows, to, columns);
        return;
    }
    for (int64_t i = 0; i < columns; i++) {
        uint32_t word = 0;
        for (int64_t r = rows; r-- > 0;) word = word << 8 | from[r * row + i];
        to[i] = word;
    }
}

/* -128 times the sum of the signed bytes of each column of words; rows are `row` bytes apart. */
void hilo_bytes_sum(const uint8_t *from, int64_t row, int64_t rows, int32_t *to, int64_t columns) {
    if (is_wide()) {
        sum_wide(from, row, rows, to, columns);
        return;
    }
    for (int64_t i = 0; i < columns; i++) {
        uint32_t total = 0;
        for (int64_t r = 0; r < rows; r++) {
            const int8_t *bytes = (const int8_t *)from + r * row + 4 * i;
            total += (uint32_t)(bytes[0] + bytes[1] + bytes[2] + bytes[3]);
        }
        total *= (uint32_t)-128;
        memcpy(to + i, &total, sizeof total);
    }
}
