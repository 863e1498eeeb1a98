#include "fake_opencl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_queue {
    _Atomic uint32_t n_references;
    cl_context context;
    cl_command_queue_properties properties;
} fake_queue;

typedef struct fake_event {
    _Atomic int32_t n_references;
    _Atomic cl_int status;
    int64_t queued_ns;
    fake_queue *queue;
    bool is_profiled;
    struct fake_event *next; /* among those that are not complete */
} fake_event;

typedef struct fake_memory {
    _Atomic uint32_t n_references;
    size_t bytes;
    cl_mem_object_type type;
    uint8_t *content;
} fake_memory;

typedef struct fake_kernel {
    _Atomic uint32_t n_references;
    char name[64];
    void *arguments[8];
} fake_kernel;

_Atomic cl_int fake_status = CL_COMPLETE, fake_refusal = CL_SUCCESS;
_Atomic bool fake_has_timer = true;
_Atomic int64_t fake_n_events, fake_n_launches;
_Atomic uint32_t fake_n_memories;
_Atomic int fake_peak;
void (*fake_during)(void);
static _Atomic int64_t clock_ns = 1000000;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_event *incomplete;

/* ---- answers ---------------------------------------------------------------------------------------------------- */

cl_int fake_answer(const void *from, size_t needed, size_t size, void *value, size_t *size_ret) {
    if (value && size < needed) {
        return CL_INVALID_VALUE;
    }
    if (value) {
        memcpy(value, from, needed);
    }
    if (size_ret) {
        *size_ret = needed;
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, size_t size, void *value,
                                      size_t *size_ret) {
    if (name == CL_DEVICE_PLATFORM) {
        cl_platform_id platform = (cl_platform_id)(uintptr_t)8;
        return fake_answer(&platform, sizeof(platform), size, value, size_ret);
    }
    return fake_answer("fake", 5, size, value, size_ret);
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info name, size_t size, void *value,
                                        size_t *size_ret) {
    return fake_answer("fakes", 6, size, value, size_ret);
}

static cl_int CL_API_CALL timer(cl_device_id device, cl_ulong *device_ns, cl_ulong *host_ns) {
    *device_ns = *host_ns = (cl_ulong)atomic_fetch_add(&clock_ns, 1);
    return fake_has_timer ? CL_SUCCESS : CL_INVALID_OPERATION;
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties, cl_int *status) {
    fake_queue *queue = (fake_queue *)calloc(1, sizeof(*queue));
    queue->n_references = 1;
    queue->context = context;
    queue->properties = properties;
    if (status) {
        *status = CL_SUCCESS;
    }
    return (cl_command_queue)queue;
}

static cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
                                                      const cl_queue_properties *list, cl_int *status) {
    cl_command_queue_properties properties = 0;
    for (; list && *list; list += 2) {
        properties = *list == CL_QUEUE_PROPERTIES ? list[1] : properties;
    }
    return create_queue(context, device, properties, status);
}

static cl_int CL_API_CALL retain_queue(cl_command_queue queue) {
    ((fake_queue *)queue)->n_references++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_queue(cl_command_queue handle) {
    fake_queue *queue = (fake_queue *)handle;
    if (--queue->n_references == 0) {
        free(queue);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL queue_info(cl_command_queue handle, cl_command_queue_info name, size_t size, void *value,
                                     size_t *size_ret) {
    const fake_queue *queue = (const fake_queue *)handle;
    const cl_queue_properties list[3] = {CL_QUEUE_PROPERTIES, queue->properties, 0};
    cl_device_id device = (cl_device_id)(uintptr_t)16;
    cl_uint n_references = queue->n_references;
    switch (name) {
    case CL_QUEUE_CONTEXT: return fake_answer(&queue->context, sizeof(cl_context), size, value, size_ret);
    case CL_QUEUE_DEVICE: return fake_answer(&device, sizeof(device), size, value, size_ret);
    case CL_QUEUE_PROPERTIES: return fake_answer(&queue->properties, sizeof(queue->properties), size, value, size_ret);
    case CL_QUEUE_PROPERTIES_ARRAY: return fake_answer(list, sizeof(list), size, value, size_ret);
    case CL_QUEUE_REFERENCE_COUNT: return fake_answer(&n_references, sizeof(n_references), size, value, size_ret);
    default: return CL_INVALID_VALUE;
    }
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static cl_event new_event(fake_queue *queue, cl_int status) {
    fake_event *event = (fake_event *)calloc(1, sizeof(*event));
    event->n_references = 1;
    event->status = status;
    event->queued_ns = atomic_fetch_add(&clock_ns, 100);
    event->queue = queue;
    event->is_profiled = queue && queue->properties & CL_QUEUE_PROFILING_ENABLE;
    fake_n_events++;
    if (queue) {
        queue->n_references++;
    }
    if (status > CL_COMPLETE) {
        pthread_mutex_lock(&lock);
        event->n_references++; /* the driver's own, until it is complete */
        event->next = incomplete;
        incomplete = event;
        pthread_mutex_unlock(&lock);
    }
    return (cl_event)event;
}

static cl_int CL_API_CALL retain_event(cl_event event) {
    ((fake_event *)event)->n_references++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event handle) {
    fake_event *event = (fake_event *)handle;
    if (--event->n_references == 0) {
        if (event->queue) {
            release_queue((cl_command_queue)event->queue);
        }
        free(event);
        fake_n_events--;
    }
    return CL_SUCCESS;
}

void fake_finish(cl_event only) {
    pthread_mutex_lock(&lock);
    for (fake_event **link = &incomplete; *link;) {
        fake_event *event = *link;
        if (only && (cl_event)event != only) {
            link = &event->next;
            continue;
        }
        *link = event->next;
        event->status = CL_COMPLETE;
        release_event((cl_event)event);
    }
    pthread_mutex_unlock(&lock);
}

void fake_finish_all(void) {
    fake_finish(NULL);
}

cl_int fake_references(cl_event event) { return ((fake_event *)event)->n_references; }

static cl_event CL_API_CALL user_event(cl_context context, cl_int *status) {
    *status = CL_SUCCESS;
    return new_event(NULL, CL_SUBMITTED);
}

static cl_int CL_API_CALL event_info(cl_event handle, cl_event_info name, size_t size, void *value, size_t *size_ret) {
    fake_event *event = (fake_event *)handle;
    cl_int status = event->status;
    cl_uint n_references = (cl_uint)event->n_references;
    switch (name) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS: return fake_answer(&status, sizeof(status), size, value, size_ret);
    case CL_EVENT_REFERENCE_COUNT: return fake_answer(&n_references, sizeof(n_references), size, value, size_ret);
    case CL_EVENT_COMMAND_QUEUE: return fake_answer(&event->queue, sizeof(event->queue), size, value, size_ret);
    default: return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL profiling_info(cl_event handle, cl_profiling_info name, size_t size, void *value,
                                         size_t *size_ret) {
    fake_event *event = (fake_event *)handle;
    if (!event->is_profiled || event->status != CL_COMPLETE) {
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    }
    cl_ulong time_ns = (cl_ulong)event->queued_ns + 10 * (name - CL_PROFILING_COMMAND_QUEUED);
    return fake_answer(&time_ns, sizeof(time_ns), size, value, size_ret);
}

static cl_int CL_API_CALL wait_for_events(cl_uint n, const cl_event *events) { return CL_SUCCESS; }

/* ---- memory and kernels ----------------------------------------------------------------------------------------- */

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                        cl_int *status) {
    fake_memory *memory = (fake_memory *)calloc(1, sizeof(*memory));
    memory->n_references = 1;
    memory->bytes = bytes;
    memory->type = CL_MEM_OBJECT_BUFFER;
    memory->content = (uint8_t *)calloc(1, bytes);
    if (host) {
        memcpy(memory->content, host, bytes);
    }
    if (status) {
        *status = CL_SUCCESS;
    }
    fake_n_memories++;
    return (cl_mem)memory;
}

static cl_int CL_API_CALL retain_memory(cl_mem memory) {
    ((fake_memory *)memory)->n_references++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_memory(cl_mem handle) {
    fake_memory *memory = (fake_memory *)handle;
    if (--memory->n_references == 0) {
        free(memory->content);
        free(memory);
        fake_n_memories--;
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL memory_info(cl_mem handle, cl_mem_info name, size_t size, void *value, size_t *size_ret) {
    const fake_memory *memory = (const fake_memory *)handle;
    return name == CL_MEM_SIZE ? fake_answer(&memory->bytes, sizeof(memory->bytes), size, value, size_ret)
                               : fake_answer(&memory->type, sizeof(memory->type), size, value, size_ret);
}

uint8_t *fake_bytes(cl_mem memory) { return ((fake_memory *)memory)->content; }

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *status) {
    fake_kernel *kernel = (fake_kernel *)calloc(1, sizeof(*kernel));
    kernel->n_references = 1;
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    if (status) {
        *status = CL_SUCCESS;
    }
    return (cl_kernel)kernel;
}

static cl_kernel CL_API_CALL clone_kernel(cl_kernel source, cl_int *status) {
    fake_kernel *kernel = (fake_kernel *)create_kernel(NULL, ((fake_kernel *)source)->name, status);
    memcpy(kernel->arguments, ((fake_kernel *)source)->arguments, sizeof(kernel->arguments));
    return (cl_kernel)kernel;
}

static cl_int CL_API_CALL retain_kernel(cl_kernel kernel) {
    ((fake_kernel *)kernel)->n_references++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_kernel(cl_kernel handle) {
    fake_kernel *kernel = (fake_kernel *)handle;
    if (--kernel->n_references == 0) {
        free(kernel);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel handle, cl_kernel_info name, size_t size, void *value,
                                      size_t *size_ret) {
    const fake_kernel *kernel = (const fake_kernel *)handle;
    cl_uint n_arguments = 8;
    return name == CL_KERNEL_NUM_ARGS ? fake_answer(&n_arguments, sizeof(n_arguments), size, value, size_ret)
                                      : fake_answer(kernel->name, strlen(kernel->name) + 1, size, value, size_ret);
}

static cl_int CL_API_CALL set_argument(cl_kernel handle, cl_uint index, size_t size, const void *value) {
    if (index >= 8) {
        return CL_INVALID_ARG_INDEX;
    }
    void *argument = NULL;
    if (size == sizeof(argument) && value) {
        memcpy(&argument, value, sizeof(argument));
    }
    ((fake_kernel *)handle)->arguments[index] = argument;
    return CL_SUCCESS;
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static cl_int command(cl_command_queue queue, cl_event *event) {
    if (fake_refusal != CL_SUCCESS) {
        return fake_refusal;
    }
    if (event) {
        *event = new_event((fake_queue *)queue, fake_status);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel handle, cl_uint work_dim, const size_t *offset,
                                 const size_t *global, const size_t *local, cl_uint n_waits, const cl_event *waits,
                                 cl_event *event) {
    const fake_kernel *kernel = (const fake_kernel *)handle;
    fake_n_launches++;
    if (fake_refusal == CL_SUCCESS && strcmp(kernel->name, "add_one") == 0) {
        fake_memory *memory = (fake_memory *)kernel->arguments[0];
        for (size_t i = 0; i < memory->bytes; i++) {
            memory->content[i]++;
        }
        fake_peak = memory->content[0] > fake_peak ? memory->content[0] : fake_peak;
    }
    if (fake_during) {
        void (*during)(void) = fake_during;
        fake_during = NULL;
        during();
    }
    return command(queue, event);
}

static cl_int CL_API_CALL task(cl_command_queue queue, cl_kernel kernel, cl_uint n, const cl_event *w, cl_event *e) {
    return command(queue, e);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t offset, size_t size,
                                      void *to, cl_uint n, const cl_event *w, cl_event *e) {
    memcpy(to, fake_bytes(memory) + offset, size);
    return command(queue, e);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t offset,
                                       size_t size, const void *from, cl_uint n, const cl_event *w, cl_event *e) {
    memcpy(fake_bytes(memory) + offset, from, size);
    return command(queue, e);
}

static cl_int CL_API_CALL read_rect(cl_command_queue queue, cl_mem memory, cl_bool blocks, const size_t *origin,
                                    const size_t *host_origin, const size_t *region, size_t a, size_t b, size_t c,
                                    size_t d, void *to, cl_uint n, const cl_event *w, cl_event *e) {
    return command(queue, e);
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                      size_t to_offset, size_t size, cl_uint n, const cl_event *w, cl_event *e) {
    memcpy(fake_bytes(to) + to_offset, fake_bytes(from) + from_offset, size);
    return command(queue, e);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes,
                                      size_t offset, size_t size, cl_uint n, const cl_event *w, cl_event *e) {
    return command(queue, e);
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, cl_map_flags flags,
                                    size_t offset, size_t size, cl_uint n, const cl_event *w, cl_event *e,
                                    cl_int *status_ret) {
    cl_int status = command(queue, e);
    if (status_ret) {
        *status_ret = status;
    }
    return status == CL_SUCCESS ? fake_bytes(memory) + offset : NULL;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem memory, void *mapped, cl_uint n, const cl_event *w,
                                cl_event *e) {
    return command(queue, e);
}

static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint n_memories, const cl_mem *memories,
                                  cl_mem_migration_flags flags, cl_uint n, const cl_event *w, cl_event *e) {
    return command(queue, e);
}

static cl_int CL_API_CALL marker_with(cl_command_queue queue, cl_uint n, const cl_event *w, cl_event *e) {
    return command(queue, e);
}

static cl_int CL_API_CALL marker(cl_command_queue queue, cl_event *event) {
    return event ? command(queue, event) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL barrier(cl_command_queue queue) { return fake_refusal; }

static cl_int CL_API_CALL svm_copy(cl_command_queue queue, cl_bool blocks, void *to, const void *from, size_t size,
                                   cl_uint n, const cl_event *w, cl_event *e) {
    return command(queue, e);
}

static cl_int CL_API_CALL finish(cl_command_queue queue) { return CL_SUCCESS; }

const struct _cl_icd_dispatch fake_table = {
    .clGetDeviceInfo = device_info,
    .clGetPlatformInfo = platform_info,
    .clGetDeviceAndHostTimer = timer,
    .clCreateCommandQueue = create_queue,
    .clCreateCommandQueueWithProperties = create_queue_with,
    .clRetainCommandQueue = retain_queue,
    .clReleaseCommandQueue = release_queue,
    .clGetCommandQueueInfo = queue_info,
    .clCreateUserEvent = user_event,
    .clRetainEvent = retain_event,
    .clReleaseEvent = release_event,
    .clGetEventInfo = event_info,
    .clGetEventProfilingInfo = profiling_info,
    .clWaitForEvents = wait_for_events,
    .clCreateBuffer = create_buffer,
    .clRetainMemObject = retain_memory,
    .clReleaseMemObject = release_memory,
    .clGetMemObjectInfo = memory_info,
    .clCreateKernel = create_kernel,
    .clCloneKernel = clone_kernel,
    .clRetainKernel = retain_kernel,
    .clReleaseKernel = release_kernel,
    .clGetKernelInfo = kernel_info,
    .clSetKernelArg = set_argument,
    .clEnqueueNDRangeKernel = launch,
    .clEnqueueTask = task,
    .clEnqueueReadBuffer = read_buffer,
    .clEnqueueWriteBuffer = write_buffer,
    .clEnqueueReadBufferRect = read_rect,
    .clEnqueueCopyBuffer = copy_buffer,
    .clEnqueueFillBuffer = fill_buffer,
    .clEnqueueMapBuffer = map_buffer,
    .clEnqueueUnmapMemObject = unmap,
    .clEnqueueMigrateMemObjects = migrate,
    .clEnqueueMarkerWithWaitList = marker_with,
    .clEnqueueBarrierWithWaitList = marker_with,
    .clEnqueueMarker = marker,
    .clEnqueueBarrier = barrier,
    .clEnqueueSVMMemcpy = svm_copy,
    .clFlush = finish,
    .clFinish = finish,
};
const cl_uint fake_n_entries = sizeof(fake_table) / sizeof(void *);
