/* A layer that lets llama.cpp's OpenCL backend run on a processor's OpenCL runtime; for tests on machines without a GPU.
 *
 * The backend takes only devices whose name holds 'Adreno', 'Qualcomm' or 'Intel', and builds its kernels with options
 * that ask for relaxed half functions, which the processor's runtime lacks.  The layer answers with a name that begins
 * 'Intel(R)', and takes those options out.  Some kernels take their work group of 32 for one sub-group, which the
 * processor's compiler makes of 16 unless it is told: rows of a softmax come out as NaN.  The layer tells it.
 *
 * It is a library of its own: who loads it, measures another device than the one that the backend was written for, and
 * says so.
 */

#define PS_LAYER_NAME "perfsuite compatibility layer for processors"
#include "layer_entry.h"

#include <stdio.h>
#include <stdlib.h>

static const struct _cl_icd_dispatch *below;

static const char prefix[] = "Intel(R) ";
static const char *const dropped[] = {"-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations",
                                      "-cl-finite-math-only"};
static const char added[] = " -Wno-incompatible-pointer-types";

static bool is_processor(cl_device_id device) {
    cl_device_type type = 0;
    return below->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL) == CL_SUCCESS &&
           (type & CL_DEVICE_TYPE_CPU);
}

/* ---- the name -------------------------------------------------------------------------------------------------- */

static cl_int name_of(cl_device_id device, size_t size, void *value, size_t *size_ret) {
    char own[512];
    cl_int status = below->clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(own), own, NULL);
    if (status != CL_SUCCESS) {
        return status;
    }
    size_t skipped = strncmp(own, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
    size_t needed = sizeof(prefix) + strlen(own) - skipped;
    if (value && size < needed) {
        return CL_INVALID_VALUE;
    }
    if (value) {
        snprintf((char *)value, size, "%s%s", prefix, own + skipped);
    }
    if (size_ret) {
        *size_ret = needed;
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info name, size_t size, void *value,
                                          size_t *size_ret) {
    if (name == CL_DEVICE_NAME && is_processor(device)) {
        return name_of(device, size, value, size_ret);
    }
    return below->clGetDeviceInfo(device, name, size, value, size_ret);
}

/* ---- the options ----------------------------------------------------------------------------------------------- */

static void blank_out(char *options, const char *option) {
    size_t length = strlen(option);
    for (char *at = options; (at = strstr(at, option)) != NULL; at += length) {
        if (at[length] == '\0' || at[length] == ' ') {
            memset(at, ' ', length);
        }
    }
}

/* The caller's options without those that are dropped, to be freed; NULL where there is no memory. */
static char *tolerant(const char *options) {
    size_t bytes = (options ? strlen(options) : 0) + sizeof(added);
    char *text = (char *)malloc(bytes);
    if (text) {
        snprintf(text, bytes, "%s%s", options ? options : "", added);
        for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++) {
            blank_out(text, dropped[i]);
        }
    }
    return text;
}

static bool all_are_processors(cl_program program, cl_uint n_devices, const cl_device_id *devices) {
    cl_device_id own[16];
    if (!devices) {
        size_t bytes = 0;
        if (below->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(own), own, &bytes) != CL_SUCCESS) {
            return false;
        }
        n_devices = (cl_uint)(bytes / sizeof(*own));
        devices = own;
    }
    for (cl_uint i = 0; i < n_devices; i++) {
        if (!is_processor(devices[i])) {
            return false;
        }
    }
    return n_devices > 0;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint n_devices, const cl_device_id *devices,
                                        const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                        void *user_data) {
    if (!all_are_processors(program, n_devices, devices)) {
        return below->clBuildProgram(program, n_devices, devices, options, notify, user_data);
    }
    char *text = tolerant(options);
    if (!text) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    cl_int status = below->clBuildProgram(program, n_devices, devices, text, notify, user_data);
    free(text);
    return status;
}

/* ---- the source ------------------------------------------------------------------------------------------------ */

/* How the backend asks for sub-groups of a work group's size, on one family of devices only. */
static const char asked[] = "#ifdef ADRENO_GPU\nREQD_SUBGROUP_SIZE_64\n#endif\n";
static const char made_of_32[] = "__attribute__((intel_reqd_sub_group_size(32)))\n";

static bool has_only_processors(cl_context context) {
    cl_device_id devices[16];
    size_t bytes = 0;
    return below->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(devices), devices, &bytes) == CL_SUCCESS &&
           all_are_processors(NULL, (cl_uint)(bytes / sizeof(*devices)), devices);
}

/* The source in one piece; NULL where there is no memory. */
static char *joined(cl_uint count, const char **strings, const size_t *lengths) {
    size_t bytes = 1;
    for (cl_uint i = 0; i < count; i++) {
        bytes += lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
    }
    char *text = (char *)malloc(bytes), *at = text;
    for (cl_uint i = 0; text && i < count; i++) {
        size_t length = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
        memcpy(at, strings[i], length);
        at += length;
    }
    if (text) {
        *at = '\0';
    }
    return text;
}

/* Puts the attribute in the place of each condition; it is shorter, so the text stays where it is. */
static void ask_for_32(char *text) {
    _Static_assert(sizeof(made_of_32) <= sizeof(asked), "the attribute has the room of the condition");
    for (char *at = text; (at = strstr(at, asked)) != NULL;) {
        memcpy(at, made_of_32, sizeof(made_of_32) - 1);
        at += sizeof(made_of_32) - 1;
        memset(at, ' ', sizeof(asked) - sizeof(made_of_32));
    }
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **strings,
                                             const size_t *lengths, cl_int *status) {
    char *text = strings && count && has_only_processors(context) ? joined(count, strings, lengths) : NULL;
    if (!text) {
        return below->clCreateProgramWithSource(context, count, strings, lengths, status);
    }
    ask_for_32(text);
    const char *source = text;
    cl_program program = below->clCreateProgramWithSource(context, 1, &source, NULL, status);
    free(text);
    return program;
}

static bool ps_layer_begin(const struct _cl_icd_dispatch *target, cl_uint n_target) {
    (void)n_target;
    below = target;
    return true;
}

static void ps_layer_replace(struct _cl_icd_dispatch *table) {
    table->clGetDeviceInfo = get_device_info;
    table->clBuildProgram = build_program;
    table->clCreateProgramWithSource = create_program;
}
