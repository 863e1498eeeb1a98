/* The entry points by which an OpenCL loader takes in a layer, written once for the suite's layers.
 *
 * A source file defines PS_LAYER_NAME and two functions, then includes this header:
 *
 *     static bool ps_layer_begin(const struct _cl_icd_dispatch *target, cl_uint n_target);
 *     static void ps_layer_replace(struct _cl_icd_dispatch *table);
 *
 * `target` is what the layer below answers with; `table` starts as a copy of it.  ocl-icd takes clGetLayerInfo and
 * clInitLayer, newer Khronos loaders ask for clInitLayerWithProperties first (CL/cl_layer.h).
 */
#ifndef PERFSUITE_OPENCL_LAYER_ENTRY_H
#define PERFSUITE_OPENCL_LAYER_ENTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#define PS_EXPORT __attribute__((visibility("default")))

static bool ps_layer_begin(const struct _cl_icd_dispatch *target, cl_uint n_target);
static void ps_layer_replace(struct _cl_icd_dispatch *table);

/* A process may have several loaders, each of which brings the layer in with a target of its own. */
enum { PS_LAYER_LOADERS = 8 };
static struct _cl_icd_dispatch ps_layer_tables[PS_LAYER_LOADERS];
static int ps_layer_n_tables;

/* Entries that this layer was compiled with: what is younger stays the loader's own. */
#define PS_LAYER_ENTRIES ((cl_uint)(sizeof(struct _cl_icd_dispatch) / sizeof(void *)))

PS_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret) {
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *answer;
    size_t needed;
    switch (name) {
    case CL_LAYER_API_VERSION: answer = &version, needed = sizeof(version); break;
    case CL_LAYER_NAME: answer = PS_LAYER_NAME, needed = sizeof(PS_LAYER_NAME); break;
    default: return CL_INVALID_VALUE;
    }
    if (value && size < needed) {
        return CL_INVALID_VALUE;
    }
    if (value) {
        memcpy(value, answer, needed);
    }
    if (size_ret) {
        *size_ret = needed;
    }
    return CL_SUCCESS;
}

static cl_int ps_layer_init(cl_uint n_target, const struct _cl_icd_dispatch *target, cl_uint *n_ret,
                            const struct _cl_icd_dispatch **table_ret) {
    if (!target || !n_ret || !table_ret) {
        return CL_INVALID_VALUE;
    }
    if (ps_layer_n_tables == PS_LAYER_LOADERS) {
        return CL_OUT_OF_RESOURCES;
    }
    cl_uint n_entries = n_target < PS_LAYER_ENTRIES ? n_target : PS_LAYER_ENTRIES;
    struct _cl_icd_dispatch *table = &ps_layer_tables[ps_layer_n_tables++];
    /* cppcheck-suppress pointerSize ; tables of pointers */
    memcpy(table, target, n_entries * sizeof(void *));
    if (!ps_layer_begin(target, n_entries)) {
        return CL_INVALID_OPERATION;
    }
    ps_layer_replace(table);
    *n_ret = n_entries;
    *table_ret = table;
    return CL_SUCCESS;
}

PS_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint n_target, const struct _cl_icd_dispatch *target, cl_uint *n_ret,
                                         const struct _cl_icd_dispatch **table_ret) {
    return ps_layer_init(n_target, target, n_ret, table_ret);
}

/* The type of its last argument, cl_layer_properties, is a cl_properties that older headers do not know. */
PS_EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint n_target, const struct _cl_icd_dispatch *target,
                                                       cl_uint *n_ret, const struct _cl_icd_dispatch **table_ret,
                                                       const uint64_t *properties) {
    (void)properties;
    return ps_layer_init(n_target, target, n_ret, table_ret);
}

#endif
