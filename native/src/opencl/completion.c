#include "completion.h"

void ps_cl_drop_event(ps_cl_entry *entry) {
    if (entry->event && entry->command.flags & PS_CL_CALLERS_EVENT) {
        ps_cl_event_let_go(entry->event);
    } else if (entry->event) {
        ps_cl_below.clReleaseEvent(entry->event);
    }
    entry->event = NULL;
}

static bool read_time(cl_event event, cl_profiling_info name, int64_t *time_ns) {
    cl_ulong value = 0;
    cl_int status = ps_cl_below.clGetEventProfilingInfo(event, name, sizeof(value), &value, NULL);
    *time_ns = status == CL_SUCCESS ? (int64_t)value : 0;
    return status == CL_SUCCESS;
}

static bool is_on_its_way(const ps_cl_entry *entry, cl_int *status) {
    *status = CL_COMPLETE;
    ps_cl_below.clGetEventInfo(entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(*status), status, NULL);
    return *status > CL_COMPLETE;
}

/* A command without END, or with one of 0, is not complete, or failed, or its driver does not give it. */
static bool read_end(ps_cl_entry *entry, bool *has_time) {
    ps_cl_command *command = &entry->command;
    *has_time = read_time(entry->event, CL_PROFILING_COMMAND_END, &command->end_ns);
    if (*has_time && command->end_ns) {
        return true;
    }
    cl_int status;
    if (is_on_its_way(entry, &status)) {
        return false;
    }
    command->status = status;
    *has_time = read_time(entry->event, CL_PROFILING_COMMAND_END, &command->end_ns);
    return true;
}

bool ps_cl_complete(ps_cl_entry *entry) {
    ps_cl_command *command = &entry->command;
    bool has_time;
    if (!entry->event) {
        return true;
    }
    if (!read_end(entry, &has_time)) {
        return false;
    }
    if (command->status >= CL_COMPLETE) {
        has_time |= read_time(entry->event, CL_PROFILING_COMMAND_QUEUED, &command->queued_ns);
        has_time |= read_time(entry->event, CL_PROFILING_COMMAND_SUBMIT, &command->submit_ns);
        has_time |= read_time(entry->event, CL_PROFILING_COMMAND_START, &command->start_ns);
    }
    if (!has_time || command->status < CL_COMPLETE) {
        command->flags |= PS_CL_NO_PROFILE;
    }
    ps_cl_drop_event(entry);
    return true;
}
