#include "fake_graph.h"

const char *ggml_type_name(enum ggml_type type) { return type == GGML_TYPE_F32 ? "f32" : "f16"; }

const char *ggml_op_desc(const struct ggml_tensor *tensor) {
    switch (tensor->op) {
    case GGML_OP_NONE: return "NONE";
    case GGML_OP_RMS_NORM: return "RMS_NORM";
    case GGML_OP_MUL: return "MUL";
    case GGML_OP_MUL_MAT: return "MUL_MAT";
    case GGML_OP_ADD: return "ADD";
    default: return "AN_OPERATOR_WITH_A_NAME_LONGER_THAN_ITS_FIELD";
    }
}

bool ggml_are_same_shape(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

int64_t ggml_nrows(const struct ggml_tensor *tensor) { return tensor->ne[1] * tensor->ne[2] * tensor->ne[3]; }

struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *graph) { return graph->nodes; }
int ggml_graph_n_nodes(struct ggml_cgraph *graph) { return graph->n_nodes; }

void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *to, size_t offset, size_t size) {
    memcpy(to, (const char *)tensor->data + offset, size);
}

const char *ggml_backend_name(ggml_backend_t backend) { return backend->name; }
ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend) { return backend->device; }

static void set_ended(ggml_backend_t backend, ggml_abort_callback ended, void *data) {
    backend->ended = ended;
    backend->ended_data = data;
}

ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device) { return (ggml_backend_reg_t)device; }

void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t registered, const char *name) {
    ggml_backend_set_abort_callback_t function = set_ended;
    void *found;
    CHECK(registered && strcmp(name, "ggml_backend_set_abort_callback") == 0);
    memcpy(&found, &function, sizeof found);
    return found;
}

/* A processor, which is never asked, and two cards, of which one multiplies only. */
static struct ggml_backend_device devices[] = {
    {"CPU", GGML_BACKEND_DEVICE_TYPE_CPU}, {"Card0", GGML_BACKEND_DEVICE_TYPE_GPU}, {"Card1", GGML_BACKEND_DEVICE_TYPE_IGPU}};

size_t ggml_backend_dev_count(void) { return sizeof devices / sizeof devices[0]; }
ggml_backend_dev_t ggml_backend_dev_get(size_t index) { return &devices[index]; }
const char *ggml_backend_dev_name(ggml_backend_dev_t device) { return device->name; }
enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device) { return device->type; }

bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    CHECK(device->type != GGML_BACKEND_DEVICE_TYPE_CPU);
    return op->op == GGML_OP_MUL_MAT || device->type == GGML_BACKEND_DEVICE_TYPE_GPU;
}

/* ---- graphs that nobody computes ---------------------------------------------------------------------------------- */

void shape(struct ggml_tensor *tensor, int64_t n_columns, int64_t n_rows) {
    const int64_t ne[4] = {n_columns, n_rows, 1, 1};
    memcpy(tensor->ne, ne, sizeof ne);
    tensor->nb[0] = tensor->type == GGML_TYPE_F32 ? 4 : 2;
    for (int d = 1; d < 4; d++) {
        tensor->nb[d] = tensor->nb[d - 1] * (size_t)tensor->ne[d - 1];
    }
}

struct ggml_tensor *add(graph *g, enum ggml_op op, struct ggml_tensor *first, struct ggml_tensor *second) {
    struct ggml_tensor *node = &g->nodes[g->n_nodes];
    CHECK(g->n_nodes < MOST_NODES);
    memset(node, 0, sizeof *node);
    node->op = op;
    node->flags = GGML_TENSOR_FLAG_COMPUTE;
    node->src[0] = first;
    node->src[1] = second;
    shape(node, 32, 4);
    snprintf(node->name, sizeof node->name, "node_%d", g->n_nodes++);
    return node;
}

void empty_graph(graph *g) {
    memset(g, 0, sizeof *g);
    shape(&g->weight, 32, 1);
    snprintf(g->weight.name, sizeof g->weight.name, "blk.0.weight");
}

void usual_graph(graph *g) {
    empty_graph(g);
    struct ggml_tensor *product = add(g, GGML_OP_MUL_MAT, &g->weight, &g->weight);
    struct ggml_tensor *view = add(g, GGML_OP_VIEW, product, NULL);
    struct ggml_tensor *norm = add(g, GGML_OP_RMS_NORM, view, NULL);
    struct ggml_tensor *mul = add(g, GGML_OP_MUL, norm, &g->weight);
    struct ggml_tensor *sum = add(g, GGML_OP_ADD, mul, product);
    snprintf(product->name, sizeof product->name, "ffn_gate-7");
    snprintf(sum->name, sizeof sum->name, "l_out-7");
}

ps_recorder *recorder;
graph g;

void begin_with(ps_recorder_kind kind, uint64_t capacity, int32_t n_threads) {
    ps_recorder_close(recorder);
    recorder = ps_recorder_open(kind, capacity, n_threads);
    CHECK(recorder != NULL);
    usual_graph(&g);
}

void begin(ps_recorder_kind kind) { begin_with(kind, CAPACITY, 2); }

void ask_all(graph *asked) {
    for (int i = 0; i < asked->n_nodes; i++) {
        CHECK(!ps_recorder_ask(&asked->nodes[i], true, recorder));
    }
}

void tick(int n_ticks) {
    for (int i = 0; i < n_ticks; i++) {
        CHECK(!ps_recorder_tick(recorder));
    }
}

void evaluate(graph *evaluated, int n_timed) {
    ask_all(evaluated);
    tick(n_timed);
}

const ps_event *stored(uint64_t n_expected) {
    uint64_t n_events;
    ps_recorder_drain(recorder);
    const ps_event *events = ps_recorder_events(recorder, &n_events);
    CHECK(n_events == n_expected);
    return events;
}

const ps_node *nodes_of(int32_t index, int32_t n_expected) {
    int32_t n_nodes;
    const ps_node *nodes = ps_recorder_nodes(recorder, index, &n_nodes);
    CHECK(n_nodes == n_expected);
    return nodes;
}
