/* Phase records for whoever watches a run while it goes on: a queue from the driver's thread to one consumer.
 *
 * The driver never waits and makes no system call but one: where the consumer asked to be woken (ps_live_arm), the next
 * phase that is worth a wake-up writes to an eventfd.  When the queue is full the record is dropped and counted.  One
 * queue a process; while none is open, a push is one load and one branch.
 */
#ifndef PERFSUITE_LIVE_H
#define PERFSUITE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "perfsuite/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the queue for at least `capacity` records; false where one is open or memory is short.  Opening and closing
 * belong to the producer's thread, or to a time when nothing is pushed; the consumer has ended before the closing. */
bool ps_live_open(uint64_t capacity, int event_fd);
void ps_live_close(void);

/* By the producer's thread: whether what is pushed goes nowhere from here on. */
void ps_live_pause(bool paused);

/* By the producer: keeps a copy.  The end of a load, of a prefill, of a decode step and of a repetition wake the
 * consumer; what follows a decode step (copy, softmax, sampling) is over in a moment and waits for the next of these. */
void ps_live_push(const ps_span *span);

/* By the consumer: moves at most `capacity` records to `spans`, oldest first, and returns their number. */
uint64_t ps_live_take(ps_span *spans, uint64_t capacity);

/* By the consumer, before it waits: asks for one wake-up.  True where a record that is worth one came in the meantime:
 * then take again instead of waiting. */
bool ps_live_arm(void);

/* Records that found the queue full, since it was opened. */
uint64_t ps_live_dropped(void);

#ifdef __cplusplus
}
#endif

#endif
