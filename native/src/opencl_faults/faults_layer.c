/* A driver with faults to order, for tests: a layer for OpenCL's loader that passes everything through and alters what
 * profiling says of kernels.  It stands below the tracing layer.
 *
 * PERFSUITE_OPENCL_FAULTS lists them, with ';' between two:
 *
 *     NAME [rate=RATIO] [amount=NUMBER] [kernel=PATTERN]
 *
 * of all kernels' launches (or of those that the PATTERN of fnmatch takes) the RATIO has the fault, 1 unless given.
 * Which ones is decided by the launch's number and PERFSUITE_OPENCL_FAULTS_SEED alone, so that a run can be had again.
 *
 *     zero_queued zero_submit zero_start zero_end zero_all     the time is 0
 *     none_queued none_submit none_start none_end none_all     CL_PROFILING_INFO_NOT_AVAILABLE
 *     submit_late   SUBMIT is `amount` ns after START
 *     start_early   START is `amount` ns before SUBMIT
 *     end_early     END is `amount` ns before START
 *     no_length     START is END
 *     queued_stray  QUEUED is up to `amount` ns off, either way
 *     tick          all times, and the device's timer, come in steps of `amount` ns, which need not be whole
 *     drift         all times, and the timer, run fast by `amount` millionths
 *     no_timer      there is no clGetDeviceAndHostTimer
 *     slow          each launch on a queue with profiling takes `amount` ns more
 *     rename        a kernel is called something else, by the seed
 *     fail_build    clBuildProgram fails after `amount` calls, all of them without it; nothing is built
 *     fail_launch   clEnqueueNDRangeKernel does, out of resources
 *     fail_read     clEnqueueReadBuffer does, out of resources
 *     quick_build   no fault, but nothing is optimised: hundreds of kernels are built in seconds
 *     steady        no fault, but a steady device: a kernel takes 1 to 8 times `amount` ns, by its name, and up to 3 % more
 *                   or less, one after the other; this is then the truth, whatever the machine is busy with
 *
 * PERFSUITE_OPENCL_FAULTS_TRUTH names a file that gets a line for each launch whose times are read: its number, the
 * kernel's own name, and the four times as the driver gave them.
 */
#define _GNU_SOURCE
#define PS_LAYER_NAME "perfsuite layer of a driver's faults"
#include "../opencl/layer_entry.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { QUEUED, SUBMIT, START, END, N_TIMES };
enum { MAX_FAULTS = 16, NAME_BYTES = 128 };

static const cl_profiling_info asked_by[N_TIMES] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                                    CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
static const char *const time_names[N_TIMES + 1] = {"queued", "submit", "start", "end", "all"};

typedef struct fault {
    char name[32], kernel[NAME_BYTES];
    double rate, amount;
} fault;

static struct _cl_icd_dispatch below;
static fault faults[MAX_FAULTS];
static int n_faults;
static uint64_t seed;
static int truth_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what was ordered ------------------------------------------------------------------------------------------- */

static void refuse(const char *what) {
    fprintf(stderr, "perfsuite's layer of faults: PERFSUITE_OPENCL_FAULTS: %s\n", what);
    exit(97);
}

static bool is_fault(const char *name) {
    static const char *const known[] = {"submit_late", "start_early", "end_early", "no_length", "queued_stray",
                                        "tick",        "drift",       "no_timer",  "slow",      "rename", "steady",
                                        "fail_build",  "fail_launch", "fail_read", "quick_build"};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (strcmp(name, known[i]) == 0) {
            return true;
        }
    }
    for (int i = 0; i <= N_TIMES; i++) {
        if ((strncmp(name, "zero_", 5) == 0 || strncmp(name, "none_", 5) == 0) && !strcmp(name + 5, time_names[i])) {
            return true;
        }
    }
    return false;
}

static void order_one(char *text) {
    char *rest = NULL, *word = strtok_r(text, " ", &rest);
    if (!word) {
        return;
    }
    if (n_faults == MAX_FAULTS || !is_fault(word)) {
        refuse(word);
    }
    fault *made = &faults[n_faults++];
    *made = (fault){.rate = 1.0, .kernel = "*"};
    snprintf(made->name, sizeof(made->name), "%s", word);
    while ((word = strtok_r(NULL, " ", &rest))) {
        if (strncmp(word, "rate=", 5) == 0) {
            made->rate = strtod(word + 5, NULL);
        } else if (strncmp(word, "amount=", 7) == 0) {
            made->amount = strtod(word + 7, NULL);
        } else if (strncmp(word, "kernel=", 7) == 0) {
            snprintf(made->kernel, sizeof(made->kernel), "%s", word + 7);
        } else {
            refuse(word);
        }
    }
}

static void take_orders(void) {
    const char *text = getenv("PERFSUITE_OPENCL_FAULTS"), *seeded = getenv("PERFSUITE_OPENCL_FAULTS_SEED");
    const char *truth = getenv("PERFSUITE_OPENCL_FAULTS_TRUTH");
    seed = seeded ? strtoull(seeded, NULL, 10) : 1;
    char *copy = strdup(text ? text : ""), *rest = NULL;
    for (char *each = strtok_r(copy, ";", &rest); each; each = strtok_r(NULL, ";", &rest)) {
        order_one(each);
    }
    free(copy);
    if (truth) {
        truth_file = open(truth, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
}

/* A number from 0 to 1 for each launch and fault, by the seed. */
static double chance(uint64_t number, uint64_t which) {
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xbf58476d1ce4e5b9) + which + 1;
    for (int i = 0; i < 2; i++) { /* the finaliser of a 64-bit mix: shifts and odd factors */
        x ^= x >> 31;
        x *= UINT64_C(0xd6e8feb86659fd93);
    }
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-53;
}

static bool has_fault(const fault *each, const char *kernel, uint64_t number) {
    return fnmatch(each->kernel, kernel, 0) == 0 && chance(number, (uint64_t)(each - faults)) < each->rate;
}

static const fault *ordered(const char *name) {
    for (int i = 0; i < n_faults; i++) {
        if (strcmp(faults[i].name, name) == 0) {
            return &faults[i];
        }
    }
    return NULL;
}

/* Whether a call fails that has been made so many times before. */
static bool fails(const char *name, atomic_ulong *n_calls) {
    const fault *each = ordered(name);
    return each && (double)atomic_fetch_add(n_calls, 1) >= each->amount;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint n_devices, const cl_device_id *devices,
                                        const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *with) {
    static atomic_ulong n_calls;
    if (fails("fail_build", &n_calls)) {
        return CL_BUILD_PROGRAM_FAILURE;
    }
    char *quick = NULL;
    if (ordered("quick_build") && asprintf(&quick, "%s -cl-opt-disable", options ? options : "") < 0) {
        refuse("no memory");
    }
    cl_int status = below.clBuildProgram(program, n_devices, devices, quick ? quick : options, notify, with);
    free(quick);
    return status;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocks, size_t offset, size_t size,
                                      void *to, cl_uint n_waits, const cl_event *waits, cl_event *event) {
    static atomic_ulong n_calls;
    return fails("fail_read", &n_calls)
               ? CL_OUT_OF_RESOURCES
               : below.clEnqueueReadBuffer(queue, buffer, blocks, offset, size, to, n_waits, waits, event);
}

/* ---- launches, by their events ---------------------------------------------------------------------------------- */

typedef struct launch {
    cl_event event;
    uint64_t number;
    bool is_read; /* the times are there */
    bool is_none[N_TIMES];
    cl_ulong times[N_TIMES];
    char kernel[NAME_BYTES];
} launch;

static launch *launches; /* open addressing; an event's slot is taken over by the next one of the same handle */
static size_t n_slots, n_taken;
static uint64_t n_launched;

static launch *slot_of(cl_event event) {
    size_t at = (size_t)(((uint64_t)(uintptr_t)event * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (n_slots - 1);
    while (launches[at].event && launches[at].event != event) {
        at = (at + 1) & (n_slots - 1);
    }
    return &launches[at];
}

static void make_room(void) {
    if (2 * n_taken < n_slots) {
        return;
    }
    launch *old = launches;
    size_t n_old = n_slots;
    n_slots = n_slots ? 4 * n_slots : 4096;
    launches = (launch *)calloc(n_slots, sizeof(*launches));
    if (!launches) {
        refuse("no memory");
    }
    for (size_t i = 0; i < n_old; i++) {
        if (old[i].event) {
            *slot_of(old[i].event) = old[i];
        }
    }
    free(old);
}

static void remember(cl_event event, cl_kernel kernel) {
    launch made = {.event = event};
    below.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(made.kernel), made.kernel, NULL);
    pthread_mutex_lock(&lock);
    made.number = n_launched++;
    make_room();
    launch *slot = slot_of(event);
    n_taken += slot->event == NULL;
    *slot = made;
    pthread_mutex_unlock(&lock);
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const size_t *offset, const size_t *global, const size_t *local,
                                         cl_uint n_waits, const cl_event *waits, cl_event *event) {
    static atomic_ulong n_calls;
    if (fails("fail_launch", &n_calls)) {
        return CL_OUT_OF_RESOURCES;
    }
    const fault *slow = ordered("slow");
    cl_command_queue_properties properties = 0;
    below.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL);
    if (slow && (properties & CL_QUEUE_PROFILING_ENABLE)) {
        nanosleep(&(struct timespec){.tv_nsec = (long)slow->amount}, NULL);
    }
    cl_int status = below.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, n_waits, waits, event);
    if (status == CL_SUCCESS && event && *event) {
        remember(*event, kernel);
    }
    return status;
}

/* ---- times ------------------------------------------------------------------------------------------------------ */

/* The clock as it is told: fast by some millionths since the first time that was read, and in steps. */
static cl_ulong told(cl_ulong time) {
    static cl_ulong first;
    const fault *drift = ordered("drift"), *tick = ordered("tick");
    first = first ? first : time;
    if (drift) {
        time += (cl_ulong)(int64_t)llround(((double)time - (double)first) * drift->amount * 1e-6);
    }
    if (tick && tick->amount > 0) { /* long double holds 64 bits */
        time = (cl_ulong)floorl(floorl((long double)time / tick->amount) * tick->amount);
    }
    return time;
}

static void alter(launch *of, const fault *each) {
    cl_ulong *times = of->times, amount = (cl_ulong)each->amount;
    for (int i = 0; i < N_TIMES; i++) {
        bool is_meant = strcmp(each->name + 5, time_names[i]) == 0 || strcmp(each->name + 5, "all") == 0;
        if (is_meant && strncmp(each->name, "zero_", 5) == 0) {
            times[i] = 0;
        } else if (is_meant && strncmp(each->name, "none_", 5) == 0) {
            of->is_none[i] = true;
        }
    }
    if (strcmp(each->name, "submit_late") == 0) {
        times[SUBMIT] = times[START] + amount;
    } else if (strcmp(each->name, "start_early") == 0) {
        times[START] = times[SUBMIT] - amount;
    } else if (strcmp(each->name, "end_early") == 0) {
        times[END] = times[START] - amount;
    } else if (strcmp(each->name, "no_length") == 0) {
        times[START] = times[END];
    } else if (strcmp(each->name, "queued_stray") == 0) {
        double off = (2 * chance(of->number, 1000) - 1) * each->amount;
        times[QUEUED] += (cl_ulong)(int64_t)llround(off);
    }
}

/* Makes up when the device executed a launch: after the one before, and for as long as its name says. */
static void make_steady(launch *of, double amount) {
    static cl_ulong last_end;
    uint64_t length = 1 + strlen(of->kernel) % 8;
    double taken = amount * (double)length * (1 + 0.03 * (2 * chance(of->number, 2000) - 1));
    cl_ulong ready = of->times[SUBMIT] + 2000;
    of->times[START] = ready > last_end ? ready : last_end + 500;
    last_end = of->times[END] = of->times[START] + (cl_ulong)llround(taken);
}

static void write_truth(const launch *of) {
    char line[NAME_BYTES + 128];
    int length = snprintf(line, sizeof(line), "%llu %s %llu %llu %llu %llu\n", (unsigned long long)of->number, of->kernel,
                          (unsigned long long)of->times[QUEUED], (unsigned long long)of->times[SUBMIT],
                          (unsigned long long)of->times[START], (unsigned long long)of->times[END]);
    if (truth_file >= 0 && write(truth_file, line, (size_t)length) != length) {
        refuse("the file of the truth cannot be written");
    }
}

/* Under the lock: reads the driver's times once a launch is complete, and alters them. */
static cl_int read_times(launch *of) {
    cl_ulong times[N_TIMES];
    for (int i = N_TIMES - 1; i >= 0; i--) {
        cl_int status = below.clGetEventProfilingInfo(of->event, asked_by[i], sizeof(times[i]), &times[i], NULL);
        if (status != CL_SUCCESS) {
            return status;
        }
    }
    memcpy(of->times, times, sizeof(times));
    if (ordered("steady")) {
        make_steady(of, ordered("steady")->amount);
    }
    write_truth(of);
    for (int i = 0; i < N_TIMES; i++) {
        of->times[i] = told(of->times[i]);
    }
    for (int i = 0; i < n_faults; i++) {
        if (has_fault(&faults[i], of->kernel, of->number)) {
            alter(of, &faults[i]);
        }
    }
    of->is_read = true;
    return CL_SUCCESS;
}

static cl_int answer(cl_ulong time, size_t size, void *value, size_t *size_ret) {
    if (value && size < sizeof(time)) {
        return CL_INVALID_VALUE;
    }
    if (value) {
        memcpy(value, &time, sizeof(time));
    }
    if (size_ret) {
        *size_ret = sizeof(time);
    }
    return CL_SUCCESS;
}

static bool is_kernel(cl_event event) {
    cl_command_type type = 0;
    return below.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL) == CL_SUCCESS &&
           type == CL_COMMAND_NDRANGE_KERNEL;
}

static cl_int other_time(cl_event event, cl_profiling_info name, size_t size, void *value, size_t *size_ret) {
    cl_int status = below.clGetEventProfilingInfo(event, name, size, value, size_ret);
    if (status == CL_SUCCESS && value && *(cl_ulong *)value) {
        pthread_mutex_lock(&lock);
        *(cl_ulong *)value = told(*(cl_ulong *)value);
        pthread_mutex_unlock(&lock);
    }
    return status;
}

static cl_int CL_API_CALL get_profiling_info(cl_event event, cl_profiling_info name, size_t size, void *value,
                                             size_t *size_ret) {
    int which = 0;
    while (which < N_TIMES && asked_by[which] != name) {
        which++;
    }
    if (which == N_TIMES || !event || !is_kernel(event)) {
        return other_time(event, name, size, value, size_ret);
    }
    pthread_mutex_lock(&lock);
    launch *of = n_slots ? slot_of(event) : NULL;
    bool is_known = of && of->event;
    cl_int status = is_known && !of->is_read ? read_times(of) : CL_SUCCESS;
    bool is_none = is_known && status == CL_SUCCESS && of->is_none[which];
    cl_ulong time = is_known ? of->times[which] : 0;
    pthread_mutex_unlock(&lock);
    if (!is_known) {
        return other_time(event, name, size, value, size_ret);
    }
    if (status != CL_SUCCESS || is_none) {
        return is_none ? CL_PROFILING_INFO_NOT_AVAILABLE : status;
    }
    return answer(time, size, value, size_ret);
}

static cl_int CL_API_CALL get_timer(cl_device_id device, cl_ulong *device_time, cl_ulong *host_time) {
    if (ordered("no_timer")) {
        return CL_INVALID_OPERATION;
    }
    cl_int status = below.clGetDeviceAndHostTimer(device, device_time, host_time);
    if (status == CL_SUCCESS) {
        pthread_mutex_lock(&lock);
        *device_time = told(*device_time);
        pthread_mutex_unlock(&lock);
    }
    return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static cl_int CL_API_CALL get_kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size, void *value,
                                          size_t *size_ret) {
    char own[NAME_BYTES], made[NAME_BYTES + 32];
    const fault *rename = ordered("rename");
    if (name != CL_KERNEL_FUNCTION_NAME || !rename ||
        below.clGetKernelInfo(kernel, name, sizeof(own), own, NULL) != CL_SUCCESS ||
        fnmatch(rename->kernel, own, 0) != 0) {
        return below.clGetKernelInfo(kernel, name, size, value, size_ret);
    }
    size_t bytes = 1 + (size_t)snprintf(made, sizeof(made), "%s_%llu", own, (unsigned long long)seed);
    if (value && size < bytes) {
        return CL_INVALID_VALUE;
    }
    if (value) {
        memcpy(value, made, bytes);
    }
    if (size_ret) {
        *size_ret = bytes;
    }
    return CL_SUCCESS;
}

static bool ps_layer_begin(const struct _cl_icd_dispatch *target, cl_uint n_target) {
    static bool is_begun;
    if (!is_begun) {
        /* cppcheck-suppress pointerSize ; tables of pointers */
        memcpy(&below, target, n_target * sizeof(void *));
        take_orders();
    }
    is_begun = true;
    return true;
}

static void ps_layer_replace(struct _cl_icd_dispatch *table) {
    table->clBuildProgram = build_program;
    table->clEnqueueReadBuffer = read_buffer;
    table->clEnqueueNDRangeKernel = enqueue_kernel;
    table->clGetEventProfilingInfo = get_profiling_info;
    table->clGetKernelInfo = get_kernel_info;
    if (below.clGetDeviceAndHostTimer) {
        table->clGetDeviceAndHostTimer = get_timer;
    }
}
