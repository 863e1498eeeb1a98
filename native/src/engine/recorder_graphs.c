/* What a graph is: its nodes copied out, which of them are timed, and how it is known again. */
#include <stdio.h>
#include <string.h>

#include "recorder_state.h"
#include "release.h"

static bool is_empty(enum ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_VIEW || op == GGML_OP_RESHAPE || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

static int count_uses(const ps_graph *graph, const struct ggml_tensor *tensor) {
    int uses = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        for (int s = 0; s < GGML_MAX_SRC; s++) {
            uses += graph->addresses[i]->src[s] == tensor;
        }
    }
    return uses;
}

/* The CPU backend computes RMS_NORM and the MUL after it as one when nothing else reads the norm and all is F32. */
static bool is_fused_pair(const ps_graph *graph, int32_t i) {
    const struct ggml_tensor *norm = graph->addresses[i], *mul = graph->addresses[i + 1];
    if (norm->op != GGML_OP_RMS_NORM || mul->op != GGML_OP_MUL || !ps_is_computed(mul)) {
        return false;
    }
    if (mul->src[0] != norm && mul->src[1] != norm) {
        return false;
    }
    const struct ggml_tensor *weight = mul->src[0] == norm ? mul->src[1] : mul->src[0];
    bool plain = norm->src[0]->type == GGML_TYPE_F32 && mul->type == GGML_TYPE_F32 && weight->type == GGML_TYPE_F32;
    bool fits = ggml_are_same_shape(norm, mul) && weight->ne[0] == norm->ne[0] && weight->nb[0] == sizeof(float);
    return plain && fits && !norm->view_src && !(norm->flags & GGML_TENSOR_FLAG_OUTPUT) && count_uses(graph, norm) == 1;
}

static void copy_tensor(ps_tensor *out, const struct ggml_tensor *tensor) {
    snprintf(out->name, sizeof(out->name), "%s", tensor->name);
    snprintf(out->type, sizeof(out->type), "%s", ggml_type_name(tensor->type));
    for (int d = 0; d < 4; d++) {
        out->ne[d] = tensor->ne[d];
        out->nb[d] = (int64_t)tensor->nb[d];
    }
    out->root = (uint64_t)(uintptr_t)(tensor->view_src ? tensor->view_src : tensor);
}

static void copy_node(ps_node *out, const struct ggml_tensor *tensor) {
    copy_tensor(&out->tensor, tensor);
    snprintf(out->op, sizeof(out->op), "%s", ggml_op_desc(tensor));
    for (int s = 0; s < PS_MAX_SOURCES && tensor->src[s]; s++) {
        copy_tensor(&out->sources[out->n_sources++], tensor->src[s]);
    }
}

/* True where `op` names the node: its operator, or its tensor's name without the layer number. */
static bool is_named(const struct ggml_tensor *tensor, const char *op) {
    const char *dash = strrchr(tensor->name, '-');
    size_t length = dash ? (size_t)(dash - tensor->name) : strlen(tensor->name);
    return strcmp(op, ggml_op_desc(tensor)) == 0 ||
           (strlen(op) == length && strncmp(op, tensor->name, length) == 0);
}

/* The CPU backend alone computes pairs as one, and not across groups. */
static bool may_fuse(const ps_recorder *r) {
    return r->kind != PS_RECORDER_GROUPS && r->kind != PS_RECORDER_SPLITS;
}

/* A norm and the weight behind it are one operator, whether a release computes them as one or not. */
static void mark_operators(const ps_recorder *r, ps_graph *graph) {
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        ps_node *node = &graph->nodes[i];
        const struct ggml_tensor *tensor = graph->addresses[i];
        node->fused_into_previous = may_fuse(r) && i > 0 && graph->nodes[i - 1].timed && is_fused_pair(graph, i - 1);
        node->timed = !is_empty(tensor->op) && ps_is_computed(tensor) && !node->fused_into_previous;
        graph->is_slowed[i] = r->inject_op[0] && is_named(tensor, r->inject_op);
    }
}

/* Which nodes report their end is not the same in every release: all of them did once; then those that compute
 * something; and now a norm and its weight report one.  The newest way is the first. */
typedef struct ps_way {
    bool fuses_pairs, skips_empty;
} ps_way;

static const ps_way ways[] = {{true, true}, {false, true}, {false, false}};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Where nodes that nobody computes end a graph, a thread that is done with the last operator meets the barrier behind it
 * and then that at the end of the graph; otherwise they are one. */
static int32_t waits_twice(const ps_graph *graph, ps_way way) {
    int32_t last = graph->n_nodes - 1;
    while (last >= 0 && !graph->nodes[last].timed && !graph->nodes[last].fused_into_previous) {
        last--;
    }
    bool is_at_the_end = last == graph->n_nodes - 1;
    return !way.skips_empty || is_at_the_end || last < 0 ? -1 : last - graph->nodes[last].fused_into_previous;
}

static void read_reports(ps_graph *graph, ps_way way) {
    uint32_t n_operators = 0;
    graph->n_reports = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const ps_node *node = &graph->nodes[i];
        bool is_last = i + 1 == graph->n_nodes || !graph->nodes[i + 1].fused_into_previous;
        bool is_part = node->timed || node->fused_into_previous;
        n_operators += is_part && is_last;
        if (is_part ? is_last || !way.fuses_pairs : !way.skips_empty) {
            graph->reports[graph->n_reports++] = (ps_report){
                .index = !is_part ? PS_EVENT_NOTHING : is_last ? n_operators : PS_REPORT_OF_A_PART,
                .is_slowed = is_part && graph->is_slowed[i - node->fused_into_previous] &&
                             (way.fuses_pairs || !node->fused_into_previous),
            };
        }
    }
    graph->waits_twice = waits_twice(graph, way);
}

void ps_graphs_settle(ps_graph *graph, uint32_t n_reports) {
    graph->is_settled = true;
    for (int32_t i = 0; i < N_WAYS; i++) {
        read_reports(graph, ways[i]);
        if (graph->n_reports == n_reports) {
            return;
        }
    }
    read_reports(graph, ways[0]); /* which does not fit, and Python says so */
}

static bool fill_graph(ps_recorder *r, ps_graph *graph) {
    graph->nodes = (ps_node *)calloc(r->n_asked, sizeof(ps_node));
    graph->addresses = (const struct ggml_tensor **)calloc(r->n_asked, sizeof(*graph->addresses));
    graph->reports = (ps_report *)calloc(r->n_asked, sizeof(*graph->reports));
    graph->is_slowed = (uint8_t *)calloc(r->n_asked, 1);
    if (!graph->nodes || !graph->addresses || !graph->reports || !graph->is_slowed) {
        return false;
    }
    for (uint32_t i = 0; i < r->n_asked; i++) {
        copy_node(&graph->nodes[i], r->asked[i]);
        graph->addresses[i] = r->asked[i];
    }
    mark_operators(r, graph);
    read_reports(graph, ways[0]);
    return true;
}

static void free_graph(ps_graph *graph) {
    free(graph->nodes);
    free(graph->addresses);
    free(graph->reports);
    free(graph->is_slowed);
    memset(graph, 0, sizeof(*graph));
}

static int32_t add_graph(ps_recorder *r) {
    if (r->n_graphs == MAX_GRAPHS) {
        r->n_lost_graphs++;
        return -1;
    }
    ps_graph *graph = &r->graphs[r->n_graphs];
    graph->hash = r->hash;
    graph->n_nodes = (int32_t)r->n_asked;
    if (!fill_graph(r, graph)) {
        free_graph(graph);
        r->n_lost_graphs++;
        return -1;
    }
    r->may_be_last[r->n_asked - 1] = 1;
    return r->n_graphs++;
}

int32_t ps_graphs_find(ps_recorder *r) {
    for (int32_t i = r->n_graphs - 1; i >= 0; i--) {
        if (r->graphs[i].hash == r->hash && r->graphs[i].n_nodes == (int32_t)r->n_asked) {
            return i;
        }
    }
    return add_graph(r);
}

bool ps_recorder_add_graph(ps_recorder *r, struct ggml_tensor *const *nodes, int32_t n_nodes) {
    if (n_nodes < 1 || n_nodes > MAX_NODES) {
        return false;
    }
    for (int32_t i = 0; i < n_nodes; i++) {
        r->asked[i] = nodes[i];
    }
    r->n_asked = (uint32_t)n_nodes;
    return add_graph(r) >= 0;
}

void ps_graphs_free(ps_recorder *r) {
    for (int32_t i = 0; i < r->n_graphs; i++) {
        free_graph(&r->graphs[i]);
    }
    free(r->graphs);
}

int32_t ps_recorder_n_graphs(const ps_recorder *r) { return r->n_graphs; }

const ps_node *ps_recorder_nodes(const ps_recorder *r, int32_t graph, int32_t *n_nodes) {
    if (graph < 0 || graph >= r->n_graphs) {
        *n_nodes = 0;
        return NULL;
    }
    *n_nodes = r->graphs[graph].n_nodes;
    return r->graphs[graph].nodes;
}
