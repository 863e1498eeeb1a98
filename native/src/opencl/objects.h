/* What the layer knows of queues, kernels and memory objects, and its hold on events. */
#ifndef PERFSUITE_OPENCL_OBJECTS_H
#define PERFSUITE_OPENCL_OBJECTS_H

#include "layer.h"
#include "shelf.h"

typedef struct ps_cl_queue_state {
    ps_cl_item item;
    cl_command_queue handle;
    uint32_t id;
    uint32_t device; /* id in the log */
    bool is_out_of_order, is_profiled;
    atomic_bool caller_profiles;
    bool has_array; /* it was made with a list of properties, `asked` */
    cl_queue_properties asked[16];
    size_t n_asked;
    /* The drain's own: commands that are not complete yet, by sequence. */
    struct ps_cl_waiting *first, *last;
    struct ps_cl_queue_state *next_busy;
    bool is_busy;
    struct ps_cl_queue_state *next_retired;
} ps_cl_queue_state;

enum { PS_CL_MAX_ARGUMENTS = 128 };

typedef struct ps_cl_argument {
    uint64_t raw;   /* the handle, where it is 8 bytes long */
    uint64_t bytes; /* of the buffer or image */
    uint32_t epoch; /* of the memory objects when it was looked up */
    bool is_memory;
    bool is_svm;
    uint8_t place; /* among the buffers; beyond PS_CL_MAX_BUFFERS it is counted only */
} ps_cl_argument;

typedef struct ps_cl_kernel_state {
    ps_cl_item item;
    uint32_t name;
    bool uses_svm;
    bool is_stranger; /* its arguments are not known */
    uint16_t n_buffers;
    uint32_t n_arguments; /* that the array holds */
    uint64_t buffer_bytes[PS_CL_MAX_BUFFERS];
    ps_cl_argument arguments[PS_CL_MAX_ARGUMENTS];
} ps_cl_kernel_state;

typedef struct ps_cl_memory_state {
    ps_cl_item item;
    uint64_t bytes;
    uint32_t type; /* a cl_mem_object_type */
    uint32_t element_bytes; /* of an image */
} ps_cl_memory_state;

extern ps_cl_shelf ps_cl_contexts, ps_cl_queues, ps_cl_kernels, ps_cl_memories;

/* Changes with every memory object that is made or released. */
extern _Atomic uint32_t ps_cl_memory_epoch;

/* The states; what was not made under the layer's eyes is asked for. NULL for what is no valid handle. */
ps_cl_queue_state *ps_cl_queue_of_stranger(cl_command_queue queue);
ps_cl_kernel_state *ps_cl_kernel_of_stranger(cl_kernel kernel);

static inline ps_cl_queue_state *ps_cl_queue_of(cl_command_queue queue) {
    ps_cl_item *item = ps_cl_shelf_find_likely(&ps_cl_queues, queue);
    return item ? (ps_cl_queue_state *)item : ps_cl_queue_of_stranger(queue);
}

static inline ps_cl_kernel_state *ps_cl_kernel_of(cl_kernel kernel) {
    ps_cl_item *item = ps_cl_shelf_find_likely(&ps_cl_kernels, kernel);
    return item ? (ps_cl_kernel_state *)item : ps_cl_kernel_of_stranger(kernel);
}

static inline ps_cl_memory_state *ps_cl_memory_of(const void *memory) {
    return (ps_cl_memory_state *)ps_cl_shelf_find_surely(&ps_cl_memories, memory);
}

/* Whether the layer switched profiling on for a queue, living or gone, whose program did not ask for it. */
bool ps_cl_queue_is_hidden(cl_command_queue queue);

/* Keeps an event of the program alive until its times are read, and lets go of it. */
void ps_cl_events_init(void);
bool ps_cl_event_hold(cl_event event);
void ps_cl_event_let_go(cl_event event);

#endif
