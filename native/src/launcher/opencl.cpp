#include "opencl.h"

#include <cstdlib>
#include <dlfcn.h>
#include <map>

namespace perfsuite {

namespace {

/* Where Android's vendors have it, for programs of that width. */
#if defined(__LP64__)
#define PS_LIBRARIES "lib64"
#else
#define PS_LIBRARIES "lib"
#endif

std::string joined(const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

} // namespace

/* Source: the header CL/cl.h of OpenCL 1.2, "Error Codes", and CL/cl_ext.h for -1001. */
std::string status_name(ClStatus status) {
    static const std::map<ClStatus, const char *> names = {
        {-1, "DEVICE_NOT_FOUND"},
        {-2, "DEVICE_NOT_AVAILABLE"},
        {-3, "COMPILER_NOT_AVAILABLE"},
        {-4, "MEM_OBJECT_ALLOCATION_FAILURE"},
        {-5, "OUT_OF_RESOURCES"},
        {-6, "OUT_OF_HOST_MEMORY"},
        {-7, "PROFILING_INFO_NOT_AVAILABLE"},
        {-11, "BUILD_PROGRAM_FAILURE"},
        {-14, "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
        {-30, "INVALID_VALUE"},
        {-33, "INVALID_DEVICE"},
        {-34, "INVALID_CONTEXT"},
        {-36, "INVALID_COMMAND_QUEUE"},
        {-38, "INVALID_MEM_OBJECT"},
        {-42, "INVALID_BINARY"},
        {-43, "INVALID_BUILD_OPTIONS"},
        {-44, "INVALID_PROGRAM"},
        {-45, "INVALID_PROGRAM_EXECUTABLE"},
        {-46, "INVALID_KERNEL_NAME"},
        {-48, "INVALID_KERNEL"},
        {-49, "INVALID_ARG_INDEX"},
        {-50, "INVALID_ARG_VALUE"},
        {-51, "INVALID_ARG_SIZE"},
        {-52, "INVALID_KERNEL_ARGS"},
        {-53, "INVALID_WORK_DIMENSION"},
        {-54, "INVALID_WORK_GROUP_SIZE"},
        {-55, "INVALID_WORK_ITEM_SIZE"},
        {-59, "INVALID_OPERATION"},
        {-61, "INVALID_BUFFER_SIZE"},
        {-63, "INVALID_GLOBAL_WORK_SIZE"},
        {-1001, "PLATFORM_NOT_FOUND_KHR"},
    };
    auto found = names.find(status);
    return found == names.end() ? "error " + std::to_string(status) : found->second;
}

void check(ClStatus status, const char *function) {
    if (status != opencl::SUCCESS) {
        throw ClRefusal(std::string(function) + " failed: " + status_name(status));
    }
}

ClOwned owned(ClObject object, ClStatus status, const char *function, ClStatus (*release)(ClObject)) {
    check(status, function);
    return ClOwned(object, [release](ClObject each) { release(each); });
}

std::vector<std::string> OpenCl::usual_names() {
    std::vector<std::string> names = {"libOpenCL.so.1",
                                      "libOpenCL.so",
                                      "/vendor/" PS_LIBRARIES "/libOpenCL.so",
                                      "/system/vendor/" PS_LIBRARIES "/libOpenCL.so",
                                      "/system/" PS_LIBRARIES "/libOpenCL.so",
                                      "libmali.so"};
    if (const char *named = std::getenv("PERFSUITE_OPENCL_LOADER")) {
        names.push_back(named);
    }
    return names;
}

OpenCl::OpenCl(const std::vector<std::string> &names) {
    void *handle = nullptr;
    std::string why;
    for (const std::string &name : names) {
        if (!handle && (handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))) {
            library = name;
        } else if (why.empty()) {
            const char *said = dlerror();
            why = said ? said : "no reason is known";
        }
    }
    if (!handle) {
        throw Failure("OpenCL: none of " + joined(names) + " can be loaded (" + why +
                          "); install the driver of the device's vendor and a loader, such as Debian's "
                          "ocl-icd-libopencl1, which looks for drivers in /etc/OpenCL/vendors",
                      "OpenClError");
    }
#define PS_CL_LOAD(result, name, arguments)                                                                            \
    name = reinterpret_cast<decltype(name)>(dlsym(handle, #name));                                                     \
    if (!name) {                                                                                                       \
        throw Failure(library + ": has no " #name "; expected a library of OpenCL 1.2", "OpenClError");                \
    }
    PS_CL_FUNCTIONS(PS_CL_LOAD)
#undef PS_CL_LOAD
}

} // namespace perfsuite
