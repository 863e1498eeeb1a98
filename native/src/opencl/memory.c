/* Buffers, images and pipes: their sizes, for the records of the kernels that are given them. */
#include "objects.h"

ps_cl_shelf ps_cl_memories = PS_CL_SHELF(ps_cl_memory_state);
_Atomic uint32_t ps_cl_memory_epoch = 1;

static void memory_made(cl_mem memory) {
    if (!memory || ps_cl_is_off()) {
        return;
    }
    ps_cl_memory_state *state = (ps_cl_memory_state *)ps_cl_shelf_take(&ps_cl_memories);
    if (!state) {
        return;
    }
    size_t bytes = 0, element_bytes = 0;
    cl_mem_object_type type = 0;
    ps_cl_below.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);
    ps_cl_below.clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof(type), &type, NULL);
    if (type != CL_MEM_OBJECT_BUFFER && type != CL_MEM_OBJECT_PIPE && ps_cl_below.clGetImageInfo) {
        ps_cl_below.clGetImageInfo(memory, CL_IMAGE_ELEMENT_SIZE, sizeof(element_bytes), &element_bytes, NULL);
    }
    state->bytes = bytes;
    state->type = type;
    state->element_bytes = (uint32_t)element_bytes;
    atomic_fetch_add_explicit(&ps_cl_memory_epoch, 1, memory_order_relaxed);
    ps_cl_shelf_give_back(&ps_cl_memories, ps_cl_shelf_publish(&ps_cl_memories, &state->item, memory));
    atomic_fetch_add_explicit(&ps_cl_memory_epoch, 1, memory_order_relaxed);
}

static cl_int CL_API_CALL retain_memory(cl_mem memory) {
    cl_int status = ps_cl_below.clRetainMemObject(memory);
    if (status == CL_SUCCESS && !ps_cl_is_off()) {
        ps_cl_shelf_retain(&ps_cl_memories, memory);
    }
    return status;
}

/* Forgotten before the driver releases it: then another thread may be given the same handle. */
static cl_int CL_API_CALL release_memory(cl_mem memory) {
    if (!ps_cl_is_off()) {
        ps_cl_item *item = ps_cl_shelf_release(&ps_cl_memories, memory);
        if (item) {
            atomic_fetch_add_explicit(&ps_cl_memory_epoch, 1, memory_order_relaxed);
            ps_cl_shelf_give_back(&ps_cl_memories, item);
        }
    }
    return ps_cl_below.clReleaseMemObject(memory);
}

/* The functions that make a memory object: (function, parameters, arguments). */
#define MAKERS(MAKER)                                                                                                  \
    MAKER(clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *status_ret),       \
          (context, flags, size, host, status_ret))                                                                    \
    MAKER(clCreateSubBuffer,                                                                                           \
          (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *status_ret),       \
          (buffer, flags, type, info, status_ret))                                                                     \
    MAKER(clCreateImage,                                                                                               \
          (cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *description,    \
           void *host, cl_int *status_ret),                                                                            \
          (context, flags, format, description, host, status_ret))                                                     \
    MAKER(clCreateImage2D,                                                                                             \
          (cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width, size_t height,         \
           size_t row, void *host, cl_int *status_ret),                                                                \
          (context, flags, format, width, height, row, host, status_ret))                                              \
    MAKER(clCreateImage3D,                                                                                             \
          (cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width, size_t height,         \
           size_t depth, size_t row, size_t slice, void *host, cl_int *status_ret),                                    \
          (context, flags, format, width, height, depth, row, slice, host, status_ret))                                \
    MAKER(clCreatePipe,                                                                                                \
          (cl_context context, cl_mem_flags flags, cl_uint packet_bytes, cl_uint n_packets,                            \
           const cl_pipe_properties *properties, cl_int *status_ret),                                                  \
          (context, flags, packet_bytes, n_packets, properties, status_ret))                                           \
    MAKER(clCreateBufferWithProperties,                                                                                \
          (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, size_t size, void *host,       \
           cl_int *status_ret),                                                                                        \
          (context, properties, flags, size, host, status_ret))                                                        \
    MAKER(clCreateImageWithProperties,                                                                                 \
          (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, const cl_image_format *format, \
           const cl_image_desc *description, void *host, cl_int *status_ret),                                          \
          (context, properties, flags, format, description, host, status_ret))                                         \
    MAKER(clCreateFromGLBuffer, (cl_context context, cl_mem_flags flags, cl_GLuint object, int *status_ret),           \
          (context, flags, object, status_ret))                                                                        \
    MAKER(clCreateFromGLTexture,                                                                                       \
          (cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,                \
           cl_int *status_ret),                                                                                        \
          (context, flags, target, level, texture, status_ret))                                                        \
    MAKER(clCreateFromGLTexture2D,                                                                                     \
          (cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,                \
           cl_int *status_ret),                                                                                        \
          (context, flags, target, level, texture, status_ret))                                                        \
    MAKER(clCreateFromGLTexture3D,                                                                                     \
          (cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,                \
           cl_int *status_ret),                                                                                        \
          (context, flags, target, level, texture, status_ret))                                                        \
    MAKER(clCreateFromGLRenderbuffer,                                                                                  \
          (cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *status_ret),                              \
          (context, flags, object, status_ret))                                                                        \
    MAKER(clCreateFromEGLImageKHR,                                                                                     \
          (cl_context context, CLeglDisplayKHR display, CLeglImageKHR image, cl_mem_flags flags,                       \
           const cl_egl_image_properties_khr *properties, cl_int *status_ret),                                         \
          (context, display, image, flags, properties, status_ret))

#define DEFINE_MAKER(function, parameters, arguments)      \
    static cl_mem CL_API_CALL wrap_##function parameters { \
        cl_mem memory = ps_cl_below.function arguments;    \
        memory_made(memory);                               \
        return memory;                                     \
    }

MAKERS(DEFINE_MAKER)

#define REPLACE_MAKER(function, parameters, arguments) PS_CL_REPLACE(table, function, wrap_##function);

void ps_cl_replace_memories(struct _cl_icd_dispatch *table) {
    MAKERS(REPLACE_MAKER)
    PS_CL_REPLACE(table, clRetainMemObject, retain_memory);
    PS_CL_REPLACE(table, clReleaseMemObject, release_memory);
}
