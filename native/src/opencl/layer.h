/* The parts of the tracing layer, and what they share.
 *
 *   layer.c         entry points, the environment, flush
 *   queues.c        queues: profiling forced on, and hidden from the program
 *   kernels.c       kernels: their names, and the buffers among their arguments
 *   memory.c        buffers, images and pipes: their sizes
 *   events.c        the program's own events: the layer's hold on them, hidden
 *   launch.c        wrappers of the launches of kernels
 *   enqueue.c       wrappers of all other commands
 *   call.h          what a wrapper does before and after the driver's call
 *   thread_ring.c   one ring of commands for each thread
 *   drain.c         the background thread
 *   pending.c       the times of what is complete, and by queue what is not yet
 *   log_writer.c    the file
 *   device_clock.c  devices, and readings of their clocks
 *   duplicate.c     kernel duplication
 *   copies.c        the copies of what a kernel was given, for duplication
 *   shelf.c         what is known of an object, by its handle
 *   process.c       the end of the process, and fork
 *
 * The program's threads take no lock when they set an argument or enqueue a command, but for a moment where they ask for
 * an event, and never wait for the background thread.
 *
 * By hand, in native/: gcc -std=gnu11 -DCL_TARGET_OPENCL_VERSION=300 -O2 -fPIC -fvisibility=hidden -pthread -shared
 * -Wl,-Bsymbolic,-z,nodelete,--build-id -Iinclude $(ls src/opencl/[!c]*.c src/opencl/cop*.c)
 * -o libperfsuite_cl_layer.so
 */
#ifndef PERFSUITE_OPENCL_LAYER_H
#define PERFSUITE_OPENCL_LAYER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include "perfsuite/cl_log.h"
#include "perfsuite/clock.h"

/* What the layer below answers; entries that it lacks are NULL. */
extern struct _cl_icd_dispatch ps_cl_below;

/* Why commands are not recorded now; 0 while they are. */
enum { PS_CL_GATE_OFF = 1, PS_CL_GATE_PROFILE_ONLY = 4 };
extern _Atomic uint32_t ps_cl_gate;

/* Off for good: without a log, in a child of fork, and once the process ends. Every call then goes straight below. */
static inline bool ps_cl_is_off(void) {
    return atomic_load_explicit(&ps_cl_gate, memory_order_relaxed) & PS_CL_GATE_OFF;
}

/* Says a line about itself on stderr. */
void ps_cl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Each part's wrappers go into the table. */
void ps_cl_replace_queues(struct _cl_icd_dispatch *table);
void ps_cl_replace_kernels(struct _cl_icd_dispatch *table);
void ps_cl_replace_memories(struct _cl_icd_dispatch *table);
void ps_cl_replace_events(struct _cl_icd_dispatch *table);
void ps_cl_replace_launches(struct _cl_icd_dispatch *table);
void ps_cl_replace_enqueues(struct _cl_icd_dispatch *table);

/* Puts a wrapper where the layer below has the function at all. */
#define PS_CL_REPLACE(table, function, wrapper)  \
    do {                                         \
        if (ps_cl_below.function) {              \
            (table)->function = (wrapper);       \
        }                                        \
    } while (0)

#endif
