/* The process that is recorded: held by a pidfd, and of the user's own. */
#ifndef PERFSUITE_BPF_TARGET_H
#define PERFSUITE_BPF_TARGET_H

#include <stdint.h>

#include "problem.h"

typedef struct ps_target {
    int32_t pid;
    int pidfd; /* readable once the process has ended */
} ps_target;

bool ps_open_target(int32_t pid, ps_target *target, ps_problem *problem);

/* All four user ids of the process (real, effective, saved, file system) are this process's own real one. */
bool ps_check_user(const ps_target *target, ps_problem *problem);

bool ps_is_alive(const ps_target *target);

/* Reads the four ids out of the text of /proc/PID/status. */
bool ps_parse_uids(const char *status, uint32_t uids[4]);

/* The name of one of its threads; false where it has gone. */
bool ps_thread_name(const ps_target *target, uint32_t tid, char name[16]);

#endif
