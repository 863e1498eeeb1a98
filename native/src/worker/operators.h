/* Single operators of ggml, timed one after the other. */
#ifndef PERFSUITE_WORKER_OPERATORS_H
#define PERFSUITE_WORKER_OPERATORS_H

#include <string>

#include "library.h"
#include "message.h"

namespace perfsuite {

/* The median times of a plan's shapes, ns, in their order; of an `OperatorsPlan`'s arguments.
 *
 * Raises an "EngineError" where ggml has no such operator or type, or no memory for it. */
Value::List operator_times(const Library &library, const Value &plan);

/* A type as ggml's function of this name spells it: the k of k-quants is a capital. */
std::string ggml_type_name(std::string name);

} // namespace perfsuite

#endif
