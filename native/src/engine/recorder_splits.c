/* The splits of the engine's graph: which backend is given which nodes, and which devices would refuse them. */
#include <stdio.h>
#include <string.h>

#include "ggml-backend.h"
#include "interposed.h"
#include "perfsuite/clock.h"
#include "recorder_state.h"
#include "release.h"

static bool is_accelerator(ggml_backend_dev_t device) {
    return ps_is_gpu(ggml_backend_dev_type(device));
}

/* The number of a name among those known, of which it becomes one. */
static int32_t number_of(ps_name *names, int32_t *n_names, int32_t most, const char *name) {
    ps_name wanted;
    snprintf(wanted.text, sizeof(wanted.text), "%s", name);
    for (int32_t i = 0; i < *n_names; i++) {
        if (strcmp(names[i].text, wanted.text) == 0) {
            return i;
        }
    }
    if (*n_names == most) {
        return most - 1;
    }
    names[*n_names] = wanted;
    return (*n_names)++;
}

/* Asks as the scheduler does before it places a node; what nobody computes is refused by nobody. */
static void ask_devices(ps_recorder *r, ps_node *nodes) {
    for (size_t d = 0; d < ggml_backend_dev_count(); d++) {
        ggml_backend_dev_t device = ggml_backend_dev_get(d);
        if (!is_accelerator(device)) {
            continue;
        }
        int32_t number = number_of(r->devices, &r->n_devices, MAX_DEVICES, ggml_backend_dev_name(device));
        for (uint32_t i = 0; i < r->n_asked; i++) {
            if (nodes[i].timed && !ggml_backend_dev_supports_op(device, r->asked[i])) {
                nodes[i].refused_by |= UINT32_C(1) << number;
            }
        }
    }
}

static int32_t graph_of(ps_recorder *r, int32_t backend, struct ggml_cgraph *graph) {
    int n_nodes = ggml_graph_n_nodes(graph);
    struct ggml_tensor **nodes = ggml_graph_nodes(graph);
    if (n_nodes < 1 || n_nodes > MAX_NODES) {
        r->n_lost_graphs += n_nodes > MAX_NODES;
        return -1;
    }
    r->hash = (uint64_t)backend;
    r->n_asked = (uint32_t)n_nodes;
    for (int i = 0; i < n_nodes; i++) {
        r->asked[i] = nodes[i];
        r->hash = ps_mix(r->hash, ps_signature(nodes[i]));
    }
    int32_t n_known = r->n_graphs;
    int32_t found = ps_graphs_find(r);
    if (found >= n_known) {
        ask_devices(r, r->graphs[found].nodes);
    }
    return found;
}

void ps_recorder_split_begin(struct ggml_backend *backend, struct ggml_cgraph *graph) {
    ps_recorder *r = ps_hooks_watched();
    int32_t number = number_of(r->backends, &r->n_backends, MAX_BACKENDS, ggml_backend_name(backend));
    r->current = graph_of(r, number, graph);
    void *splits = ps_store_room(r->splits, r->n_splits, 1, &r->splits_capacity, sizeof(*r->splits));
    r->splits = splits ? splits : r->splits;
    r->ring.dropped += !splits;
    r->current = splits ? r->current : -1;
    if (r->current >= 0) {
        r->splits[r->n_splits] = (ps_split){.graph = r->current, .backend = number, .launch_ticks = ps_ticks()};
    }
}

void ps_recorder_split_end(void) {
    ps_recorder *r = ps_hooks_watched();
    if (r->current >= 0) {
        r->splits[r->n_splits++].return_ticks = ps_ticks();
    }
}

const ps_split *ps_recorder_splits(const ps_recorder *r, uint64_t *n_splits) {
    *n_splits = r->n_splits;
    return r->splits;
}

const char *ps_recorder_backend_name(const ps_recorder *r, int32_t backend) {
    return backend >= 0 && backend < r->n_backends ? r->backends[backend].text : NULL;
}

const char *ps_recorder_device_name(const ps_recorder *r, int32_t device) {
    return device >= 0 && device < r->n_devices ? r->devices[device].text : NULL;
}
