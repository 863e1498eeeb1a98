/* Launches of kernels. */
#include "call.h"
#include "duplicate.h"

static void fill_kernel(ps_cl_command *command, const ps_cl_launch *launch, const ps_cl_kernel_state *kernel) {
    command->work_dim = (uint16_t)launch->work_dim;
    for (cl_uint i = 0; i < launch->work_dim && i < 3; i++) {
        command->global[i] = launch->global ? launch->global[i] : 0;
        command->local[i] = launch->local ? (uint32_t)launch->local[i] : 0;
    }
    if (kernel) {
        command->name = kernel->name;
        command->n_buffers = kernel->n_buffers;
        memcpy(command->buffer_bytes, kernel->buffer_bytes, sizeof(command->buffer_bytes));
    }
}

/* After the driver's call: records what it took, also in `copy`, where there is one. */
static void close_launch(ps_cl_call *c, const ps_cl_launch *launch, cl_int status, ps_cl_entry *copy) {
    if (!c->thread) {
        return;
    }
    if (status != CL_SUCCESS) {
        ps_cl_refuse_call(c);
        return;
    }
    c->end_ns = ps_now_ns();
    const ps_cl_kernel_state *kernel = ps_cl_kernel_of(launch->kernel);
    ps_cl_entry *entry = ps_cl_close_call(c, PS_CL_KERNEL);
    if (entry) {
        fill_kernel(&entry->command, launch, kernel);
        if (copy) {
            *copy = *entry;
        }
        ps_cl_ring_publish(c->thread);
    }
}

static cl_int launch_kernel(ps_cl_call *c, const ps_cl_launch *l) {
    return ps_cl_below.clEnqueueNDRangeKernel(l->queue, l->kernel, l->work_dim, l->offset, l->global, l->local,
                                              l->n_waits, l->waits, c->taken);
}

/* The launch that may be duplicated. */
static __attribute__((noinline)) cl_int launch_armed(const ps_cl_launch *launch, cl_event *event) {
    ps_cl_duplicating *duplicating = ps_cl_duplication_begin(launch);
    ps_cl_entry original = {.event = NULL};
    ps_cl_call c;
    ps_cl_open_call(&c, launch->queue, launch->n_waits, event);
    cl_int status = launch_kernel(&c, launch);
    close_launch(&c, launch, status, &original);
    if (duplicating) {
        ps_cl_duplication_run(duplicating, launch, status, &original);
    }
    return status;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint work_dim,
                                         const size_t *offset, const size_t *global, const size_t *local,
                                         cl_uint n_waits, const cl_event *waits, cl_event *event) {
    ps_cl_launch launch = {queue, kernel, work_dim, offset, global, local, n_waits, waits};
    if (atomic_load_explicit(&ps_cl_duplication_armed, memory_order_relaxed) &&
        !atomic_load_explicit(&ps_cl_gate, memory_order_relaxed)) {
        return launch_armed(&launch, event);
    }
    ps_cl_call c;
    ps_cl_open_call(&c, queue, n_waits, event);
    cl_int status = launch_kernel(&c, &launch);
    close_launch(&c, &launch, status, NULL);
    return status;
}

static cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint n_waits, const cl_event *waits,
                                       cl_event *event) {
    static const size_t one = 1;
    ps_cl_call c;
    ps_cl_open_call(&c, queue, n_waits, event);
    cl_int status = ps_cl_below.clEnqueueTask(queue, kernel, n_waits, waits, c.taken);
    close_launch(&c, &(ps_cl_launch){queue, kernel, 1, NULL, &one, &one, n_waits, waits}, status, NULL);
    return status;
}

void ps_cl_replace_launches(struct _cl_icd_dispatch *table) {
    PS_CL_REPLACE(table, clEnqueueNDRangeKernel, enqueue_kernel);
    PS_CL_REPLACE(table, clEnqueueTask, enqueue_task);
}
