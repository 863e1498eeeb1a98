/* The layer's hold on events of the program: they are read after the program may have let go of them.
 *
 * The hold is a reference more, which clGetEventInfo does not show; and a queue whose program did not ask for profiling
 * has events that give no times.
 */
#include "objects.h"

enum { N_STRIPES = 64 };

/* Each stripe's lock is held while a reference is taken or dropped, and while references are counted. */
static pthread_mutex_t stripes[N_STRIPES];
static ps_cl_shelf holds = PS_CL_SHELF(ps_cl_item);

static pthread_mutex_t *stripe_of(cl_event event) {
    return &stripes[((uint64_t)(uintptr_t)event * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
}

bool ps_cl_event_hold(cl_event event) {
    ps_cl_item *item = ps_cl_shelf_take(&holds);
    if (!item) {
        return false;
    }
    pthread_mutex_lock(stripe_of(event));
    bool is_held = ps_cl_below.clRetainEvent(event) == CL_SUCCESS;
    if (is_held) {
        ps_cl_shelf_give_back(&holds, ps_cl_shelf_publish(&holds, item, event));
    }
    pthread_mutex_unlock(stripe_of(event));
    if (!is_held) {
        ps_cl_shelf_give_back(&holds, item);
    }
    return is_held;
}

void ps_cl_event_let_go(cl_event event) {
    pthread_mutex_lock(stripe_of(event));
    ps_cl_shelf_give_back(&holds, ps_cl_shelf_release(&holds, event));
    ps_cl_below.clReleaseEvent(event);
    pthread_mutex_unlock(stripe_of(event));
}

static cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info name, size_t size, void *value,
                                         size_t *size_ret) {
    if (name != CL_EVENT_REFERENCE_COUNT || ps_cl_is_off()) {
        return ps_cl_below.clGetEventInfo(event, name, size, value, size_ret);
    }
    pthread_mutex_lock(stripe_of(event));
    cl_int status = ps_cl_below.clGetEventInfo(event, name, size, value, size_ret);
    if (status == CL_SUCCESS && value && ps_cl_shelf_find_surely(&holds, event)) {
        --*(cl_uint *)value;
    }
    pthread_mutex_unlock(stripe_of(event));
    return status;
}

static bool is_hidden(cl_event event) {
    cl_command_queue queue = NULL;
    cl_int status = ps_cl_below.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL);
    return status == CL_SUCCESS && queue && ps_cl_queue_is_hidden(queue);
}

static cl_int CL_API_CALL get_profiling_info(cl_event event, cl_profiling_info name, size_t size, void *value,
                                             size_t *size_ret) {
    if (!ps_cl_is_off() && event && is_hidden(event)) {
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    }
    return ps_cl_below.clGetEventProfilingInfo(event, name, size, value, size_ret);
}

void ps_cl_events_init(void) {
    for (int i = 0; i < N_STRIPES; i++) {
        pthread_mutex_init(&stripes[i], NULL);
    }
}

void ps_cl_replace_events(struct _cl_icd_dispatch *table) {
    PS_CL_REPLACE(table, clGetEventInfo, get_event_info);
    PS_CL_REPLACE(table, clGetEventProfilingInfo, get_profiling_info);
}
