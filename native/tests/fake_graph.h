/* Graphs that nobody computes, and stand-ins for what the recorder calls of the library whose structs it reads. */
#ifndef PERFSUITE_TESTS_FAKE_GRAPH_H
#define PERFSUITE_TESTS_FAKE_GRAPH_H

#include <string.h>

#include "check.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "interposed.h"
#include "perfsuite/recorder.h"

enum { CAPACITY = 4096, MOST_NODES = 16, N_USUAL = 5, N_USUAL_TIMED = 3 };

typedef struct graph {
    struct ggml_tensor nodes[MOST_NODES];
    struct ggml_tensor weight;
    int n_nodes;
} graph;

/* What is opaque in the library. */
struct ggml_cgraph {
    struct ggml_tensor *nodes[MOST_NODES];
    int n_nodes;
};
struct ggml_backend {
    const char *name;
    ggml_backend_dev_t device;
    ggml_abort_callback ended; /* whom it tells of each node, and of what it tells it */
    void *ended_data;
};
struct ggml_backend_device {
    const char *name;
    enum ggml_backend_dev_type type;
};

void shape(struct ggml_tensor *tensor, int64_t n_columns, int64_t n_rows);
struct ggml_tensor *add(graph *g, enum ggml_op op, struct ggml_tensor *first, struct ggml_tensor *second);
void empty_graph(graph *g);
/* A product, a view of it, a norm, its product with the weight, and a sum: four operators in time, three of them timed
 * after fusing. */
void usual_graph(graph *g);

/* The recorder of a test, and a graph for it. */
extern ps_recorder *recorder;
extern graph g;

/* Opens a recorder in the place of the last test's, and makes the graph the usual one. */
void begin(ps_recorder_kind kind);
void begin_with(ps_recorder_kind kind, uint64_t capacity, int32_t n_threads);
/* As the scheduler asks, and as thread 0 ticks; no answer is yes. */
void ask_all(graph *asked);
void tick(int n_ticks);
void evaluate(graph *evaluated, int n_timed);
/* What is stored, which must be as much as is expected. */
const ps_event *stored(uint64_t n_expected);
const ps_node *nodes_of(int32_t index, int32_t n_expected);

#endif
