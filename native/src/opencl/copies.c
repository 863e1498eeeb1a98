/* Copies of the buffers and images that a kernel is given, made and brought back by the driver's own copy commands. */
#include "copies.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct copy {
    cl_mem original;
    cl_mem before, after; /* buffers of the layer's own; one and the same where the launch changed nothing */
    size_t bytes;
    bool is_image;
    size_t region[3];
} copy;

struct ps_cl_copies {
    cl_command_queue queue;
    cl_context context;
    int n;
    copy all[PS_CL_MAX_ARGUMENTS];
};

static const size_t origin[3] = {0, 0, 0};

/* ---- one copy --------------------------------------------------------------------------------------------------- */

static bool image_size(cl_mem image, cl_image_info name, size_t *size) {
    return ps_cl_below.clGetImageInfo(image, name, sizeof(*size), size, NULL) == CL_SUCCESS;
}

static bool describe_image(copy *c, const ps_cl_memory_state *memory) {
    size_t depth = 0, array = 0;
    cl_uint n_levels = 0, n_samples = 0;
    if (!image_size(c->original, CL_IMAGE_WIDTH, &c->region[0]) ||
        !image_size(c->original, CL_IMAGE_HEIGHT, &c->region[1]) || !image_size(c->original, CL_IMAGE_DEPTH, &depth)) {
        return false;
    }
    image_size(c->original, CL_IMAGE_ARRAY_SIZE, &array);
    ps_cl_below.clGetImageInfo(c->original, CL_IMAGE_NUM_MIP_LEVELS, sizeof(n_levels), &n_levels, NULL);
    ps_cl_below.clGetImageInfo(c->original, CL_IMAGE_NUM_SAMPLES, sizeof(n_samples), &n_samples, NULL);
    bool is_row_array = memory->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    c->is_image = true;
    c->region[2] = is_row_array ? 1 : array ? array : depth;
    c->region[1] = is_row_array ? array : c->region[1];
    c->bytes = memory->element_bytes;
    for (int i = 0; i < 3; i++) {
        c->region[i] = c->region[i] ? c->region[i] : 1;
        c->bytes *= c->region[i];
    }
    return n_levels <= 1 && n_samples <= 1 && c->bytes > 0;
}

static cl_int wait_and_drop(cl_event event) {
    cl_int status = ps_cl_below.clWaitForEvents(1, &event);
    ps_cl_below.clReleaseEvent(event);
    return status;
}

static cl_int copy_out(cl_command_queue queue, const copy *c, cl_mem to) {
    cl_event done = NULL;
    cl_int status =
        c->is_image
            ? ps_cl_below.clEnqueueCopyImageToBuffer(queue, c->original, to, origin, c->region, 0, 0, NULL, &done)
            : ps_cl_below.clEnqueueCopyBuffer(queue, c->original, to, 0, 0, c->bytes, 0, NULL, &done);
    return status == CL_SUCCESS ? wait_and_drop(done) : status;
}

static cl_int copy_back(cl_command_queue queue, const copy *c, cl_mem from) {
    cl_event done = NULL;
    cl_int status =
        c->is_image
            ? ps_cl_below.clEnqueueCopyBufferToImage(queue, from, c->original, 0, origin, c->region, 0, NULL, &done)
            : ps_cl_below.clEnqueueCopyBuffer(queue, from, c->original, 0, 0, c->bytes, 0, NULL, &done);
    return status == CL_SUCCESS ? wait_and_drop(done) : status;
}

/* A buffer of the layer's own with what the original holds now. */
static bool make_copy(const ps_cl_copies *copies, const copy *c, cl_mem *made, char *error, size_t error_bytes) {
    cl_int status = CL_SUCCESS;
    *made = ps_cl_below.clCreateBuffer(copies->context, CL_MEM_READ_WRITE, c->bytes, NULL, &status);
    status = *made ? copy_out(copies->queue, c, *made) : status;
    if (status != CL_SUCCESS) {
        snprintf(error, error_bytes, "a buffer of %zu bytes could not be copied (OpenCL error %d)", c->bytes, status);
    }
    return status == CL_SUCCESS;
}

/* What cannot be looked at counts as different. */
static bool are_equal(cl_command_queue queue, const copy *c) {
    cl_int status = CL_SUCCESS;
    const void *before = ps_cl_below.clEnqueueMapBuffer(queue, c->before, CL_TRUE, CL_MAP_READ, 0, c->bytes, 0, NULL,
                                                        NULL, &status);
    if (status != CL_SUCCESS) {
        return false;
    }
    const void *after =
        ps_cl_below.clEnqueueMapBuffer(queue, c->after, CL_TRUE, CL_MAP_READ, 0, c->bytes, 0, NULL, NULL, &status);
    bool is_equal = status == CL_SUCCESS && memcmp(before, after, c->bytes) == 0;
    if (status == CL_SUCCESS) {
        ps_cl_below.clEnqueueUnmapMemObject(queue, c->after, (void *)(uintptr_t)after, 0, NULL, NULL);
    }
    ps_cl_below.clEnqueueUnmapMemObject(queue, c->before, (void *)(uintptr_t)before, 0, NULL, NULL);
    ps_cl_below.clFinish(queue);
    return is_equal;
}

/* ---- all of a kernel's ------------------------------------------------------------------------------------------ */

static bool is_listed(const ps_cl_copies *copies, cl_mem memory) {
    for (int i = 0; i < copies->n; i++) {
        if (copies->all[i].original == memory) {
            return true;
        }
    }
    return false;
}

static bool list_argument(ps_cl_copies *copies, uint32_t index, const ps_cl_argument *argument, char *error,
                          size_t error_bytes) {
    cl_mem handle = (cl_mem)(uintptr_t)argument->raw;
    if (argument->is_svm) {
        snprintf(error, error_bytes, "argument %u is shared virtual memory, which cannot be copied", index);
        return false;
    }
    if (!argument->is_memory || is_listed(copies, handle)) {
        return true;
    }
    const ps_cl_memory_state *memory = ps_cl_memory_of(handle);
    copy *c = &copies->all[copies->n];
    *c = (copy){.original = handle, .bytes = memory ? memory->bytes : 0};
    bool can_copy = memory && memory->type != CL_MEM_OBJECT_PIPE &&
                    (memory->type == CL_MEM_OBJECT_BUFFER || describe_image(c, memory));
    if (!can_copy) {
        snprintf(error, error_bytes, "argument %u cannot be copied: %s", index,
                 memory ? "a pipe, or an image of levels or samples" : "it was released");
        return false;
    }
    copies->n++;
    return true;
}

ps_cl_copies *ps_cl_copies_take(cl_command_queue queue, const ps_cl_kernel_state *kernel, char *error,
                                size_t error_bytes) {
    ps_cl_copies *copies = (ps_cl_copies *)calloc(1, sizeof(*copies));
    if (!copies) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    copies->queue = queue;
    ps_cl_below.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(copies->context), &copies->context, NULL);
    bool works = true;
    for (uint32_t i = 0; works && i < kernel->n_arguments; i++) {
        works = list_argument(copies, i, &kernel->arguments[i], error, error_bytes);
    }
    for (int i = 0; works && i < copies->n; i++) {
        works = make_copy(copies, &copies->all[i], &copies->all[i].before, error, error_bytes);
    }
    if (!works) {
        ps_cl_copies_free(copies);
        return NULL;
    }
    return copies;
}

bool ps_cl_copies_take_after(ps_cl_copies *copies, char *error, size_t error_bytes) {
    for (int i = 0; i < copies->n; i++) {
        copy *c = &copies->all[i];
        if (!make_copy(copies, c, &c->after, error, error_bytes)) {
            return false;
        }
        if (are_equal(copies->queue, c)) {
            ps_cl_below.clReleaseMemObject(c->after);
            c->after = c->before;
        }
    }
    return true;
}

bool ps_cl_copies_restore(ps_cl_copies *copies, bool is_after, char *error, size_t error_bytes) {
    for (int i = 0; i < copies->n; i++) {
        const copy *c = &copies->all[i];
        bool is_needed = is_after || c->after != c->before;
        cl_int status = is_needed ? copy_back(copies->queue, c, is_after ? c->after : c->before) : CL_SUCCESS;
        if (status != CL_SUCCESS) {
            snprintf(error, error_bytes, "a buffer of %zu bytes could not be restored (OpenCL error %d)", c->bytes,
                     status);
            return false;
        }
    }
    return true;
}

void ps_cl_copies_free(ps_cl_copies *copies) {
    for (int i = 0; i < copies->n; i++) {
        const copy *c = &copies->all[i];
        if (c->before) {
            ps_cl_below.clReleaseMemObject(c->before);
        }
        if (c->after && c->after != c->before) {
            ps_cl_below.clReleaseMemObject(c->after);
        }
    }
    free(copies);
}
