/* Phase records for whoever watches a run while it goes on: a queue from the driver's thread to one consumer.
 *
 * The queue lies in memory that two processes share: the driver's, which pushes, and the one that publishes.  The driver
 * never waits and makes no system call but one: where the consumer asked to be woken (ps_live_arm), the next phase that
 * is worth a wake-up writes to an eventfd.  When the queue is full the record is dropped and counted.  One queue a
 * process; while none is open, a push is one load and one branch.
 */
#ifndef PERFSUITE_LIVE_H
#define PERFSUITE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "perfsuite/driver.h"

#if defined(__GNUC__)
#define PS_LIVE_API __attribute__((visibility("default")))
#else
#define PS_LIVE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A queue in shared memory. */
typedef struct ps_live_queue ps_live_queue;

/* Maps the memory behind a descriptor, zeros to begin with: as many records as fit, a power of two.  NULL where it
 * cannot be mapped, or is too small for one. */
PS_LIVE_API ps_live_queue *ps_live_map(int memory_fd);
PS_LIVE_API void ps_live_unmap(ps_live_queue *queue);

/* By the producer: what is pushed goes there from now on; false where another queue is open.  Opening and closing belong
 * to the producer's thread, or to a time when nothing is pushed. */
PS_LIVE_API bool ps_live_open(ps_live_queue *queue, int event_fd);
PS_LIVE_API void ps_live_close(void);

/* By the producer's thread: whether what is pushed goes nowhere from here on. */
PS_LIVE_API void ps_live_pause(bool paused);

/* By the producer: keeps a copy.  The end of a load, of a prefill, of a decode step and of a repetition wake the
 * consumer; what follows a decode step (copy, softmax, sampling) is over in a moment and waits for the next of these. */
PS_LIVE_API void ps_live_push(const ps_span *span);

/* By the consumer: moves at most `capacity` records to `spans`, oldest first, and returns their number. */
PS_LIVE_API uint64_t ps_live_take(ps_live_queue *queue, ps_span *spans, uint64_t capacity);

/* By the consumer, before it waits: asks for one wake-up.  True where a record that is worth one came in the meantime:
 * then take again instead of waiting. */
PS_LIVE_API bool ps_live_arm(ps_live_queue *queue);

/* Records that found the queue full, since it was opened. */
PS_LIVE_API uint64_t ps_live_dropped(const ps_live_queue *queue);

/* When the last pause ended, on the monotonic clock: 0 where there was none, INT64_MAX while one lasts. */
PS_LIVE_API int64_t ps_live_resumed_ns(const ps_live_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
