/* Kernels: their names, and the buffers among their arguments.
 *
 * clSetKernelArg does not say what an argument is: 8 bytes that are the handle of a living memory object are taken for
 * one.  Setting an argument and launching are not thread-safe for one kernel, so its state needs no lock.
 */
#include "objects.h"

#include <stdlib.h>

#include "log_writer.h"

ps_cl_shelf ps_cl_kernels = PS_CL_SHELF(ps_cl_kernel_state);

static uint32_t name_of(cl_kernel kernel) {
    size_t bytes = 0;
    if (ps_cl_below.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, NULL, &bytes) != CL_SUCCESS || bytes == 0) {
        return 0;
    }
    char *name = (char *)calloc(bytes + 1, 1);
    uint32_t id = 0;
    if (name && ps_cl_below.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, bytes, name, NULL) == CL_SUCCESS) {
        id = ps_cl_log_name(name);
    }
    free(name);
    return id;
}

static ps_cl_kernel_state *kernel_made(cl_kernel kernel, const ps_cl_kernel_state *source, bool is_stranger) {
    ps_cl_kernel_state *state = (ps_cl_kernel_state *)ps_cl_shelf_take(&ps_cl_kernels);
    if (!state) {
        return NULL;
    }
    size_t head = sizeof(ps_cl_item);
    if (source) {
        memcpy((char *)state + head, (const char *)source + head, sizeof(*state) - head);
    } else {
        memset((char *)state + head, 0, sizeof(*state) - head);
        state->name = name_of(kernel);
        state->is_stranger = is_stranger;
    }
    ps_cl_shelf_give_back(&ps_cl_kernels, ps_cl_shelf_publish(&ps_cl_kernels, &state->item, kernel));
    return state;
}

ps_cl_kernel_state *ps_cl_kernel_of_stranger(cl_kernel kernel) {
    ps_cl_item *item = ps_cl_shelf_find_surely(&ps_cl_kernels, kernel);
    return item ? (ps_cl_kernel_state *)item : kernel ? kernel_made(kernel, NULL, true) : NULL;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *status_ret) {
    cl_kernel kernel = ps_cl_below.clCreateKernel(program, name, status_ret);
    if (kernel && !ps_cl_is_off()) {
        kernel_made(kernel, NULL, false);
    }
    return kernel;
}

static cl_int CL_API_CALL create_kernels(cl_program program, cl_uint n_kernels, cl_kernel *kernels, cl_uint *n_ret) {
    cl_uint n = 0;
    cl_int status = ps_cl_below.clCreateKernelsInProgram(program, n_kernels, kernels, &n);
    if (n_ret && status == CL_SUCCESS) {
        *n_ret = n;
    }
    for (cl_uint i = 0; status == CL_SUCCESS && kernels && i < n && i < n_kernels && !ps_cl_is_off(); i++) {
        kernel_made(kernels[i], NULL, false);
    }
    return status;
}

static cl_kernel CL_API_CALL clone_kernel(cl_kernel source, cl_int *status_ret) {
    cl_kernel kernel = ps_cl_below.clCloneKernel(source, status_ret);
    if (kernel && !ps_cl_is_off()) {
        kernel_made(kernel, ps_cl_kernel_of(source), false);
    }
    return kernel;
}

static cl_int CL_API_CALL retain_kernel(cl_kernel kernel) {
    cl_int status = ps_cl_below.clRetainKernel(kernel);
    if (status == CL_SUCCESS && !ps_cl_is_off()) {
        ps_cl_shelf_retain(&ps_cl_kernels, kernel);
    }
    return status;
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
    if (!ps_cl_is_off()) {
        ps_cl_shelf_give_back(&ps_cl_kernels, ps_cl_shelf_release(&ps_cl_kernels, kernel));
    }
    return ps_cl_below.clReleaseKernel(kernel);
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* Numbers the buffers anew: an argument became one, or is one no more. */
static void number_buffers(ps_cl_kernel_state *kernel) {
    uint16_t n = 0;
    memset(kernel->buffer_bytes, 0, sizeof(kernel->buffer_bytes));
    for (uint32_t i = 0; i < kernel->n_arguments; i++) {
        ps_cl_argument *argument = &kernel->arguments[i];
        if (argument->is_memory) {
            if (n < PS_CL_MAX_BUFFERS) {
                kernel->buffer_bytes[n] = argument->bytes;
            }
            argument->place = (uint8_t)n++;
        }
    }
    kernel->n_buffers = n;
}

static void set_handle(ps_cl_kernel_state *kernel, ps_cl_argument *argument, uint64_t raw, uint32_t epoch) {
    const ps_cl_memory_state *memory = NULL;
    if (raw > 4096 && raw % sizeof(void *) == 0) {
        memory = ps_cl_memory_of((const void *)(uintptr_t)raw);
    }
    bool was_memory = argument->is_memory;
    argument->raw = raw;
    argument->epoch = epoch;
    argument->is_memory = memory != NULL;
    argument->bytes = memory ? memory->bytes : 0;
    if (argument->is_memory != was_memory) {
        number_buffers(kernel);
    } else if (memory && argument->place < PS_CL_MAX_BUFFERS) {
        kernel->buffer_bytes[argument->place] = memory->bytes;
    }
}

static void set_argument(ps_cl_kernel_state *kernel, cl_uint index, size_t size, const void *value) {
    if (index >= PS_CL_MAX_ARGUMENTS) {
        return;
    }
    if (index >= kernel->n_arguments) {
        kernel->n_arguments = index + 1;
    }
    ps_cl_argument *argument = &kernel->arguments[index];
    argument->is_svm = false;
    uint64_t raw = 0;
    uint32_t epoch = atomic_load_explicit(&ps_cl_memory_epoch, memory_order_relaxed);
    if (size == sizeof(cl_mem) && value) {
        memcpy(&raw, value, sizeof(cl_mem));
    }
    if ((raw != argument->raw || epoch != argument->epoch) && (raw || argument->is_memory)) {
        set_handle(kernel, argument, raw, epoch);
    }
}

static cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    cl_int status = ps_cl_below.clSetKernelArg(kernel, index, size, value);
    if (status == CL_SUCCESS && !ps_cl_is_off()) {
        ps_cl_kernel_state *state = ps_cl_kernel_of(kernel);
        if (state) {
            set_argument(state, index, size, value);
        }
    }
    return status;
}

static cl_int CL_API_CALL set_kernel_arg_svm(cl_kernel kernel, cl_uint index, const void *value) {
    cl_int status = ps_cl_below.clSetKernelArgSVMPointer(kernel, index, value);
    ps_cl_kernel_state *state = status == CL_SUCCESS && !ps_cl_is_off() ? ps_cl_kernel_of(kernel) : NULL;
    if (state) {
        set_argument(state, index, 0, NULL);
        if (index < PS_CL_MAX_ARGUMENTS) {
            state->arguments[index].is_svm = true;
        }
    }
    return status;
}

static cl_int CL_API_CALL set_kernel_exec_info(cl_kernel kernel, cl_kernel_exec_info name, size_t size,
                                               const void *value) {
    cl_int status = ps_cl_below.clSetKernelExecInfo(kernel, name, size, value);
    ps_cl_kernel_state *state = status == CL_SUCCESS && !ps_cl_is_off() ? ps_cl_kernel_of(kernel) : NULL;
    if (state && name == CL_KERNEL_EXEC_INFO_SVM_PTRS && size) {
        state->uses_svm = true;
    }
    return status;
}

void ps_cl_replace_kernels(struct _cl_icd_dispatch *table) {
    PS_CL_REPLACE(table, clCreateKernel, create_kernel);
    PS_CL_REPLACE(table, clCreateKernelsInProgram, create_kernels);
    PS_CL_REPLACE(table, clCloneKernel, clone_kernel);
    PS_CL_REPLACE(table, clRetainKernel, retain_kernel);
    PS_CL_REPLACE(table, clReleaseKernel, release_kernel);
    PS_CL_REPLACE(table, clSetKernelArg, set_kernel_arg);
    PS_CL_REPLACE(table, clSetKernelArgSVMPointer, set_kernel_arg_svm);
    PS_CL_REPLACE(table, clSetKernelExecInfo, set_kernel_exec_info);
}
