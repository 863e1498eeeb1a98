/* Stand-ins for the functions of ggml that the engine library stands before, in a library that calls them as ggml does. */
#ifndef PERFSUITE_TESTS_FAKE_GGML_H
#define PERFSUITE_TESTS_FAKE_GGML_H

typedef struct fake_calls {
    int n_forward, n_fused, n_barriers, n_graphs;
} fake_calls;

/* How often ggml's own functions were reached. */
fake_calls fake_ggml_calls(void);
/* Gives a backend a graph of an operator and a fused pair, with a barrier behind each; returns the backend's status. */
int fake_ggml_compute(int thread, void *graph, void *tensor, void *norm, void *mul);

#endif
