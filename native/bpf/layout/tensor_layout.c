/* Writes, as JSON, where the fields of ggml's tensor lie in the build whose headers this is compiled against, and what
 * that build calls its operators and types.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ggml.h"

#define AT(field) printf("\"" #field "_at\": %zu, ", offsetof(struct ggml_tensor, field))

/* ggml's names are plain: letters, digits, dots and such; a removed type has none. */
static const char *or_empty(const char *name) { return name ? name : ""; }

static void write_operators(void) {
    printf("\"ops\": [");
    for (int i = 0; i < GGML_OP_COUNT; i++) {
        printf("%s\"%s\"", i ? ", " : "", or_empty(ggml_op_name((enum ggml_op)i)));
    }
    printf("], \"unary_ops\": [");
    for (int i = 0; i < GGML_UNARY_OP_COUNT; i++) {
        printf("%s\"%s\"", i ? ", " : "", or_empty(ggml_unary_op_name((enum ggml_unary_op)i)));
    }
    printf("], \"glu_ops\": [");
    for (int i = 0; i < GGML_GLU_OP_COUNT; i++) {
        printf("%s\"%s\"", i ? ", " : "", or_empty(ggml_glu_op_name((enum ggml_glu_op)i)));
    }
    printf("], ");
}

static void write_types(void) {
    printf("\"types\": [");
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        enum ggml_type type = (enum ggml_type)i;
        printf("%s[\"%s\", %lld, %zu]", i ? ", " : "", or_empty(ggml_type_name(type)), (long long)ggml_blck_size(type),
               ggml_type_size(type));
    }
    printf("]");
}

int main(void) {
    printf("{\"version\": \"%s\", \"tensor_bytes\": %zu, ", ggml_version(), sizeof(struct ggml_tensor));
    AT(type);
    AT(ne);
    AT(nb);
    AT(op);
    AT(op_params);
    AT(flags);
    AT(src);
    AT(view_src);
    AT(data);
    AT(name);
    printf("\"n_src\": %d, \"name_bytes\": %d, ", GGML_MAX_SRC, GGML_MAX_NAME);
    write_operators();
    write_types();
    printf("}\n");
    return 0;
}
