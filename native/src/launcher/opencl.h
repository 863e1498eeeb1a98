/* OpenCL, whose library is looked for when the program runs: nothing of it is needed to compile or to start.
 *
 * Source: The OpenCL Specification 1.2, and the numbers of its headers (checked by native/tests/test_launcher.cpp).
 */
#ifndef PERFSUITE_LAUNCHER_OPENCL_H
#define PERFSUITE_LAUNCHER_OPENCL_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../worker/failure.h"

namespace perfsuite {

/* Any handle: platform, device, context, queue, program, kernel, buffer or event. */
using ClObject = void *;
using ClStatus = int32_t;

/* The functions that are called: what each returns, its name, and what it takes. */
#define PS_CL_FUNCTIONS(FUNCTION)                                                                                      \
    FUNCTION(ClStatus, clGetPlatformIDs, (uint32_t, ClObject *, uint32_t *))                                           \
    FUNCTION(ClStatus, clGetPlatformInfo, (ClObject, uint32_t, size_t, void *, size_t *))                              \
    FUNCTION(ClStatus, clGetDeviceIDs, (ClObject, uint64_t, uint32_t, ClObject *, uint32_t *))                         \
    FUNCTION(ClStatus, clGetDeviceInfo, (ClObject, uint32_t, size_t, void *, size_t *))                                \
    FUNCTION(ClObject, clCreateContext,                                                                                \
             (const intptr_t *, uint32_t, const ClObject *, void (*)(const char *, const void *, size_t, void *),      \
              void *, ClStatus *))                                                                                     \
    FUNCTION(ClStatus, clReleaseContext, (ClObject))                                                                   \
    FUNCTION(ClObject, clCreateCommandQueue, (ClObject, ClObject, uint64_t, ClStatus *))                               \
    FUNCTION(ClStatus, clReleaseCommandQueue, (ClObject))                                                              \
    FUNCTION(ClObject, clCreateProgramWithSource,                                                                      \
             (ClObject, uint32_t, const char **, const size_t *, ClStatus *))                                          \
    FUNCTION(ClObject, clCreateProgramWithBinary,                                                                      \
             (ClObject, uint32_t, const ClObject *, const size_t *, const unsigned char **, ClStatus *, ClStatus *))   \
    FUNCTION(ClStatus, clBuildProgram,                                                                                 \
             (ClObject, uint32_t, const ClObject *, const char *, void (*)(ClObject, void *), void *))                 \
    FUNCTION(ClStatus, clGetProgramBuildInfo, (ClObject, ClObject, uint32_t, size_t, void *, size_t *))                \
    FUNCTION(ClStatus, clGetProgramInfo, (ClObject, uint32_t, size_t, void *, size_t *))                               \
    FUNCTION(ClStatus, clReleaseProgram, (ClObject))                                                                   \
    FUNCTION(ClObject, clCreateKernel, (ClObject, const char *, ClStatus *))                                           \
    FUNCTION(ClStatus, clReleaseKernel, (ClObject))                                                                    \
    FUNCTION(ClStatus, clSetKernelArg, (ClObject, uint32_t, size_t, const void *))                                     \
    FUNCTION(ClObject, clCreateBuffer, (ClObject, uint64_t, size_t, void *, ClStatus *))                               \
    FUNCTION(ClStatus, clReleaseMemObject, (ClObject))                                                                 \
    FUNCTION(ClStatus, clEnqueueWriteBuffer,                                                                           \
             (ClObject, ClObject, uint32_t, size_t, size_t, const void *, uint32_t, const ClObject *, ClObject *))     \
    FUNCTION(ClStatus, clEnqueueReadBuffer,                                                                            \
             (ClObject, ClObject, uint32_t, size_t, size_t, void *, uint32_t, const ClObject *, ClObject *))           \
    FUNCTION(ClStatus, clEnqueueNDRangeKernel,                                                                         \
             (ClObject, ClObject, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,                  \
              const ClObject *, ClObject *))                                                                           \
    FUNCTION(ClStatus, clWaitForEvents, (uint32_t, const ClObject *))                                                  \
    FUNCTION(ClStatus, clGetEventProfilingInfo, (ClObject, uint32_t, size_t, void *, size_t *))                        \
    FUNCTION(ClStatus, clReleaseEvent, (ClObject))                                                                     \
    FUNCTION(ClStatus, clFinish, (ClObject))

/* Numbers of the specification that are passed or come back. */
namespace opencl {
constexpr ClStatus SUCCESS = 0, PROFILING_INFO_NOT_AVAILABLE = -7;
constexpr uint32_t PLATFORM_VERSION = 0x0901, PLATFORM_NAME = 0x0902;
constexpr uint64_t ALL_DEVICES = 0xFFFFFFFF, CPU = 1 << 1, GPU = 1 << 2, ACCELERATOR = 1 << 3;
constexpr uint32_t DEVICE_TYPE = 0x1000, DEVICE_COMPUTE_UNITS = 0x1002, DEVICE_GLOBAL_MEMORY = 0x101F,
                   DEVICE_LOCAL_MEMORY = 0x1023, DEVICE_NAME = 0x102B, DRIVER_VERSION = 0x102D, DEVICE_VERSION = 0x102F;
constexpr uint32_t DEVICE_GROUP_ITEMS = 0x1004, DEVICE_AXIS_ITEMS = 0x1005, DEVICE_ALLOCATION = 0x1010,
                   DEVICE_EXTENSIONS = 0x1030;
constexpr uint64_t PROFILING_QUEUE = 1 << 1;
constexpr uint64_t READ_WRITE = 1 << 0, READ_ONLY = 1 << 2, COPY_HOST_POINTER = 1 << 5;
constexpr uint32_t PROGRAM_BINARY_SIZES = 0x1165, PROGRAM_BINARIES = 0x1166, BUILD_LOG = 0x1183;
constexpr uint32_t QUEUED = 0x1280, SUBMIT = 0x1281, START = 0x1282, END = 0x1283;
} // namespace opencl

/* What OpenCL refused; one line without the device. */
class ClRefusal : public Failure {
  public:
    using Failure::Failure;
};

/* The same, of memory. */
class NoMemory : public ClRefusal {
  public:
    using ClRefusal::ClRefusal;
};

/* The name of an error of OpenCL, as its headers have it without CL_. */
std::string status_name(ClStatus status);

/* Raises a `ClRefusal` unless a function has succeeded. */
void check(ClStatus status, const char *function);

/* The functions of a library that stays loaded. */
struct OpenCl {
    /* Raises a `Failure` that names what was looked for where no library of these can be loaded. */
    explicit OpenCl(const std::vector<std::string> &names = usual_names());

    static std::vector<std::string> usual_names();

    std::string library;
#define PS_CL_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
    PS_CL_FUNCTIONS(PS_CL_MEMBER)
#undef PS_CL_MEMBER
};

/* A handle that is given back. */
using ClOwned = std::shared_ptr<void>;

/* Owns a new handle; raises as `check`. */
ClOwned owned(ClObject object, ClStatus status, const char *function, ClStatus (*release)(ClObject));

} // namespace perfsuite

#endif
