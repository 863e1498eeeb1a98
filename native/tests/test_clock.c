#include "test_clock.h"
