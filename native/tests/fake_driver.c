/* A library of OpenCL above the driver that does nothing, for the tests of the launcher: one platform, two devices.
 *
 * A program has the kernels that its source names; one with the word `broken` does not build.  `copy` copies its first
 * argument to its second, as many bytes as its third says, `back` the other way; `overrun` writes four bytes more,
 * `nothing` none.
 */
#include "fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_opencl.h"

typedef struct driver_program {
    char *source;
} driver_program;

typedef struct driver_kernel {
    char name[16];
    cl_mem memories[8];
    int32_t n_bytes;
} driver_kernel;

/* What was launched, a letter each, and what was built from source. */
static char launched[1024];
static int n_built, n_living;

FAKE_API const char *fake_driver_launched(void) { return launched; }
FAKE_API int fake_driver_built(void) { return n_built; }
FAKE_API int fake_driver_living(void) { return n_living + (int)fake_n_memories + (int)fake_n_events; }
FAKE_API void fake_driver_refuse(int status) { fake_refusal = status; }
FAKE_API void fake_driver_reset(void) {
    launched[0] = '\0';
    n_built = 0;
}

static cl_int answer_text(const char *text, size_t size, void *value, size_t *size_ret) {
    return fake_answer(text, strlen(text) + 1, size, value, size_ret);
}

FAKE_API cl_int clGetPlatformIDs(cl_uint n, cl_platform_id *to, cl_uint *count) {
    if (to && n) {
        *to = (cl_platform_id)(uintptr_t)8;
    }
    if (count) {
        *count = 1;
    }
    return CL_SUCCESS;
}

FAKE_API cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, size_t size, void *to, size_t *ret) {
    return answer_text(name == CL_PLATFORM_NAME ? "Fakes " : "OpenCL 1.2", size, to, ret);
}

FAKE_API cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *to,
                               cl_uint *count) {
    for (cl_uint i = 0; to && i < n; i++) {
        to[i] = (cl_device_id)(uintptr_t)(16 + i);
    }
    if (count) {
        *count = 2;
    }
    return CL_SUCCESS;
}

FAKE_API cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size, void *to, size_t *ret) {
    const cl_device_type types[2] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT};
    size_t place = (uintptr_t)device - 16;
    const cl_uint units = 2;
    const cl_ulong bytes = 4096;
    const size_t items[3] = {64, 8, 1};
    switch (name) {
    case CL_DEVICE_TYPE: return fake_answer(&types[place], sizeof types[place], size, to, ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return fake_answer(&units, sizeof units, size, to, ret);
    case CL_DEVICE_EXTENSIONS: return answer_text("cl_khr_a cl_khr_b ", size, to, ret);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return fake_answer(items, sizeof *items, size, to, ret);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: return fake_answer(items, sizeof items, size, to, ret);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE: return fake_answer(&bytes, sizeof bytes, size, to, ret);
    case CL_DEVICE_NAME: return answer_text(place ? " second" : "first", size, to, ret);
    default: return answer_text("7", size, to, ret);
    }
}

FAKE_API cl_context clCreateContext(const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
                                    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *with,
                                    cl_int *status) {
    *status = CL_SUCCESS;
    n_living++;
    return (cl_context)malloc(1);
}

FAKE_API cl_int clReleaseContext(cl_context context) {
    free(context);
    n_living--;
    return CL_SUCCESS;
}

FAKE_API cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                               cl_command_queue_properties properties, cl_int *status) {
    return fake_table.clCreateCommandQueue(context, device, properties, status);
}

FAKE_API cl_int clReleaseCommandQueue(cl_command_queue queue) { return fake_table.clReleaseCommandQueue(queue); }

static cl_program new_program(const char *text, size_t size, cl_int *status) {
    driver_program *program = (driver_program *)calloc(1, sizeof *program);
    program->source = (char *)calloc(1, size + 1);
    memcpy(program->source, text, size);
    n_living++;
    *status = CL_SUCCESS;
    return (cl_program)program;
}

FAKE_API cl_program clCreateProgramWithSource(cl_context context, cl_uint n, const char **texts, const size_t *sizes,
                                              cl_int *status) {
    n_built++;
    return new_program(texts[0], sizes[0], status);
}

FAKE_API cl_program clCreateProgramWithBinary(cl_context context, cl_uint n, const cl_device_id *devices,
                                              const size_t *sizes, const unsigned char **texts, cl_int *each,
                                              cl_int *status) {
    return new_program((const char *)texts[0], sizes[0], status);
}

FAKE_API cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
                               void(CL_CALLBACK *notify)(cl_program, void *), void *with) {
    return strstr(((driver_program *)program)->source, "broken") ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

FAKE_API cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info name, size_t size,
                                      void *to, size_t *ret) {
    return answer_text("line 1: it is broken", size, to, ret);
}

FAKE_API cl_int clGetProgramInfo(cl_program program, cl_program_info name, size_t size, void *to, size_t *ret) {
    const driver_program *of = (const driver_program *)program;
    size_t n_bytes = strlen(of->source);
    if (name == CL_PROGRAM_BINARY_SIZES) {
        return fake_answer(&n_bytes, sizeof n_bytes, size, to, ret);
    }
    memcpy(*(char **)to, of->source, n_bytes);
    return CL_SUCCESS;
}

FAKE_API cl_int clReleaseProgram(cl_program program) {
    free(((driver_program *)program)->source);
    free(program);
    n_living--;
    return CL_SUCCESS;
}

FAKE_API cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *status) {
    if (!strstr(((driver_program *)program)->source, name)) {
        *status = CL_INVALID_KERNEL_NAME;
        return NULL;
    }
    driver_kernel *kernel = (driver_kernel *)calloc(1, sizeof *kernel);
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    n_living++;
    *status = CL_SUCCESS;
    return (cl_kernel)kernel;
}

FAKE_API cl_int clReleaseKernel(cl_kernel kernel) {
    free(kernel);
    n_living--;
    return CL_SUCCESS;
}

FAKE_API cl_int clSetKernelArg(cl_kernel handle, cl_uint index, size_t size, const void *value) {
    driver_kernel *kernel = (driver_kernel *)handle;
    if (index >= 8) {
        return CL_INVALID_ARG_INDEX;
    }
    memcpy(size == sizeof(cl_mem) ? (void *)&kernel->memories[index] : (void *)&kernel->n_bytes, value, size);
    return CL_SUCCESS;
}

FAKE_API cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *status) {
    return fake_table.clCreateBuffer(context, flags, size, host, status);
}

FAKE_API cl_int clReleaseMemObject(cl_mem memory) { return fake_table.clReleaseMemObject(memory); }

FAKE_API cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t offset, size_t size,
                                     const void *from, cl_uint n, const cl_event *waits, cl_event *event) {
    return fake_table.clEnqueueWriteBuffer(queue, memory, blocks, offset, size, from, n, waits, event);
}

FAKE_API cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t offset, size_t size,
                                    void *to, cl_uint n, const cl_event *waits, cl_event *event) {
    return fake_table.clEnqueueReadBuffer(queue, memory, blocks, offset, size, to, n, waits, event);
}

FAKE_API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel handle, cl_uint dimensions,
                                       const size_t *offset, const size_t *global, const size_t *local, cl_uint n,
                                       const cl_event *waits, cl_event *event) {
    const driver_kernel *kernel = (const driver_kernel *)handle;
    size_t extra = strcmp(kernel->name, "overrun") == 0 ? 4 : 0, length = strlen(launched);
    if (strcmp(kernel->name, "back") == 0) {
        memcpy(fake_bytes(kernel->memories[0]), fake_bytes(kernel->memories[1]), (size_t)kernel->n_bytes);
    } else if (strcmp(kernel->name, "nothing") != 0) {
        memcpy(fake_bytes(kernel->memories[1]), fake_bytes(kernel->memories[0]), (size_t)kernel->n_bytes + extra);
    }
    if (length + 1 < sizeof launched) {
        launched[length] = kernel->name[0];
        launched[length + 1] = '\0';
    }
    return fake_table.clEnqueueMarkerWithWaitList(queue, n, waits, event);
}

FAKE_API cl_int clWaitForEvents(cl_uint n, const cl_event *events) { return fake_table.clWaitForEvents(n, events); }

FAKE_API cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info name, size_t size, void *to, size_t *ret) {
    return fake_table.clGetEventProfilingInfo(event, name, size, to, ret);
}

FAKE_API cl_int clReleaseEvent(cl_event event) { return fake_table.clReleaseEvent(event); }

FAKE_API cl_int clFinish(cl_command_queue queue) { return fake_table.clFinish(queue); }
