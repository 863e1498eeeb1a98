/* What a desk has to know to follow llama.cpp on this device, and the eBPF recorder that it starts here. */
#ifndef PERFSUITE_AGENT_RECORDERS_H
#define PERFSUITE_AGENT_RECORDERS_H

#include "left_files.h"
#include "link.h"
#include "places.h"
#include "workers.h"

namespace perfsuite {

/* What the kernel has for the eBPF recorder, and the programs that may be started: raw, for the desk judges it. */
Value recorder_facts(Link &link, const Places &places);

/* Starts one of these programs: `program`, `arguments`, and `log`, a name in the folder of the run.  Returns the number by
 * which it is told and heard. */
Value start_recorder(ToldWorkers &workers, const LeftFiles &files, const Places &places, const Value &asked);

/* What a llama.cpp tells of itself in a process of its own: `options` of the worker, `features` to ask for.  Returns how
 * that ended, with what was printed as its `output`. */
Value describe_engine(Link &link, const Start &start, const Value &asked);

} // namespace perfsuite

#endif
