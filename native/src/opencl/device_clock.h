/* Devices, and readings of their clocks. */
#ifndef PERFSUITE_OPENCL_DEVICE_CLOCK_H
#define PERFSUITE_OPENCL_DEVICE_CLOCK_H

#include "layer.h"
#include "objects.h"

uint32_t ps_cl_device_open(cl_device_id device); /* id in the log, and one more living queue */
void ps_cl_device_close(uint32_t device);        /* one queue less */
bool ps_cl_device_has_timer(uint32_t device);
void ps_cl_clock_read_all(void);
void ps_cl_clock_mark(ps_cl_queue_state *queue); /* an empty command, where the device has no timer */

#endif
