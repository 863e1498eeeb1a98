/* One wrapper for each command of OpenCL 1.0 to 3.0 that is no kernel.
 *
 * Each calls the driver with an event of the layer's own where the program asked for none, and leaves a record in the
 * calling thread's ring.  Functions that a program gets by clGetExtensionFunctionAddress* do not come by here: their
 * commands are not recorded.
 */
#include "call.h"

/* A command that is no kernel. */
static void record(ps_cl_call *c, ps_cl_command_type type, bool is_blocking, uint64_t moved_bytes) {
    c->flags |= is_blocking ? PS_CL_BLOCKING : 0;
    ps_cl_entry *entry = ps_cl_close_call(c, type);
    if (entry) {
        entry->command.moved_bytes = moved_bytes;
        ps_cl_ring_publish(c->thread);
    }
    if (is_blocking && ps_cl_ring_depth(c->thread) >= PS_CL_KICK_DEPTH) {
        ps_cl_drain_kick();
    }
}

static uint64_t volume(const size_t *region) {
    return (uint64_t)region[0] * region[1] * region[2];
}

static uint64_t image_bytes(cl_mem image, const size_t *region) {
    const ps_cl_memory_state *state = ps_cl_memory_of(image);
    return state ? volume(region) * state->element_bytes : 0;
}

/* The functions of the dispatch table that end in a list of events to wait for and an event, and what is recorded of
 * each: (function, type, whether it blocks, bytes that it moves, parameters after the queue, arguments after it). */
#define COMMANDS(COMMAND)                                                                                              \
    COMMAND(clEnqueueReadBuffer, PS_CL_READ, blocks, size,                                                             \
            (Q, cl_mem buffer, cl_bool blocks, size_t offset, size_t size, void *to, W),                               \
            (queue, buffer, blocks, offset, size, to, n_waits, waits, c.taken))                                        \
    COMMAND(clEnqueueWriteBuffer, PS_CL_WRITE, blocks, size,                                                           \
            (Q, cl_mem buffer, cl_bool blocks, size_t offset, size_t size, const void *from, W),                       \
            (queue, buffer, blocks, offset, size, from, n_waits, waits, c.taken))                                      \
    COMMAND(clEnqueueReadBufferRect, PS_CL_READ, blocks, volume(region),                                               \
            (Q, cl_mem buffer, cl_bool blocks, const size_t *origin, const size_t *host_origin, const size_t *region,  \
             size_t row, size_t slice, size_t host_row, size_t host_slice, void *to, W),                               \
            (queue, buffer, blocks, origin, host_origin, region, row, slice, host_row, host_slice, to, n_waits, waits, \
             c.taken))                                                                                                 \
    COMMAND(clEnqueueWriteBufferRect, PS_CL_WRITE, blocks, volume(region),                                             \
            (Q, cl_mem buffer, cl_bool blocks, const size_t *origin, const size_t *host_origin, const size_t *region,  \
             size_t row, size_t slice, size_t host_row, size_t host_slice, const void *from, W),                       \
            (queue, buffer, blocks, origin, host_origin, region, row, slice, host_row, host_slice, from, n_waits,      \
             waits, c.taken))                                                                                          \
    COMMAND(clEnqueueCopyBuffer, PS_CL_COPY, false, size,                                                              \
            (Q, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size, W),                         \
            (queue, from, to, from_offset, to_offset, size, n_waits, waits, c.taken))                                  \
    COMMAND(clEnqueueCopyBufferRect, PS_CL_COPY, false, volume(region),                                                \
            (Q, cl_mem from, cl_mem to, const size_t *from_origin, const size_t *to_origin, const size_t *region,      \
             size_t from_row, size_t from_slice, size_t to_row, size_t to_slice, W),                                   \
            (queue, from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice, n_waits, waits,  \
             c.taken))                                                                                                 \
    COMMAND(clEnqueueFillBuffer, PS_CL_FILL, false, size,                                                              \
            (Q, cl_mem buffer, const void *pattern, size_t pattern_size, size_t offset, size_t size, W),               \
            (queue, buffer, pattern, pattern_size, offset, size, n_waits, waits, c.taken))                             \
    COMMAND(clEnqueueReadImage, PS_CL_READ, blocks, image_bytes(image, region),                                        \
            (Q, cl_mem image, cl_bool blocks, const size_t *origin, const size_t *region, size_t row, size_t slice,    \
             void *to, W),                                                                                             \
            (queue, image, blocks, origin, region, row, slice, to, n_waits, waits, c.taken))                           \
    COMMAND(clEnqueueWriteImage, PS_CL_WRITE, blocks, image_bytes(image, region),                                      \
            (Q, cl_mem image, cl_bool blocks, const size_t *origin, const size_t *region, size_t row, size_t slice,    \
             const void *from, W),                                                                                     \
            (queue, image, blocks, origin, region, row, slice, from, n_waits, waits, c.taken))                         \
    COMMAND(clEnqueueFillImage, PS_CL_FILL, false, image_bytes(image, region),                                         \
            (Q, cl_mem image, const void *colour, const size_t *origin, const size_t *region, W),                      \
            (queue, image, colour, origin, region, n_waits, waits, c.taken))                                           \
    COMMAND(clEnqueueCopyImage, PS_CL_COPY, false, image_bytes(from, region),                                          \
            (Q, cl_mem from, cl_mem to, const size_t *from_origin, const size_t *to_origin, const size_t *region, W),  \
            (queue, from, to, from_origin, to_origin, region, n_waits, waits, c.taken))                                \
    COMMAND(clEnqueueCopyImageToBuffer, PS_CL_COPY, false, image_bytes(image, region),                                 \
            (Q, cl_mem image, cl_mem buffer, const size_t *origin, const size_t *region, size_t offset, W),            \
            (queue, image, buffer, origin, region, offset, n_waits, waits, c.taken))                                   \
    COMMAND(clEnqueueCopyBufferToImage, PS_CL_COPY, false, image_bytes(image, region),                                 \
            (Q, cl_mem buffer, cl_mem image, size_t offset, const size_t *origin, const size_t *region, W),            \
            (queue, buffer, image, offset, origin, region, n_waits, waits, c.taken))                                   \
    COMMAND(clEnqueueUnmapMemObject, PS_CL_UNMAP, false, 0, (Q, cl_mem memory, void *mapped, W),                       \
            (queue, memory, mapped, n_waits, waits, c.taken))                                                          \
    COMMAND(clEnqueueMigrateMemObjects, PS_CL_MIGRATE, false, 0,                                                       \
            (Q, cl_uint n_memories, const cl_mem *memories, cl_mem_migration_flags flags, W),                          \
            (queue, n_memories, memories, flags, n_waits, waits, c.taken))                                             \
    COMMAND(clEnqueueNativeKernel, PS_CL_NATIVE, false, 0,                                                             \
            (Q, void(CL_CALLBACK * function)(void *), void *arguments, size_t bytes, cl_uint n_memories,               \
             const cl_mem *memories, const void **places, W),                                                          \
            (queue, function, arguments, bytes, n_memories, memories, places, n_waits, waits, c.taken))                \
    COMMAND(clEnqueueMarkerWithWaitList, PS_CL_MARKER, false, 0, (Q, W), (queue, n_waits, waits, c.taken))             \
    COMMAND(clEnqueueBarrierWithWaitList, PS_CL_MARKER, false, 0, (Q, W), (queue, n_waits, waits, c.taken))            \
    COMMAND(clEnqueueSVMFree, PS_CL_SVM, false, 0,                                                                     \
            (Q, cl_uint n_pointers, void **pointers,                                                                   \
             void(CL_CALLBACK * free_them)(cl_command_queue, cl_uint, void **, void *), void *context, W),             \
            (queue, n_pointers, pointers, free_them, context, n_waits, waits, c.taken))                                \
    COMMAND(clEnqueueSVMMemcpy, PS_CL_SVM, blocks, size,                                                               \
            (Q, cl_bool blocks, void *to, const void *from, size_t size, W),                                           \
            (queue, blocks, to, from, size, n_waits, waits, c.taken))                                                  \
    COMMAND(clEnqueueSVMMemFill, PS_CL_SVM, false, size,                                                               \
            (Q, void *to, const void *pattern, size_t pattern_size, size_t size, W),                                   \
            (queue, to, pattern, pattern_size, size, n_waits, waits, c.taken))                                         \
    COMMAND(clEnqueueSVMMap, PS_CL_SVM, blocks, size,                                                                  \
            (Q, cl_bool blocks, cl_map_flags flags, void *at, size_t size, W),                                         \
            (queue, blocks, flags, at, size, n_waits, waits, c.taken))                                                 \
    COMMAND(clEnqueueSVMUnmap, PS_CL_SVM, false, 0, (Q, void *at, W), (queue, at, n_waits, waits, c.taken))            \
    COMMAND(clEnqueueSVMMigrateMem, PS_CL_SVM, false, 0,                                                               \
            (Q, cl_uint n_pointers, const void **pointers, const size_t *sizes, cl_mem_migration_flags flags, W),      \
            (queue, n_pointers, pointers, sizes, flags, n_waits, waits, c.taken))                                      \
    COMMAND(clEnqueueAcquireGLObjects, PS_CL_OTHER, false, 0, (Q, cl_uint n_objects, const cl_mem *objects, W),        \
            (queue, n_objects, objects, n_waits, waits, c.taken))                                                      \
    COMMAND(clEnqueueReleaseGLObjects, PS_CL_OTHER, false, 0, (Q, cl_uint n_objects, const cl_mem *objects, W),        \
            (queue, n_objects, objects, n_waits, waits, c.taken))                                                      \
    COMMAND(clEnqueueAcquireEGLObjectsKHR, PS_CL_OTHER, false, 0, (Q, cl_uint n_objects, const cl_mem *objects, W),    \
            (queue, n_objects, objects, n_waits, waits, c.taken))                                                      \
    COMMAND(clEnqueueReleaseEGLObjectsKHR, PS_CL_OTHER, false, 0, (Q, cl_uint n_objects, const cl_mem *objects, W),    \
            (queue, n_objects, objects, n_waits, waits, c.taken))

#define Q cl_command_queue queue
#define W cl_uint n_waits, const cl_event *waits, cl_event *event

#define DEFINE_COMMAND(function, type, is_blocking, moved_bytes, parameters, arguments) \
    static cl_int CL_API_CALL wrap_##function parameters {                              \
        ps_cl_call c;                                                                         \
        ps_cl_open_call(&c, queue, n_waits, event);                                           \
        cl_int status = ps_cl_below.function arguments;                                 \
        if (c.thread && status == CL_SUCCESS) {                                         \
            c.end_ns = ps_now_ns();                                                     \
            record(&c, type, is_blocking, moved_bytes);                                 \
        } else if (c.thread) {                                                          \
            ps_cl_refuse_call(&c);                                                            \
        }                                                                               \
        return status;                                                                  \
    }

COMMANDS(DEFINE_COMMAND)

/* The two that return a pointer, and the status through another. */
#define DEFINE_MAP(function, moved_bytes, parameters, arguments) \
    static void *CL_API_CALL wrap_##function parameters {        \
        ps_cl_call c;                                                  \
        cl_int status = CL_SUCCESS;                              \
        ps_cl_open_call(&c, queue, n_waits, event);                    \
        void *mapped = ps_cl_below.function arguments;           \
        if (c.thread && status == CL_SUCCESS) {                  \
            c.end_ns = ps_now_ns();                              \
            record(&c, PS_CL_MAP, blocks, moved_bytes);          \
        } else if (c.thread) {                                   \
            ps_cl_refuse_call(&c);                                     \
        }                                                        \
        if (status_ret) {                                        \
            *status_ret = status;                                \
        }                                                        \
        return mapped;                                           \
    }

DEFINE_MAP(clEnqueueMapBuffer, size,
           (Q, cl_mem buffer, cl_bool blocks, cl_map_flags flags, size_t offset, size_t size, W, cl_int *status_ret),
           (queue, buffer, blocks, flags, offset, size, n_waits, waits, c.taken, &status))
DEFINE_MAP(clEnqueueMapImage, image_bytes(image, region),
           (Q, cl_mem image, cl_bool blocks, cl_map_flags flags, const size_t *origin, const size_t *region,
            size_t *row, size_t *slice, W, cl_int *status_ret),
           (queue, image, blocks, flags, origin, region, row, slice, n_waits, waits, c.taken, &status))

/* The three of OpenCL 1.0.  A marker must be given an event, so there is none to add; the other two have none at all:
 * they are recorded without times. */
static cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_event *event) {
    if (!event) {
        return ps_cl_below.clEnqueueMarker(queue, event);
    }
    ps_cl_call c;
    ps_cl_open_call(&c, queue, 0, event);
    cl_int status = ps_cl_below.clEnqueueMarker(queue, c.taken);
    if (c.thread && status == CL_SUCCESS) {
        c.end_ns = ps_now_ns();
        record(&c, PS_CL_MARKER, false, 0);
    } else if (c.thread) {
        ps_cl_refuse_call(&c);
    }
    return status;
}

static void record_eventless(ps_cl_call *c, cl_int status) {
    if (c->thread && status == CL_SUCCESS) {
        c->end_ns = ps_now_ns();
        record(c, PS_CL_MARKER, false, 0);
    } else if (c->thread) {
        ps_cl_refuse_call(c);
    }
}

static cl_int CL_API_CALL enqueue_wait_for_events(cl_command_queue queue, cl_uint n_events, const cl_event *events) {
    ps_cl_call c;
    ps_cl_open_call(&c, queue, n_events, NULL);
    cl_int status = ps_cl_below.clEnqueueWaitForEvents(queue, n_events, events);
    record_eventless(&c, status);
    return status;
}

static cl_int CL_API_CALL enqueue_barrier(cl_command_queue queue) {
    ps_cl_call c;
    ps_cl_open_call(&c, queue, 0, NULL);
    cl_int status = ps_cl_below.clEnqueueBarrier(queue);
    record_eventless(&c, status);
    return status;
}

/* ---- calls that return when commands are complete: the time to read theirs --------------------------------------- */

static void kick_if_worth_it(void) {
    if (!atomic_load_explicit(&ps_cl_gate, memory_order_relaxed) && ps_cl_mine &&
        ps_cl_ring_depth(ps_cl_mine) >= PS_CL_KICK_DEPTH) {
        ps_cl_drain_kick();
    }
}

static cl_int CL_API_CALL finish(cl_command_queue queue) {
    cl_int status = ps_cl_below.clFinish(queue);
    kick_if_worth_it();
    return status;
}

static cl_int CL_API_CALL wait_for_events(cl_uint n_events, const cl_event *events) {
    cl_int status = ps_cl_below.clWaitForEvents(n_events, events);
    kick_if_worth_it();
    return status;
}

#define REPLACE_COMMAND(function, type, is_blocking, moved_bytes, parameters, arguments) \
    PS_CL_REPLACE(table, function, wrap_##function);

void ps_cl_replace_enqueues(struct _cl_icd_dispatch *table) {
    COMMANDS(REPLACE_COMMAND)
    PS_CL_REPLACE(table, clEnqueueMapBuffer, wrap_clEnqueueMapBuffer);
    PS_CL_REPLACE(table, clEnqueueMapImage, wrap_clEnqueueMapImage);
    PS_CL_REPLACE(table, clEnqueueMarker, enqueue_marker);
    PS_CL_REPLACE(table, clEnqueueWaitForEvents, enqueue_wait_for_events);
    PS_CL_REPLACE(table, clEnqueueBarrier, enqueue_barrier);
    PS_CL_REPLACE(table, clFinish, finish);
    PS_CL_REPLACE(table, clWaitForEvents, wait_for_events);
}
