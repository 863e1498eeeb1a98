/* The two clocks of the suite: CLOCK_MONOTONIC in ns, and the processor's constant-rate counter in ticks.
 *
 * Reading the counter takes a fraction of what a clock call takes, so recorders stamp ticks and convert them after the
 * run, between two calibration points taken before and after it.  Header only: C11 and C++17.
 */
#ifndef PERFSUITE_CLOCK_H
#define PERFSUITE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

/* Whether ticks come at one rate at every frequency and in every sleep state; without it they are not time. */
static inline bool ps_ticks_are_invariant(void) {
#if defined(__x86_64__)
    unsigned int eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8)) != 0;
#else
    return true; /* architectural on aarch64 */
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

/* The monotonic time of `ticks`, on the line through two calibration points, rounded to the nearest ns:
 *
 *     ns = a.ns + (ticks - a.ticks) * (b.ns - a.ns) / (b.ticks - a.ticks)
 *
 * Exact (128-bit product); `ticks` may lie before, between or after the points and on either side of a wrap, within
 * 2^63 ticks of `a`.  Two points at one tick give a.ns; what leaves the int64 range sticks at its end. */
static inline int64_t ps_ticks_to_ns(uint64_t ticks, const ps_clock_point *a, const ps_clock_point *b) {
    int64_t run = (int64_t)(b->ticks - a->ticks);
    if (run == 0) {
        return a->ns;
    }
    __extension__ typedef __int128 wide;
    wide rise = (wide)(int64_t)(ticks - a->ticks) * ((wide)b->ns - a->ns);
    wide half = (run < 0 ? -(wide)run : (wide)run) / 2;
    wide ns = a->ns + (rise + ((rise < 0) ? -half : half)) / run;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

#ifdef __cplusplus
}
#endif

#endif
