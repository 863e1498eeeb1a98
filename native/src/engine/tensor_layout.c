#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ggml.h"
#include "release.h"
#include "perfsuite/tensor_layout.h"

#define AT(field) fprintf(out, "\"" #field "_at\": %zu, ", offsetof(struct ggml_tensor, field))

/* ggml's names are plain: letters, digits, dots and such; a removed type has none. */
static const char *or_empty(const char *name) { return name ? name : ""; }

static void write_operators(FILE *out) {
    fprintf(out, "\"ops\": [");
    for (int i = 0; i < GGML_OP_COUNT; i++) {
        fprintf(out, "%s\"%s\"", i ? ", " : "", or_empty(ggml_op_name((enum ggml_op)i)));
    }
    fprintf(out, "], \"unary_ops\": [");
    for (int i = 0; i < GGML_UNARY_OP_COUNT; i++) {
        fprintf(out, "%s\"%s\"", i ? ", " : "", or_empty(ggml_unary_op_name((enum ggml_unary_op)i)));
    }
    fprintf(out, "], \"glu_ops\": [");
#ifndef PS_LACKS_GGML_GLU_OP_COUNT
    for (int i = 0; i < GGML_GLU_OP_COUNT; i++) {
        fprintf(out, "%s\"%s\"", i ? ", " : "", or_empty(ggml_glu_op_name((enum ggml_glu_op)i)));
    }
#endif
    fprintf(out, "], ");
}

static void write_types(FILE *out) {
    fprintf(out, "\"types\": [");
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        enum ggml_type type = (enum ggml_type)i;
        fprintf(out, "%s[\"%s\", %lld, %zu]", i ? ", " : "", or_empty(ggml_type_name(type)), (long long)ggml_blck_size(type),
               ggml_type_size(type));
    }
    fprintf(out, "]");
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

bool ps_write_tensor_layout(FILE *out) {
    if (!agrees_with_library()) {
        return false;
    }
    fprintf(out, "{\"version\": \"%s\", \"tensor_bytes\": %zu, ", ps_ggml_version(), sizeof(struct ggml_tensor));
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
    fprintf(out, "\"n_src\": %d, \"name_bytes\": %d, ", GGML_MAX_SRC, GGML_MAX_NAME);
    write_operators(out);
    write_types(out);
    fprintf(out, "}\n");
    return true;
}
