/* Queues: profiling is switched on for every one, and the program does not see it.
 *
 * A queue on the device is left alone: its commands are not enqueued by the host.
 */
#include "objects.h"
#include "device_clock.h"
#include "drain.h"
#include "log_writer.h"
#include "process.h"

ps_cl_shelf ps_cl_queues = PS_CL_SHELF(ps_cl_queue_state);

static atomic_uint n_queues;

enum { MAX_PROPERTIES = sizeof(((ps_cl_queue_state *)0)->asked) / sizeof(cl_queue_properties) };

/* ---- contexts, which have a number only ------------------------------------------------------------------------- */

typedef struct numbered_context {
    ps_cl_item item;
    uint32_t id;
} numbered_context;

ps_cl_shelf ps_cl_contexts = PS_CL_SHELF(numbered_context);
static atomic_uint n_contexts;

static uint32_t context_id(cl_context context) {
    numbered_context *found = (numbered_context *)ps_cl_shelf_find_surely(&ps_cl_contexts, context);
    if (!found && (found = (numbered_context *)ps_cl_shelf_take(&ps_cl_contexts))) {
        found->id = atomic_fetch_add(&n_contexts, 1) + 1;
        uint32_t id = found->id;
        ps_cl_shelf_give_back(&ps_cl_contexts, ps_cl_shelf_publish(&ps_cl_contexts, &found->item, context));
        return id;
    }
    return found ? found->id : 0;
}

/* A handle that comes again is another context. */
static cl_context context_made(cl_context context) {
    if (context && !ps_cl_is_off()) {
        ps_cl_shelf_give_back(&ps_cl_contexts, ps_cl_shelf_release(&ps_cl_contexts, context));
    }
    return context;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n_devices,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                             void *user_data, cl_int *status_ret) {
    return context_made(ps_cl_below.clCreateContext(properties, n_devices, devices, notify, user_data, status_ret));
}

static cl_context CL_API_CALL create_context_from_type(
    const cl_context_properties *properties, cl_device_type type,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user_data, cl_int *status_ret) {
    return context_made(ps_cl_below.clCreateContextFromType(properties, type, notify, user_data, status_ret));
}

/* ---- queues that are gone, whose events may live on ------------------------------------------------------------- */

static ps_cl_shelf hidden_and_gone = PS_CL_SHELF(ps_cl_item);

static bool is_hidden(const ps_cl_queue_state *state) {
    return state->is_profiled && !atomic_load_explicit(&state->caller_profiles, memory_order_relaxed);
}

bool ps_cl_queue_is_hidden(cl_command_queue queue) {
    const ps_cl_queue_state *state = (ps_cl_queue_state *)ps_cl_shelf_find_surely(&ps_cl_queues, queue);
    return state ? is_hidden(state) : ps_cl_shelf_find_surely(&hidden_and_gone, queue) != NULL;
}

static void remember_hidden(const ps_cl_queue_state *state) {
    ps_cl_item *item = is_hidden(state) ? ps_cl_shelf_take(&hidden_and_gone) : NULL;
    if (item) {
        ps_cl_shelf_give_back(&hidden_and_gone, ps_cl_shelf_publish(&hidden_and_gone, item, state->handle));
    }
}

/* ---- the state -------------------------------------------------------------------------------------------------- */

static void note_queue(const ps_cl_queue_state *state, cl_context context, uint32_t flags) {
    ps_cl_queue record = {.prefix = {PS_CL_QUEUE, sizeof(record)},
                          .id = state->id,
                          .context = context_id(context),
                          .device = state->device,
                          .flags = flags};
    ps_cl_log_note(&record, sizeof(record));
}

/* `asked`: the properties that the program gave, a list that ends with 0, or NULL where it gave none. */
static ps_cl_queue_state *queue_made(cl_command_queue queue, const cl_queue_properties *asked, bool caller_profiles,
                                     bool is_profiled) {
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_command_queue_properties properties = 0;
    if (ps_cl_below.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL) != CL_SUCCESS ||
        ps_cl_below.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) != CL_SUCCESS) {
        return NULL;
    }
    ps_cl_below.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL);
    ps_cl_queue_state *state = (ps_cl_queue_state *)ps_cl_shelf_take(&ps_cl_queues);
    if (!state) {
        return NULL;
    }
    state->handle = queue;
    state->id = atomic_fetch_add(&n_queues, 1) + 1;
    state->device = ps_cl_device_open(device);
    state->is_out_of_order = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    state->is_profiled = is_profiled;
    atomic_store(&state->caller_profiles, caller_profiles);
    state->has_array = asked != NULL;
    state->n_asked = 0;
    while (asked && asked[state->n_asked] && state->n_asked + 2 < MAX_PROPERTIES) {
        state->asked[state->n_asked] = asked[state->n_asked];
        state->asked[state->n_asked + 1] = asked[state->n_asked + 1];
        state->n_asked += 2;
    }
    state->asked[state->n_asked++] = 0;
    note_queue(state, context, (state->is_out_of_order ? PS_CL_QUEUE_OUT_OF_ORDER : 0) |
                                   (caller_profiles ? PS_CL_QUEUE_CALLER_PROFILES : 0));
    ps_cl_shelf_give_back(&hidden_and_gone, ps_cl_shelf_release(&hidden_and_gone, queue));
    ps_cl_queue_state *former = (ps_cl_queue_state *)ps_cl_shelf_publish(&ps_cl_queues, &state->item, queue);
    if (former) {
        ps_cl_device_close(former->device);
        ps_cl_drain_retire(former);
    }
    ps_cl_clock_mark(state);
    ps_cl_process_watch_end();
    return state;
}

/* A queue that an extension made.  One on the device has no commands of the host. */
ps_cl_queue_state *ps_cl_queue_of_stranger(cl_command_queue queue) {
    ps_cl_item *item = ps_cl_shelf_find_surely(&ps_cl_queues, queue);
    if (item || !queue || !ps_cl_process_ready()) {
        return (ps_cl_queue_state *)item;
    }
    cl_command_queue_properties properties = 0;
    if (ps_cl_below.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL) !=
            CL_SUCCESS ||
        (properties & CL_QUEUE_ON_DEVICE)) {
        return NULL;
    }
    bool is_profiled = properties & CL_QUEUE_PROFILING_ENABLE;
    return queue_made(queue, NULL, is_profiled, is_profiled);
}

/* ---- creation --------------------------------------------------------------------------------------------------- */

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties, cl_int *status_ret) {
    if (ps_cl_is_off() || !ps_cl_process_ready()) {
        return ps_cl_below.clCreateCommandQueue(context, device, properties, status_ret);
    }
    bool is_profiled = true;
    cl_command_queue queue =
        ps_cl_below.clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, status_ret);
    if (!queue && !(properties & CL_QUEUE_PROFILING_ENABLE)) {
        is_profiled = false;
        queue = ps_cl_below.clCreateCommandQueue(context, device, properties, status_ret);
    }
    if (queue) {
        queue_made(queue, NULL, properties & CL_QUEUE_PROFILING_ENABLE, is_profiled);
    }
    return queue;
}

/* Copies a list of properties with profiling switched on; false where it is too long or the queue on the device. */
static bool with_profiling(const cl_queue_properties *asked, cl_queue_properties *forced,
                           cl_command_queue_properties *bits) {
    size_t n = 0;
    bool has_bits = false;
    for (; asked && asked[n]; n += 2) {
        if (n + 4 >= MAX_PROPERTIES) {
            return false;
        }
        forced[n] = asked[n];
        forced[n + 1] = asked[n + 1];
        if (asked[n] == CL_QUEUE_PROPERTIES) {
            *bits = asked[n + 1];
            forced[n + 1] |= CL_QUEUE_PROFILING_ENABLE;
            has_bits = true;
        }
    }
    if (!has_bits) {
        forced[n++] = CL_QUEUE_PROPERTIES;
        forced[n++] = CL_QUEUE_PROFILING_ENABLE;
    }
    forced[n] = 0;
    return !(*bits & CL_QUEUE_ON_DEVICE);
}

static cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device,
                                                                 const cl_queue_properties *asked,
                                                                 cl_int *status_ret) {
    cl_queue_properties forced[MAX_PROPERTIES];
    cl_command_queue_properties bits = 0;
    if (ps_cl_is_off() || !with_profiling(asked, forced, &bits) || !ps_cl_process_ready()) {
        return ps_cl_below.clCreateCommandQueueWithProperties(context, device, asked, status_ret);
    }
    bool is_profiled = true;
    cl_command_queue queue = ps_cl_below.clCreateCommandQueueWithProperties(context, device, forced, status_ret);
    if (!queue && !(bits & CL_QUEUE_PROFILING_ENABLE)) {
        is_profiled = false;
        queue = ps_cl_below.clCreateCommandQueueWithProperties(context, device, asked, status_ret);
    }
    if (queue) {
        queue_made(queue, asked, bits & CL_QUEUE_PROFILING_ENABLE, is_profiled);
    }
    return queue;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* While the process ends, the layer is off and the drain still goes through the queues: none of them may be gone. */
static bool is_counted(void) {
    return !ps_cl_is_off() || ps_cl_process_is_owner();
}

static cl_int CL_API_CALL retain_queue(cl_command_queue queue) {
    cl_int status = ps_cl_below.clRetainCommandQueue(queue);
    if (status == CL_SUCCESS && is_counted()) {
        ps_cl_shelf_retain(&ps_cl_queues, queue);
    }
    return status;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue) {
    ps_cl_queue_state *state = NULL;
    if (is_counted()) {
        state = (ps_cl_queue_state *)ps_cl_shelf_release(&ps_cl_queues, queue);
    }
    if (state) {
        remember_hidden(state);
        if (!ps_cl_is_off()) { /* else nobody may be left to read it */
            ps_cl_clock_mark(state);
        }
        ps_cl_device_close(state->device);
    }
    cl_int status = ps_cl_below.clReleaseCommandQueue(queue);
    if (state) {
        ps_cl_drain_retire(state);
    }
    return status;
}

/* ---- what the program sees -------------------------------------------------------------------------------------- */

static cl_int answer_array(const ps_cl_queue_state *state, size_t size, void *value, size_t *size_ret) {
    size_t needed = state->has_array ? state->n_asked * sizeof(*state->asked) : 0;
    if (value && size < needed) {
        return CL_INVALID_VALUE;
    }
    if (value) {
        memcpy(value, state->asked, needed);
    }
    if (size_ret) {
        *size_ret = needed;
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_queue_info(cl_command_queue queue, cl_command_queue_info name, size_t size, void *value,
                                         size_t *size_ret) {
    cl_int status = ps_cl_below.clGetCommandQueueInfo(queue, name, size, value, size_ret);
    bool is_told = name == CL_QUEUE_PROPERTIES || name == CL_QUEUE_PROPERTIES_ARRAY;
    if (!is_told || ps_cl_is_off()) {
        return status;
    }
    const ps_cl_queue_state *state = (ps_cl_queue_state *)ps_cl_shelf_find_surely(&ps_cl_queues, queue);
    if (!state || !state->is_profiled) {
        return status;
    }
    if (name == CL_QUEUE_PROPERTIES_ARRAY) {
        bool is_known = ps_cl_below.clGetCommandQueueInfo(queue, name, 0, NULL, NULL) == CL_SUCCESS;
        return is_known ? answer_array(state, size, value, size_ret) : status;
    }
    if (status == CL_SUCCESS && value && !atomic_load(&state->caller_profiles)) {
        *(cl_command_queue_properties *)value &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
    }
    return status;
}

/* OpenCL 1.0 lets a program switch profiling on and off: it stays on, and is hidden or not. */
static cl_int CL_API_CALL set_queue_property(cl_command_queue queue, cl_command_queue_properties properties,
                                             cl_bool enable, cl_command_queue_properties *old) {
    cl_int status = ps_cl_below.clSetCommandQueueProperty(queue, properties, enable, old);
    if (status != CL_SUCCESS || ps_cl_is_off()) {
        return status;
    }
    ps_cl_queue_state *state = (ps_cl_queue_state *)ps_cl_shelf_find_surely(&ps_cl_queues, queue);
    if (!state || !state->is_profiled) {
        return status;
    }
    if (old && !atomic_load(&state->caller_profiles)) {
        *old &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
    }
    if (properties & CL_QUEUE_PROFILING_ENABLE) {
        atomic_store(&state->caller_profiles, enable);
        if (!enable) {
            ps_cl_below.clSetCommandQueueProperty(queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, NULL);
        }
    }
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
        state->is_out_of_order = enable;
    }
    return status;
}

void ps_cl_replace_queues(struct _cl_icd_dispatch *table) {
    PS_CL_REPLACE(table, clCreateContext, create_context);
    PS_CL_REPLACE(table, clCreateContextFromType, create_context_from_type);
    PS_CL_REPLACE(table, clCreateCommandQueue, create_queue);
    PS_CL_REPLACE(table, clCreateCommandQueueWithProperties, create_queue_with_properties);
    PS_CL_REPLACE(table, clRetainCommandQueue, retain_queue);
    PS_CL_REPLACE(table, clReleaseCommandQueue, release_queue);
    PS_CL_REPLACE(table, clGetCommandQueueInfo, get_queue_info);
    PS_CL_REPLACE(table, clSetCommandQueueProperty, set_queue_property);
}
