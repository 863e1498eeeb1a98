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

/* A command without END is not complete, or failed, or its queue has no profiling. */
static bool read_end(ps_cl_entry *entry) {
    ps_cl_command *command = &entry->command;
    if (read_time(entry->event, CL_PROFILING_COMMAND_END, &command->end_ns)) {
        return true;
    }
    cl_int status = CL_COMPLETE;
    ps_cl_below.clGetEventInfo(entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    if (status > CL_COMPLETE) {
        return false;
    }
    command->status = status;
    if (status < CL_COMPLETE || !read_time(entry->event, CL_PROFILING_COMMAND_END, &command->end_ns)) {
        command->flags |= PS_CL_NO_PROFILE;
    }
    return true;
}

bool ps_cl_complete(ps_cl_entry *entry) {
    ps_cl_command *command = &entry->command;
    if (!entry->event) {
        return true;
    }
    if (!read_end(entry)) {
        return false;
    }
    if (!(command->flags & PS_CL_NO_PROFILE)) {
        read_time(entry->event, CL_PROFILING_COMMAND_QUEUED, &command->queued_ns);
        read_time(entry->event, CL_PROFILING_COMMAND_SUBMIT, &command->submit_ns);
        read_time(entry->event, CL_PROFILING_COMMAND_START, &command->start_ns);
    }
    ps_cl_drop_event(entry);
    return true;
}
