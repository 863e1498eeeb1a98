/* Which OpenCL devices there are. */
#ifndef PERFSUITE_LAUNCHER_DEVICES_H
#define PERFSUITE_LAUNCHER_DEVICES_H

#include <string>

#include "../worker/message.h"
#include "opencl.h"

namespace perfsuite {

/* Every device of every platform: a list of `OpenClDevice.to_plain` (perfsuite/measure/opencl_platform.py).
 *
 * Raises a `Failure` with the remedy where there is none. */
Value::List described_devices(const OpenCl &cl);

/* Of each of them, in the same order, what it can do: a `DeviceLimits` (perfsuite/measure/launches/plan.py). */
Value::List device_limits(const OpenCl &cl);

/* A device as it is used. */
struct OpenClDevice {
    ClObject handle;
    std::string name; /* platform, device and driver, as messages name it */
};

/* The device of a plan, by its place; a `Failure` where another one is there by now. */
OpenClDevice planned_device(const OpenCl &cl, const Value &plan);

} // namespace perfsuite

#endif
