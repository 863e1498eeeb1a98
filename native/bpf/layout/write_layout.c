/* Writes the layout of ggml's tensor for whoever has the library and its headers, and not the suite's engine library. */
#include <stdio.h>

#include "perfsuite/tensor_layout.h"

int main(void) {
    if (!ps_write_tensor_layout(stdout)) {
        fprintf(stderr, "a tensor of the library does not look as its headers say\n");
        return 1;
    }
    return 0;
}
