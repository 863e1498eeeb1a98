/* The tensors that llama.cpp wants of a model, as a plan of the task "tensors" asks for them. */
#ifndef PERFSUITE_WORKER_MODEL_TENSORS_H
#define PERFSUITE_WORKER_MODEL_TENSORS_H

#include "library.h"
#include "message.h"

namespace perfsuite {

/* Under "tensors" rows of a name, its extents and whether the tensor is left out; and whether the graph is built. */
Value model_tensors(const Library &library, const Value &plan);

} // namespace perfsuite

#endif
