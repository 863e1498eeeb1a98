/* The log file. */
#ifndef PERFSUITE_OPENCL_LOG_WRITER_H
#define PERFSUITE_OPENCL_LOG_WRITER_H

#include "layer.h"

extern pthread_mutex_t ps_cl_log_lock, ps_cl_device_lock; /* for fork */

bool ps_cl_log_is_possible(const char *folder);
bool ps_cl_log_open(void);
/* From any thread: a record that is written before the commands that follow. */
void ps_cl_log_note(const void *record, size_t bytes);
uint32_t ps_cl_log_name(const char *name); /* id of a kernel's name, made where it is new */
const char *ps_cl_log_name_of(uint32_t id);
void ps_cl_log_text(uint32_t kind, uint32_t id, const char *text);
/* From the drain alone. */
void ps_cl_log_write_notes(void);
void ps_cl_log_command(const ps_cl_command *command);
void ps_cl_log_flush(void);
void ps_cl_log_close(const ps_cl_end *counts); /* prefix and time are filled in */
uint64_t ps_cl_log_n_recorded(void); /* of the program's commands */
uint64_t ps_cl_log_n_lost(void);     /* that could not be written */

#endif
