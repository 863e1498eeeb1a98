/* One recording: from the header of the log to its end. */
#ifndef PERFSUITE_BPF_SESSION_H
#define PERFSUITE_BPF_SESSION_H

#include "buffers.h"
#include "floor.h"
#include "log_out.h"
#include "target.h"

enum { PS_SEEN_TIDS = 4096, PS_COMMAND_BYTES = 64 };

typedef struct ps_session {
    const ps_options *options;
    ps_target target;
    ps_probes probes;
    ps_buffers buffers;
    ps_log_out out;
    ps_floor floor;
    int64_t switched_ns; /* when levels were switched last */
    uint64_t told_lost;
    uint32_t seen_tids[PS_SEEN_TIDS];
    char command[PS_COMMAND_BYTES]; /* what has come of a line */
    uint32_t n_command;
    int64_t checked_user_ns;
} ps_session;

/* Attaches, says `ready` on standard error, and records until told to end, until the target has ended or executed
 * another program, or until the log can be written no more. False with the reason where it could not begin or had to break off. */
bool ps_session_run(ps_session *session, ps_problem *problem);

#endif
