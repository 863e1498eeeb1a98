/* The tracing layer above a driver that does nothing.  Each test is a process of its own: the layer is begun once, and
 * its log is read when the process has ended. */
#define _GNU_SOURCE
#include "fake_opencl.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CL/cl_layer.h>

#include "check.h"
#include "perfsuite/cl_layer.h"
#include "perfsuite/cl_log.h"
#include "perfsuite/clock.h"

enum { MAX_SEEN = 100000, MAX_QUEUES = 256, N_THREADS = 8, N_EACH = 2000 };

#define LIMIT_NS INT64_C(5000000000) /* for a flush that must come to its end */

static char folder[64];
static const struct _cl_icd_dispatch *cl; /* the layer's table */
static struct _cl_icd_dispatch below;     /* the driver's, in which a test may put entries before the layer begins */

/* The layer's own. */
extern _Atomic uint32_t ps_cl_gate; /* 1 once the process ends */
bool ps_cl_log_open(void);

/* The programs of these tests end without releasing what they made, as programs do. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

/* ---- a process and its log -------------------------------------------------------------------------------------- */

typedef struct seen {
    ps_cl_command *commands;
    int n_commands, n_replayed, n_names, n_queues, n_clocks, n_devices, n_ends;
    int n_timer_clocks;
    uint64_t n_loss;
    ps_cl_end end;
    ps_cl_queue queues[MAX_QUEUES]; /* by number, from 0; threads note theirs in any order */
    char names[64][64];
} seen;

static ps_cl_command log_commands[MAX_SEEN];
static seen logged; /* of the process that ended last */

static void take_record(const char *at) {
    ps_cl_prefix prefix;
    memcpy(&prefix, at, sizeof(prefix));
    ps_cl_text text;
    ps_cl_queue queue;
    ps_cl_loss loss;
    ps_cl_clock clock;
    CHECK(prefix.bytes % 8 == 0);
    switch (prefix.kind) {
    case PS_CL_NAME:
        memcpy(&text, at, sizeof(text));
        CHECK(text.id == (uint32_t)logged.n_names + 1 && text.length < 64);
        memcpy(logged.names[text.id], at + sizeof(text), text.length);
        logged.n_names++;
        break;
    case PS_CL_DEVICE: logged.n_devices++; break;
    case PS_CL_QUEUE:
        memcpy(&queue, at, sizeof(queue));
        CHECK(queue.id >= 1 && queue.id <= MAX_QUEUES && logged.queues[queue.id - 1].id == 0);
        logged.queues[queue.id - 1] = queue;
        logged.n_queues++;
        break;
    case PS_CL_CLOCK:
        memcpy(&clock, at, sizeof(clock));
        CHECK(clock.host_before_ns <= clock.host_after_ns && clock.device_ns > 0);
        logged.n_clocks++;
        logged.n_timer_clocks += clock.source == PS_CL_CLOCK_TIMER;
        break;
    case PS_CL_COMMAND: {
        ps_cl_command *command = &logged.commands[logged.n_commands + logged.n_replayed];
        CHECK(prefix.bytes == sizeof(*command) && logged.n_commands + logged.n_replayed < MAX_SEEN);
        memcpy(command, at, sizeof(*command));
        CHECK(command->queue >= 1 && command->queue <= MAX_QUEUES && (int)command->name <= logged.n_names);
        CHECK(logged.queues[command->queue - 1].id == command->queue); /* noted before it is used */
        *(command->flags & PS_CL_REPLAYED ? &logged.n_replayed : &logged.n_commands) += 1;
        break;
    }
    case PS_CL_LOSS:
        memcpy(&loss, at, sizeof(loss));
        logged.n_loss += loss.n_commands;
        break;
    case PS_CL_END:
        memcpy(&logged.end, at, sizeof(logged.end));
        logged.n_ends++;
        break;
    default: CHECK(!"a record of an unknown kind");
    }
}

static void read_log(pid_t pid) {
    logged = (seen){.commands = log_commands};
    char path[128];
    snprintf(path, sizeof(path), "%s/opencl-%ld.log", folder, (long)pid);
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    off_t bytes = lseek(file, 0, SEEK_END);
    char *content = malloc((size_t)bytes);
    CHECK(pread(file, content, (size_t)bytes, 0) == bytes);
    close(file);
    ps_cl_log_header header;
    memcpy(&header, content, sizeof(header));
    CHECK(memcmp(header.magic, PS_CL_LOG_MAGIC, 8) == 0 && header.pid == (uint32_t)pid);
    off_t at = header.header_bytes;
    while (at < bytes) {
        ps_cl_prefix prefix;
        CHECK(at + (off_t)sizeof(prefix) <= bytes);
        memcpy(&prefix, content + at, sizeof(prefix));
        CHECK(at + prefix.bytes <= bytes);
        take_record(content + at);
        at += prefix.bytes;
    }
    free(content);
    unlink(path);
}

static int by_sequence(const void *a, const void *b) {
    const ps_cl_command *left = a, *right = b;
    return left->sequence < right->sequence ? -1 : left->sequence > right->sequence;
}

static pid_t start(void (*body)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        cl_uint n = 0;
        setenv("PERFSUITE_OPENCL_LOG", folder, 0);
        CHECK(clInitLayer(fake_n_entries, &below, &n, &cl) == CL_SUCCESS);
        CHECK(n == fake_n_entries);
        body();
        exit(0);
    }
    return pid;
}

static void check_end(pid_t pid) {
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Runs `body` in a process under the layer; its log, with the accounts checked. */
static void run(void (*body)(void)) {
    pid_t pid = start(body);
    check_end(pid);
    read_log(pid);
    CHECK(logged.n_ends == 1);
    CHECK(logged.end.n_commands == logged.end.n_recorded + logged.end.n_lost + logged.end.n_unfinished);
    CHECK(logged.end.n_recorded == (uint64_t)logged.n_commands && logged.end.n_lost == logged.n_loss);
    qsort(logged.commands, (size_t)(logged.n_commands + logged.n_replayed), sizeof(*logged.commands), by_sequence);
}

static cl_command_queue new_queue(cl_command_queue_properties properties) {
    return cl->clCreateCommandQueue((cl_context)(uintptr_t)24, (cl_device_id)(uintptr_t)16, properties, NULL);
}

static cl_kernel new_kernel(const char *name) { return cl->clCreateKernel(NULL, name, NULL); }

static cl_mem new_buffer(size_t bytes) {
    return cl->clCreateBuffer((cl_context)(uintptr_t)24, CL_MEM_READ_WRITE, bytes, NULL, NULL);
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel, cl_event *event) {
    const size_t global[2] = {64, 2}, local[2] = {8, 1};
    return cl->clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, event);
}

__attribute__((constructor)) static void prepare(void) {
    below = fake_table;
    snprintf(folder, sizeof(folder), "/tmp/perfsuite-cl-layer-XXXXXX");
    CHECK(mkdtemp(folder));
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static void enqueue_each(void) {
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("some_kernel");
    cl_mem a = new_buffer(100), b = new_buffer(200);
    char bytes[100] = {0};
    const size_t region[3] = {4, 3, 2}, corner[3] = {0, 0, 0};
    cl_event event = NULL;
    cl->clSetKernelArg(kernel, 0, sizeof(a), &a);
    cl->clSetKernelArg(kernel, 1, sizeof(int), bytes);
    cl->clSetKernelArg(kernel, 2, sizeof(b), &b);
    CHECK(launch(queue, kernel, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueTask(queue, kernel, 0, NULL, &event) == CL_SUCCESS);
    CHECK(cl->clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 50, bytes, 1, &event, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, 60, bytes, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueReadBufferRect(queue, a, CL_FALSE, corner, corner, region, 0, 0, 0, 0, bytes, 0, NULL, NULL) ==
          CL_SUCCESS);
    CHECK(cl->clEnqueueCopyBuffer(queue, a, b, 0, 0, 70, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueFillBuffer(queue, a, bytes, 4, 0, 80, 0, NULL, NULL) == CL_SUCCESS);
    cl_int status = -1;
    void *mapped = cl->clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ, 5, 90, 0, NULL, NULL, &status);
    CHECK(mapped == fake_bytes(a) + 5 && status == CL_SUCCESS);
    CHECK(cl->clEnqueueUnmapMemObject(queue, a, mapped, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueMigrateMemObjects(queue, 1, &a, 0, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(cl->clEnqueueMarker(queue, NULL) == CL_INVALID_VALUE);
    CHECK(cl->clEnqueueBarrier(queue) == CL_SUCCESS);
    CHECK(cl->clEnqueueSVMMemcpy(queue, CL_FALSE, bytes, bytes, 10, 0, NULL, NULL) == CL_SUCCESS);
    CHECK(ps_cl_flush(LIMIT_NS));
    CHECK(fake_n_events == 1 && fake_references(event) == 1);
    CHECK(cl->clReleaseEvent(event) == CL_SUCCESS && fake_n_events == 0);
}

TEST(every_command_is_recorded_and_no_event_is_left) {
    static const struct { uint16_t type, flags; uint64_t moved; } expected[] = {
        {PS_CL_KERNEL, 0, 0}, {PS_CL_KERNEL, PS_CL_CALLERS_EVENT, 0}, {PS_CL_READ, PS_CL_BLOCKING | PS_CL_WAITS, 50},
        {PS_CL_WRITE, 0, 60}, {PS_CL_READ, 0, 24}, {PS_CL_COPY, 0, 70}, {PS_CL_FILL, 0, 80},
        {PS_CL_MAP, PS_CL_BLOCKING, 90}, {PS_CL_UNMAP, 0, 0}, {PS_CL_MIGRATE, 0, 0}, {PS_CL_MARKER, 0, 0},
        {PS_CL_MARKER, 0, 0}, {PS_CL_MARKER, PS_CL_NO_PROFILE, 0}, {PS_CL_SVM, 0, 10}};
    run(enqueue_each);
    CHECK(logged.n_commands == sizeof(expected) / sizeof(*expected));
    for (int i = 0; i < logged.n_commands; i++) {
        const ps_cl_command *command = &logged.commands[i];
        CHECK(command->sequence == (uint64_t)i && command->type == expected[i].type);
        CHECK(command->flags == expected[i].flags && command->moved_bytes == expected[i].moved);
        CHECK(command->host_start_ns <= command->host_end_ns && command->status == CL_COMPLETE);
        bool is_timed = !(command->flags & PS_CL_NO_PROFILE);
        CHECK(command->submit_ns == (is_timed ? command->queued_ns + 10 : 0));
        CHECK(command->start_ns == (is_timed ? command->queued_ns + 20 : 0));
        CHECK(command->end_ns == (is_timed ? command->queued_ns + 30 : 0));
    }
    const ps_cl_command *kernel = &logged.commands[0];
    CHECK(strcmp(logged.names[kernel->name], "some_kernel") == 0 && logged.commands[2].name == 0);
    CHECK(kernel->work_dim == 2 && kernel->global[0] == 64 && kernel->global[1] == 2 && kernel->global[2] == 1);
    CHECK(kernel->local[0] == 8 && kernel->n_buffers == 2);
    CHECK(kernel->buffer_bytes[0] == 100 && kernel->buffer_bytes[1] == 200 && kernel->buffer_bytes[2] == 0);
}

static void set_arguments(void) {
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("k");
    cl_mem a = new_buffer(100), b = new_buffer(200);
    for (cl_uint i = 0; i < 8; i++) {
        cl->clSetKernelArg(kernel, i, sizeof(a), &a);
    }
    launch(queue, kernel, NULL);
    cl->clSetKernelArg(kernel, 0, sizeof(b), &b); /* another buffer */
    cl->clSetKernelArg(kernel, 1, sizeof(a), NULL); /* none */
    cl->clSetKernelArg(kernel, 2, 4, &a); /* a number */
    CHECK(cl->clSetKernelArg(kernel, 8, sizeof(b), &b) == CL_INVALID_ARG_INDEX);
    launch(queue, kernel, NULL);
    cl_kernel clone = cl->clCloneKernel(kernel, NULL);
    cl->clReleaseKernel(kernel);
    launch(queue, clone, NULL);
    cl->clReleaseMemObject(b);
    cl->clSetKernelArg(clone, 0, sizeof(b), &b); /* the address of a buffer that is gone */
    launch(queue, clone, NULL);
}

TEST(sizes_of_buffers_follow_the_arguments) {
    run(set_arguments);
    CHECK(logged.n_commands == 4 && logged.n_names == 1);
    CHECK(logged.commands[0].n_buffers == 8 && logged.commands[0].buffer_bytes[7] == 100);
    for (int i = 1; i < 3; i++) {
        CHECK(logged.commands[i].n_buffers == 6 && logged.commands[i].buffer_bytes[0] == 200);
        CHECK(logged.commands[i].buffer_bytes[1] == 100 && logged.commands[i].buffer_bytes[6] == 0);
    }
    CHECK(logged.commands[3].n_buffers == 5 && logged.commands[3].buffer_bytes[0] == 100);
}

static void be_refused(void) {
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("k");
    cl_int status = 0;
    fake_refusal = CL_OUT_OF_RESOURCES;
    CHECK(launch(queue, kernel, NULL) == CL_OUT_OF_RESOURCES);
    CHECK(!cl->clEnqueueMapBuffer(queue, new_buffer(9), CL_TRUE, 0, 0, 9, 0, NULL, NULL, &status));
    CHECK(status == CL_OUT_OF_RESOURCES);
    CHECK(cl->clEnqueueBarrier(queue) == CL_OUT_OF_RESOURCES);
    fake_refusal = CL_SUCCESS;
    fake_status = -5;
    CHECK(launch(queue, kernel, NULL) == CL_SUCCESS);
}

TEST(refusals_are_passed_on_and_failures_recorded) {
    run(be_refused);
    CHECK(logged.n_commands == 1 && logged.commands[0].sequence == 0);
    CHECK(logged.commands[0].status == -5 && logged.commands[0].flags == PS_CL_NO_PROFILE);
}

/* ---- what the program sees -------------------------------------------------------------------------------------- */

static cl_int end_of(cl_event event) {
    cl_ulong end = 0;
    return cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL);
}

static void look(void) {
    const cl_queue_properties asked[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    const cl_queue_properties on_device[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0};
    cl_command_queue hidden = cl->clCreateCommandQueueWithProperties((cl_context)(uintptr_t)24, NULL, asked, NULL);
    cl_command_queue open = new_queue(CL_QUEUE_PROFILING_ENABLE);
    cl_command_queue bare = cl->clCreateCommandQueueWithProperties((cl_context)(uintptr_t)32, NULL, NULL, NULL);
    cl_command_queue device = cl->clCreateCommandQueueWithProperties((cl_context)(uintptr_t)24, NULL, on_device, NULL);
    cl_command_queue_properties bits = 0;
    cl_queue_properties list[3] = {1, 1, 1};
    size_t bytes = 0;
    cl->clGetCommandQueueInfo(hidden, CL_QUEUE_PROPERTIES, sizeof(bits), &bits, NULL);
    CHECK(bits == CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    CHECK(cl->clGetCommandQueueInfo(hidden, CL_QUEUE_PROPERTIES_ARRAY, sizeof(list), list, &bytes) == CL_SUCCESS);
    CHECK(bytes == sizeof(list) && memcmp(list, asked, sizeof(list)) == 0);
    CHECK(cl->clGetCommandQueueInfo(hidden, CL_QUEUE_PROPERTIES_ARRAY, 8, list, NULL) == CL_INVALID_VALUE);
    CHECK(cl->clGetCommandQueueInfo(bare, CL_QUEUE_PROPERTIES_ARRAY, sizeof(list), list, &bytes) == CL_SUCCESS);
    CHECK(bytes == 0);
    cl->clGetCommandQueueInfo(open, CL_QUEUE_PROPERTIES, sizeof(bits), &bits, NULL);
    CHECK(bits == CL_QUEUE_PROFILING_ENABLE);
    cl->clGetCommandQueueInfo(device, CL_QUEUE_PROPERTIES, sizeof(bits), &bits, NULL);
    CHECK(bits == CL_QUEUE_ON_DEVICE);

    cl_kernel kernel = new_kernel("k");
    cl_event first = NULL, second = NULL;
    cl_uint n = 0;
    fake_status = CL_QUEUED;
    launch(hidden, kernel, &first);
    launch(open, kernel, &second);
    CHECK(fake_references(first) == 3); /* ours, the driver's, the layer's */
    cl->clGetEventInfo(first, CL_EVENT_REFERENCE_COUNT, sizeof(n), &n, NULL);
    CHECK(n == 2);
    fake_finish_all();
    CHECK(ps_cl_flush(LIMIT_NS));
    cl->clGetEventInfo(first, CL_EVENT_REFERENCE_COUNT, sizeof(n), &n, NULL);
    CHECK(n == 1 && fake_references(first) == 1);
    CHECK(end_of(first) == CL_PROFILING_INFO_NOT_AVAILABLE && end_of(second) == CL_SUCCESS);
    cl->clReleaseCommandQueue(hidden); /* its event lives on */
    cl->clReleaseCommandQueue(open);
    CHECK(end_of(first) == CL_PROFILING_INFO_NOT_AVAILABLE && end_of(second) == CL_SUCCESS);
    cl->clReleaseEvent(first);
    cl->clReleaseEvent(second);
    cl->clReleaseCommandQueue(bare);
    cl->clReleaseCommandQueue(device);
}

TEST(the_program_sees_what_it_asked_for) {
    run(look);
    CHECK(logged.n_commands == 2 && logged.n_queues == 3 && logged.n_devices == 1);
    CHECK(logged.queues[0].flags == PS_CL_QUEUE_OUT_OF_ORDER && logged.queues[1].flags == PS_CL_QUEUE_CALLER_PROFILES);
    CHECK(logged.queues[0].context == logged.queues[1].context && logged.queues[2].context != logged.queues[0].context);
    CHECK(logged.commands[0].end_ns > 0);
}

static void load_twice(void) {
    const struct _cl_icd_dispatch *second = NULL;
    cl_uint n = 0;
    CHECK(clInitLayer(fake_n_entries - 4, &fake_table, &n, &second) == CL_SUCCESS);
    CHECK(n == fake_n_entries - 4 && second != cl);
    CHECK(clInitLayer(fake_n_entries, NULL, &n, &second) == CL_INVALID_VALUE);
    cl_kernel kernel = second->clCreateKernel(NULL, "k", NULL);
    cl_command_queue queue = new_queue(0);
    const size_t one = 1;
    launch(queue, kernel, NULL);
    CHECK(second->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL) == CL_SUCCESS);
}

TEST(two_loaders_of_one_process_share_the_layer) {
    run(load_twice);
    CHECK(logged.n_commands == 2 && logged.n_names == 1);
}

static void look_at_a_table_without_a_log(void) {
    CHECK(memcmp(cl, &fake_table, sizeof(fake_table)) == 0);
    CHECK(!ps_cl_duplicate(&(ps_cl_duplication){"k", 0, 1, 1}) && ps_cl_flush(1) && ps_cl_n_lost() == 0);
}

TEST(without_a_folder_every_call_is_left_alone) {
    setenv("PERFSUITE_OPENCL_LOG", "/nowhere/at/all", 1);
    check_end(start(look_at_a_table_without_a_log));
    unsetenv("PERFSUITE_OPENCL_LOG");
}

/* ---- the ring and the drain ------------------------------------------------------------------------------------- */

static void overrun(void) {
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("k");
    for (int i = 0; i < 5000; i++) {
        CHECK(launch(queue, kernel, NULL) == CL_SUCCESS);
    }
    CHECK(ps_cl_flush(LIMIT_NS) && ps_cl_n_lost() > 0 && fake_n_events == 0);
}

TEST(a_full_ring_loses_and_counts) {
    setenv("PERFSUITE_OPENCL_LAYER_RING", "16", 1);
    run(overrun);
    CHECK(logged.end.n_commands == 5000 && logged.end.n_lost > 0 && logged.end.n_recorded >= 16);
    unsetenv("PERFSUITE_OPENCL_LAYER_RING");
}

static cl_command_queue shared_queue;
static cl_kernel shared_kernel;

static void enqueue_within(void) {
    for (int i = 0; i < 40; i++) {
        CHECK(launch(shared_queue, shared_kernel, NULL) == CL_SUCCESS);
    }
}

static void enqueue_in_a_callback(void) {
    shared_queue = new_queue(0);
    shared_kernel = new_kernel("k");
    fake_status = CL_QUEUED;
    for (int i = 0; i < 20; i++) { /* sooner or later the ring is full when the outer call returns */
        fake_during = enqueue_within;
        CHECK(launch(shared_queue, shared_kernel, NULL) == CL_SUCCESS);
    }
    fake_finish_all();
    CHECK(ps_cl_flush(LIMIT_NS) && fake_n_events == 0);
}

TEST(a_callback_of_the_driver_may_enqueue) {
    setenv("PERFSUITE_OPENCL_LAYER_RING", "16", 1);
    run(enqueue_in_a_callback);
    CHECK(logged.end.n_commands == 20 * 41 && logged.end.n_lost >= 20);
    unsetenv("PERFSUITE_OPENCL_LAYER_RING");
}

static void be_late(void) {
    cl_command_queue in_order = new_queue(0), other = new_queue(0);
    cl_command_queue any_order = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_kernel kernel = new_kernel("k");
    cl_event late = NULL, latest = NULL;
    fake_status = CL_QUEUED;
    launch(in_order, kernel, NULL);
    launch(any_order, kernel, &latest);
    launch(any_order, kernel, &late);
    fake_status = CL_COMPLETE;
    launch(any_order, kernel, NULL);
    launch(other, kernel, NULL);
    CHECK(!ps_cl_flush(300000000));
    CHECK(fake_n_events == 3); /* those are waited for, and nothing else */
    fake_finish(late);
    CHECK(!ps_cl_flush(300000000));
    CHECK(fake_references(late) == 1 && fake_references(latest) == 3);
    fake_finish_all();
    CHECK(ps_cl_flush(LIMIT_NS));
    CHECK(fake_n_events == 2);
}

TEST(what_is_late_holds_up_nothing_else) {
    run(be_late);
    CHECK(logged.n_commands == 5 && logged.end.n_unfinished == 0);
}

static void never_finish(void) {
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("k");
    launch(queue, kernel, NULL);
    fake_status = CL_SUBMITTED;
    for (int i = 0; i < 100; i++) {
        launch(queue, kernel, NULL);
    }
}

TEST(what_never_finishes_is_counted_and_the_exit_does_not_wait_for_ever) {
    int64_t begin_ns = ps_now_ns();
    run(never_finish);
    CHECK(logged.n_commands == 1 && logged.end.n_unfinished == 100);
    CHECK(ps_now_ns() - begin_ns < INT64_C(30000000000));
}

static void release_in_flight(void) {
    cl_kernel kernel = new_kernel("k");
    for (int i = 0; i < 50; i++) {
        cl_command_queue queue = new_queue(0);
        fake_status = CL_QUEUED;
        launch(queue, kernel, NULL);
        cl->clReleaseCommandQueue(queue);
        fake_finish_all();
        fake_status = CL_COMPLETE;
        cl_command_queue same = new_queue(CL_QUEUE_PROFILING_ENABLE); /* often at the same address */
        launch(same, kernel, NULL);
        cl->clRetainCommandQueue(same);
        cl->clReleaseCommandQueue(same);
        launch(same, kernel, NULL);
        cl->clReleaseCommandQueue(same);
    }
    CHECK(ps_cl_flush(LIMIT_NS));
    CHECK(fake_n_events == 0);
}

TEST(queues_may_be_released_in_flight) {
    run(release_in_flight);
    CHECK(logged.n_queues == 100 && logged.n_commands == 150);
    for (int i = 0; i < 150; i++) {
        CHECK(logged.commands[i].queue == (uint32_t)(i / 3 * 2 + (i % 3 > 0) + 1));
    }
}

static atomic_bool drain_is_held, drain_may_go;

/* The drain asks for a time and waits here until the other thread has released its queue. */
static cl_int CL_API_CALL hold_the_drain(cl_event event, cl_profiling_info name, size_t size, void *value,
                                         size_t *size_ret) {
    atomic_store(&drain_is_held, true);
    while (!atomic_load(&drain_may_go)) {
        usleep(100);
    }
    return fake_table.clGetEventProfilingInfo(event, name, size, value, size_ret);
}

static cl_int CL_API_CALL see_flush(cl_command_queue queue) {
    CHECK(queue != shared_queue);
    return CL_SUCCESS;
}

static void *release_at_exit(void *context) {
    while (!(atomic_load(&ps_cl_gate) & 1)) {
        usleep(100);
    }
    cl->clRetainCommandQueue(shared_queue);
    cl->clReleaseCommandQueue(shared_queue);
    cl->clReleaseCommandQueue(shared_queue);
    fake_finish_all();
    atomic_store(&drain_may_go, true);
    return NULL;
}

static void release_while_the_process_ends(void) {
    shared_queue = new_queue(0);
    cl_kernel kernel = new_kernel("k");
    fake_status = CL_QUEUED;
    launch(shared_queue, kernel, NULL);
    launch(new_queue(0), kernel, NULL); /* this one lives on */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, release_at_exit, NULL) == 0 && pthread_detach(thread) == 0);
    while (!atomic_load(&drain_is_held)) {
        usleep(100);
    }
}

TEST(a_queue_released_while_the_process_ends_is_not_touched) {
    below.clGetEventProfilingInfo = hold_the_drain;
    below.clFlush = see_flush;
    run(release_while_the_process_ends);
    below = fake_table;
    CHECK(logged.n_commands == 2 && logged.end.n_unfinished == 0);
}

static void *enqueue_many(void *context) {
    cl_command_queue own = new_queue(0);
    cl_kernel kernel = new_kernel(context ? "even" : "odd");
    for (int i = 0; i < N_EACH; i++) {
        cl_mem buffer = new_buffer(8);
        cl_event event = NULL;
        cl_uint n = 0;
        cl->clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
        fake_status = i % 3 ? CL_COMPLETE : CL_QUEUED;
        CHECK(launch(i % 2 ? own : shared_queue, kernel, i % 5 ? NULL : &event) == CL_SUCCESS);
        if (event) {
            cl->clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(n), &n, NULL);
            CHECK(n == 1 || n == 2); /* the driver may have one */
            cl->clReleaseEvent(event);
        }
        cl->clReleaseMemObject(buffer);
        if (i % 100 == 0) {
            fake_finish_all();
            cl->clFinish(own);
        }
    }
    cl->clReleaseCommandQueue(own);
    return NULL;
}

static void use_threads(void) {
    shared_queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (int round = 0; round < 2; round++) { /* the second round's threads use the rings of the first */
        pthread_t threads[N_THREADS];
        for (int i = 0; i < N_THREADS; i++) {
            CHECK(pthread_create(&threads[i], NULL, enqueue_many, i % 2 ? &shared_queue : NULL) == 0);
        }
        for (int i = 0; i < N_THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
    }
    fake_finish_all();
    CHECK(ps_cl_flush(INT64_C(10000000000)));
    CHECK(fake_n_events == 0 && fake_n_memories == 0);
}

TEST(threads_lose_nothing_uncounted) {
    run(use_threads);
    CHECK(logged.end.n_commands == 2 * N_THREADS * N_EACH && logged.n_names == 2);
    uint64_t last = 0;
    for (int i = 0; i < logged.n_commands; i++) {
        const ps_cl_command *command = &logged.commands[i];
        CHECK(i == 0 || command->sequence > last);
        CHECK(command->n_buffers == 1 && command->buffer_bytes[0] == 8 && command->end_ns == command->queued_ns + 30);
        last = command->sequence;
    }
}

/* ---- the file and the process ----------------------------------------------------------------------------------- */

static void fill_the_disk(void) {
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, 100000}) == 0);
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("k");
    for (int i = 0; i < 30; i++) {
        for (int k = 0; k < 100; k++) {
            launch(queue, kernel, NULL);
        }
        CHECK(ps_cl_flush(LIMIT_NS));
    }
    CHECK(ps_cl_n_lost() >= 2500 && fake_n_events == 0);
}

/* What stands in for the log of a program that this process was before an exec. */
static void begin_after_another(void) {
    char path[128];
    snprintf(path, sizeof(path), "%s/opencl-%ld.log", folder, (long)getpid());
    CHECK(access(path, F_OK) == 0);
    CHECK(ps_cl_log_open());
    launch(new_queue(0), new_kernel("second"), NULL);
}

TEST(a_log_that_is_there_is_left_alone) {
    pid_t pid = start(begin_after_another);
    check_end(pid);
    char first[128], second[128];
    snprintf(first, sizeof(first), "%s/opencl-%ld.log", folder, (long)pid);
    snprintf(second, sizeof(second), "%s/opencl-%ld-2.log", folder, (long)pid);
    read_log(pid);
    CHECK(logged.n_commands == 0 && logged.n_ends == 0);
    CHECK(rename(second, first) == 0);
    read_log(pid);
    CHECK(logged.n_commands == 1 && logged.n_ends == 1);
}

/* Whole records stand in it, and no more than fits. */
TEST(a_full_disk_loses_and_leaves_a_whole_log) {
    pid_t pid = start(fill_the_disk);
    check_end(pid);
    read_log(pid);
    CHECK(logged.n_commands >= 300 && logged.n_commands <= 500 && logged.n_names == 1);
}

/* A child of a process with threads must not look for leaks: the allocator may be locked by a thread that it lacks. */
static _Noreturn void leave(void) {
#if defined(__SANITIZE_ADDRESS__)
    _exit(0);
#else
    exit(0);
#endif
}

static void fork_children(void) {
    pid_t early = fork();
    if (early == 0) { /* of a parent without queues: a log of its own */
        launch(new_queue(0), new_kernel("child"), NULL);
        exit(0);
    }
    check_end(early);
    read_log(early);
    CHECK(logged.n_commands == 1 && logged.n_ends == 1 && strcmp(logged.names[1], "child") == 0);
    cl_command_queue queue = new_queue(0);
    cl_kernel kernel = new_kernel("parent");
    launch(queue, kernel, NULL);
    pid_t late = fork();
    if (late == 0) { /* of a parent with queues: nothing */
        launch(queue, kernel, NULL);
        CHECK(ps_cl_flush(INT64_C(1000000000)));
        leave();
    }
    check_end(late);
    char path[128];
    snprintf(path, sizeof(path), "%s/opencl-%ld.log", folder, (long)late);
    CHECK(access(path, F_OK) != 0);
}

TEST(a_child_of_fork_leaves_the_log_alone) {
    run(fork_children);
    CHECK(logged.n_commands == 1 && strcmp(logged.names[1], "parent") == 0);
}

static void use_markers(void) {
    fake_has_timer = false;
    cl_command_queue queue = new_queue(0);
    launch(queue, new_kernel("k"), NULL);
    cl->clReleaseCommandQueue(queue);
    new_queue(0);
}

static void use_timer(void) {
    new_queue(0);
    usleep(350000);
}

TEST(the_device_clock_is_read_by_timer_or_marker) {
    run(use_markers);
    CHECK(logged.n_commands == 1 && logged.n_clocks == 4 && logged.n_timer_clocks == 0);
    run(use_timer);
    CHECK(logged.n_clocks >= 3 && logged.n_timer_clocks == logged.n_clocks);
}

/* ---- duplication ------------------------------------------------------------------------------------------------ */

static int32_t n_rounds(char *error) {
    ps_cl_round rounds[8];
    return ps_cl_duplication_rounds(rounds, 8, error, 256);
}

static void duplicate(void) {
    cl_command_queue queue = new_queue(0), any_order = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_kernel kernel = new_kernel("add_one"), other = new_kernel("other");
    cl_mem buffer = new_buffer(16), untouched = new_buffer(32);
    char error[256] = "";
    ps_cl_round rounds[8];
    cl->clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
    cl->clSetKernelArg(kernel, 1, sizeof(untouched), &untouched);
    CHECK(!ps_cl_duplicate(&(ps_cl_duplication){"add_one", 0, 0, 1}));
    CHECK(!ps_cl_duplicate(&(ps_cl_duplication){"", 0, 1, 1}));
    CHECK(ps_cl_duplicate(&(ps_cl_duplication){"add_one", 1, 4, 3}));
    CHECK(!ps_cl_duplicate(&(ps_cl_duplication){"add_one", 1, 4, 3}));
    launch(queue, kernel, NULL);
    launch(queue, other, NULL);
    CHECK(n_rounds(error) == 0 && fake_n_launches == 2);
    launch(queue, kernel, NULL);
    CHECK(fake_n_launches == 3 + 3 * (1 + 1 + 4));
    CHECK(fake_bytes(buffer)[0] == 2 && fake_bytes(buffer)[15] == 2);
    CHECK(fake_peak == 1 + 1 + 4); /* each round begins with what the launch began with */
    CHECK(fake_n_memories == 2);
    CHECK(ps_cl_duplication_rounds(rounds, 8, error, sizeof(error)) == 3);
    for (int i = 0; i < 3; i++) {
        CHECK(rounds[i].base_execution_ns == 10 && rounds[i].duplicates_execution_ns == 50);
        CHECK(rounds[i].duplicates_occupied_ns == 400 && rounds[i].base_ns >= 0);
    }
    CHECK(ps_cl_duplication_rounds(rounds, 8, error, sizeof(error)) == 0);

    CHECK(ps_cl_duplicate(&(ps_cl_duplication){"add_one", 0, 4, 3}));
    launch(any_order, kernel, NULL);
    CHECK(n_rounds(error) == -1 && strstr(error, "out-of-order"));
    CHECK(fake_bytes(buffer)[0] == 3);

    cl_int status = 0;
    cl_event never = cl->clCreateUserEvent(NULL, &status);
    const size_t one = 1;
    CHECK(ps_cl_duplicate(&(ps_cl_duplication){"add_one", 0, 4, 3}));
    cl->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 1, &never, NULL);
    CHECK(n_rounds(error) == -1 && strstr(error, "rest"));
    CHECK(fake_bytes(buffer)[0] == 4);

    cl->clReleaseMemObject(untouched);
    CHECK(ps_cl_duplicate(&(ps_cl_duplication){"add_one", 0, 4, 3}));
    launch(queue, kernel, NULL);
    CHECK(n_rounds(error) == -1 && strstr(error, "released"));
    CHECK(fake_bytes(buffer)[0] == 5);

    CHECK(!ps_cl_duplicate(NULL));
    CHECK(ps_cl_duplicate(&(ps_cl_duplication){"never_launched", 0, 1, 1}));
    CHECK(ps_cl_duplicate(NULL) && n_rounds(error) == 0);
    CHECK(ps_cl_duplicate(&(ps_cl_duplication){"other", 0, 1, 1}));
    fake_refusal = CL_OUT_OF_RESOURCES;
    CHECK(launch(queue, other, NULL) == CL_OUT_OF_RESOURCES);
    CHECK(n_rounds(error) == -1);
    fake_refusal = CL_SUCCESS;
    CHECK(ps_cl_flush(LIMIT_NS));
}

TEST(duplicates_are_flagged_and_leave_no_trace_in_the_buffers) {
    run(duplicate);
    CHECK(logged.n_commands == 6 && logged.n_replayed == 3 * (1 + 1 + 4));
    for (int i = 0; i < logged.n_commands + logged.n_replayed; i++) {
        const ps_cl_command *command = &logged.commands[i];
        CHECK(!(command->flags & PS_CL_REPLAYED) || (command->sequence == 2 && command->type == PS_CL_KERNEL));
        CHECK(command->end_ns == command->start_ns + 10);
    }
}

TEST(no_other_file_is_left) { CHECK(rmdir(folder) == 0); }
