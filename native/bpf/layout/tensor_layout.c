/* Writes, as JSON, where the fields of ggml's tensor lie in the build whose headers this is compiled against, and what
 * that build calls its operators and types.
 */
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* Whether tensors that the library makes look as the headers say: a product and a view with odd sizes and names. */
static bool agrees_with_library(void) {
    static char room[1 << 16];
    struct ggml_context *context = ggml_init((struct ggml_init_params){sizeof(room), room, true});
    if (!context) {
        return false;
    }
    struct ggml_tensor *a = ggml_new_tensor_4d(context, GGML_TYPE_F16, 3, 5, 7, 11);
    struct ggml_tensor *b = ggml_new_tensor_4d(context, GGML_TYPE_F32, 3, 13, 7, 11);
    struct ggml_tensor *product = ggml_mul_mat(context, a, b), *view = ggml_view_1d(context, b, 3, 0);
    ggml_set_name(product, "perfsuite-product");
    bool agrees = a->type == GGML_TYPE_F16 && a->ne[0] == 3 && a->ne[1] == 5 && a->ne[2] == 7 && a->ne[3] == 11 &&
                  a->nb[0] == 2 && a->nb[1] == 6 && product->op == GGML_OP_MUL_MAT && product->src[0] == a &&
                  product->src[1] == b && product->ne[0] == 5 && product->ne[1] == 13 && view->view_src == b &&
                  strncmp(product->name, "perfsuite-product", sizeof(product->name)) == 0;
    ggml_free(context);
    return agrees;
}

int main(void) {
    if (!agrees_with_library()) {
        fprintf(stderr, "a tensor of the library does not look as its headers say\n");
        return 1;
    }
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
