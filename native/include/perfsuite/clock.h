/* The two clocks of the suite: CLOCK_MONOTONIC in ns, and the processor's constant-rate counter in ticks.
 *
 * Reading the counter takes a fraction of what a clock call takes, so recorders stamp ticks, which whoever reads the record
 * converts (perfsuite/records/engine_columns.py) between two calibration points taken before and after the run.  Header
 * only: C11 and C++17.
 */
#ifndef PERFSUITE_CLOCK_H
#define PERFSUITE_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Nanoseconds of CLOCK_MONOTONIC; the same clock as Python's time.monotonic_ns(). */
static inline int64_t ps_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + (int64_t)now.tv_nsec;
}

/* Ticks of the time stamp counter (x86-64) or the generic timer (aarch64); elsewhere nanoseconds.
 * Not ordered against the instructions around it: the processor may read it some ns early or late. */
static inline uint64_t ps_ticks(void) {
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return ((uint64_t)high << 32) | low;
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)ps_now_ns();
#endif
}

/* As ps_ticks, but read after all that stands before it and before all that stands after it. */
static inline uint64_t ps_ticks_ordered(void) {
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
    uint64_t ticks = ps_ticks();
    __asm__ volatile("lfence" ::: "memory");
    return ticks;
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
    uint64_t ticks = ps_ticks();
    __asm__ volatile("isb" ::: "memory");
    return ticks;
#else
    return ps_ticks();
#endif
}

/* One instant on both clocks.  `width_ticks` is how long the reading took: the instant is known to half of it. */
typedef struct ps_clock_point {
    uint64_t ticks;
    int64_t ns;
    uint64_t width_ticks;
} ps_clock_point;

/* The tightest of `n_brackets` readings tick, ns, tick: an interrupt within a reading widens it, never shifts it. */
static inline ps_clock_point ps_calibrate(int n_brackets) {
    ps_clock_point best = {0, 0, UINT64_MAX};
    for (int i = 0; i < n_brackets || i == 0; i++) {
        uint64_t before = ps_ticks_ordered();
        int64_t ns = ps_now_ns();
        uint64_t width = ps_ticks_ordered() - before;
        if (width < best.width_ticks) {
            best.ticks = before + width / 2;
            best.ns = ns;
            best.width_ticks = width;
        }
    }
    return best;
}

#ifdef __cplusplus
}
#endif

#endif
