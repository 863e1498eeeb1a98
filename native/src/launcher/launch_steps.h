/* The steps of a plan of launches, and what they came to. */
#ifndef PERFSUITE_LAUNCHER_LAUNCH_STEPS_H
#define PERFSUITE_LAUNCHER_LAUNCH_STEPS_H

#include "../worker/message.h"
#include "opencl.h"

namespace perfsuite {

/* Takes the steps of a `LaunchesPlan` (perfsuite/measure/launches/plan.py) one by one.
 *
 * Returns {"steps": [...]}, an answer a step; or {"unbuilt": {"launch": place, "log": text}} for the first launch whose
 * program does not build.  Raises a `Failure` that names the launch and the device where OpenCL refuses anything. */
Value taken_steps(const OpenCl &cl, const Value &plan);

} // namespace perfsuite

#endif
