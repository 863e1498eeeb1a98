#include "probe_kernels.h"

bool ps_always_supported(void) {
    return true;
}

const ps_stream_kernel *ps_supported_stream(int index) {
    const ps_stream_kernel *tables[] = {ps_native_streams, ps_portable_streams};
    for (int i = 0; i < 2; i++) {
        for (const ps_stream_kernel *kernel = tables[i]; kernel->path != NULL; kernel++) {
            if (kernel->is_supported() && index-- == 0) {
                return kernel;
            }
        }
    }
    return NULL;
}

const ps_compute_kernel *ps_supported_compute(int type, int index) {
    const ps_compute_kernel *tables[] = {ps_native_computes, ps_portable_computes};
    for (int i = 0; i < 2; i++) {
        for (const ps_compute_kernel *kernel = tables[i]; kernel->path != NULL; kernel++) {
            if (kernel->type == type && kernel->is_supported() && index-- == 0) {
                return kernel;
            }
        }
    }
    return NULL;
}
