/* A driver that does nothing, for the tests of the OpenCL layer: its events have scripted states and times.
 *
 * Handles are addresses of its own objects.  Buffers hold bytes, and the kernel `add_one` adds 1 to each byte of the
 * buffer that is its first argument.
 */
#ifndef PERFSUITE_TESTS_FAKE_OPENCL_H
#define PERFSUITE_TESTS_FAKE_OPENCL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <CL/cl.h>
#include <CL/cl_icd.h>

/* What the next commands get. */
extern _Atomic cl_int fake_status; /* CL_COMPLETE, CL_QUEUED (until fake_finish), or an error */
extern _Atomic cl_int fake_refusal; /* of the enqueue calls; CL_SUCCESS: none */
extern _Atomic bool fake_has_timer;

extern void (*fake_during)(void); /* run once within the next launch, as a callback of a driver may be */
extern _Atomic int fake_peak;     /* the largest byte that `add_one` made */

extern _Atomic int64_t fake_n_events;   /* living ones */
extern _Atomic int64_t fake_n_launches; /* of kernels */
extern _Atomic uint32_t fake_n_memories;

/* Completes an event, or one and all. */
void fake_finish(cl_event event);
void fake_finish_all(void);

/* What a query of OpenCL's answers with `needed` bytes. */
cl_int fake_answer(const void *from, size_t needed, size_t size, void *value, size_t *size_ret);

cl_int fake_references(cl_event event);
uint8_t *fake_bytes(cl_mem memory);
extern const struct _cl_icd_dispatch fake_table;
extern const cl_uint fake_n_entries;

#endif
