/* The floating-point environment: compiled code runs with round-to-nearest, no flushing of subnormals, no traps. */
#ifndef HILO_FPSTATE_H
#define HILO_FPSTATE_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
typedef uint32_t hilo_fpstate;
#define HILO_FP_DEFAULT 0x1f80u
static inline hilo_fpstate hilo_fp_read(void) { return _mm_getcsr(); }
static inline void hilo_fp_write(hilo_fpstate state) { _mm_setcsr(state); }
#elif defined(__aarch64__)
typedef uint64_t hilo_fpstate;
#define HILO_FP_DEFAULT 0u
static inline hilo_fpstate hilo_fp_read(void) {
    hilo_fpstate state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
static inline void hilo_fp_write(hilo_fpstate state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#else
typedef uint32_t hilo_fpstate;
#define HILO_FP_DEFAULT 0u
static inline hilo_fpstate hilo_fp_read(void) { return 0; }
static inline void hilo_fp_write(hilo_fpstate state) { (void)state; }
#endif

/* Sets the default and returns what was there; give that to hilo_fp_leave. */
static inline hilo_fpstate hilo_fp_enter(void) {
    hilo_fpstate before = hilo_fp_read();
    if (before != HILO_FP_DEFAULT) hilo_fp_write(HILO_FP_DEFAULT);
    return before;
}

/* Restores the caller's state, its sticky exception flags included. */
static inline void hilo_fp_leave(hilo_fpstate before) {
    if (hilo_fp_read() != before) hilo_fp_write(before);
}

#endif
