/* What every native probe returns. */
#ifndef PERFSUITE_PROBE_STATUS_H
#define PERFSUITE_PROBE_STATUS_H

enum ps_status {
    PS_OK = 0,
    PS_BAD_ARGUMENT = 1,
    PS_NO_MEMORY = 2,
    PS_NO_THREAD = 3,
    PS_NOT_PINNED = 4,
    PS_TIMEOUT = 5,
    PS_UNSUPPORTED = 6,
};

#endif
