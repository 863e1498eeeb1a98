/* Where the fields of ggml's tensor lie in one build of it. */
#ifndef PERFSUITE_TENSOR_LAYOUT_H
#define PERFSUITE_TENSOR_LAYOUT_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes, as JSON, the layout in the build whose headers this was compiled against, and what that build calls its
 * operators and types; false where a tensor that the library makes does not look as its headers say. */
bool ps_write_tensor_layout(FILE *out);

#ifdef __cplusplus
}
#endif

#endif
