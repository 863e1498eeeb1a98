#include "perfsuite/probe.h"

const char *ps_status_text(int status) {
    switch (status) {
    case PS_OK:
        return "done";
    case PS_BAD_ARGUMENT:
        return "an argument is out of its range";
    case PS_NO_MEMORY:
        return "memory could not be allocated";
    case PS_NO_THREAD:
        return "a thread could not be started";
    case PS_NOT_PINNED:
        return "a thread could not be pinned to its processor";
    case PS_TIMEOUT:
        return "a thread waited for the others beyond the limit";
    case PS_UNSUPPORTED:
        return "the processor has no such instructions";
    default:
        return "an unknown status";
    }
}
