// Any operator of ggml's, built of its tensors and parameters alone.

#ifndef PERFSUITE_ENGINE_OPERATOR_TENSORS_H
#define PERFSUITE_ENGINE_OPERATOR_TENSORS_H

#include <cstddef>
#include <random>
#include <vector>

#include "ggml.h"
#include "perfsuite/operator_bench.h"

namespace perfsuite {

// What an operator reads, without memory.
std::vector<ggml_tensor *> source_tensors(ggml_context *context, const ps_operator_spec &spec);

// The operator over its sources; a name that this release of ggml has not is a failure.
ggml_tensor *operator_of(ggml_context *context, const ps_operator_spec &spec,
                         const std::vector<ggml_tensor *> &sources);

// Bytes of everything that an operator reads and writes.
size_t operator_bytes(const ps_operator_spec &spec);

// Floats from -1 to 1.
std::vector<float> drawn_floats(int64_t n_values, std::mt19937 &random);

// Draws floats; whole numbers are those of experts in turn, or 0 where there are none.
void draw_tensor(ggml_tensor *tensor, const ps_operator_spec &spec, std::mt19937 &random);

} // namespace perfsuite

#endif
