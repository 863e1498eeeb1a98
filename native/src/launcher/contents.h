/* What buffers hold before a launch, drawn from a seed: the other half of perfsuite/measure/launches/contents.py. */
#ifndef PERFSUITE_LAUNCHER_CONTENTS_H
#define PERFSUITE_LAUNCHER_CONTENTS_H

#include <string>

#include "../worker/message.h"

namespace perfsuite {

/* The bytes of a `Content` of a plan; a `Failure` where it cannot be drawn. */
std::string drawn_bytes(const Value &content);

} // namespace perfsuite

#endif
