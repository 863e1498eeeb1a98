#include "perfsuite/probe.h"
#include "perfsuite/threads.h"
#include "test_clock.h"
