/* Devices, and readings of their clocks between two of the host's. */
#include "device_clock.h"

#include <stdio.h>

#include "log_writer.h"
#include "thread_ring.h"

enum { MAX_DEVICES = 64 };

typedef struct known_device {
    cl_device_id handle;
    uint32_t n_queues; /* living ones: the handle is valid while there are some */
    bool has_timer;
} known_device;

pthread_mutex_t ps_cl_device_lock = PTHREAD_MUTEX_INITIALIZER;
static known_device devices[MAX_DEVICES];
static uint32_t n_devices;

static void ask(cl_device_id device, cl_device_info name, char *text, size_t bytes) {
    if (ps_cl_below.clGetDeviceInfo(device, name, bytes, text, NULL) != CL_SUCCESS) {
        text[0] = '\0';
    }
}

static void note_device(cl_device_id device, uint32_t id) {
    char platform_name[256] = "", name[256], version[256], text[832];
    cl_platform_id platform = NULL;
    size_t resolution_ns = 0;
    ps_cl_below.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
    if (platform) {
        ps_cl_below.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(platform_name), platform_name, NULL);
    }
    ask(device, CL_DEVICE_NAME, name, sizeof(name));
    ask(device, CL_DRIVER_VERSION, version, sizeof(version));
    ps_cl_below.clGetDeviceInfo(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof(resolution_ns), &resolution_ns,
                                NULL);
    snprintf(text, sizeof(text), "%s\t%s\t%s\t%zu", platform_name, name, version, resolution_ns);
    ps_cl_log_text(PS_CL_DEVICE, id, text);
}

/* Under the lock: the device lives. */
static bool read_clock(uint32_t id) {
    cl_ulong device_ns = 0, host_ns = 0;
    int64_t before_ns = ps_now_ns();
    cl_int status = ps_cl_below.clGetDeviceAndHostTimer
                        ? ps_cl_below.clGetDeviceAndHostTimer(devices[id - 1].handle, &device_ns, &host_ns)
                        : CL_INVALID_OPERATION;
    int64_t after_ns = ps_now_ns();
    if (status != CL_SUCCESS || device_ns == 0) {
        return false;
    }
    ps_cl_clock record = {.prefix = {PS_CL_CLOCK, sizeof(record)},
                          .device = id,
                          .source = PS_CL_CLOCK_TIMER,
                          .device_ns = (int64_t)device_ns,
                          .host_before_ns = before_ns,
                          .host_after_ns = after_ns};
    ps_cl_log_note(&record, sizeof(record));
    return true;
}

/* Under the lock. */
static uint32_t find_or_add(cl_device_id device) {
    for (uint32_t i = 0; i < n_devices; i++) {
        if (devices[i].handle == device) {
            return i + 1;
        }
    }
    if (n_devices == MAX_DEVICES) {
        return 0;
    }
    devices[n_devices++] = (known_device){.handle = device};
    note_device(device, n_devices);
    return n_devices;
}

uint32_t ps_cl_device_open(cl_device_id device) {
    pthread_mutex_lock(&ps_cl_device_lock);
    uint32_t id = find_or_add(device);
    if (id) {
        devices[id - 1].n_queues++;
        devices[id - 1].has_timer = read_clock(id);
    }
    pthread_mutex_unlock(&ps_cl_device_lock);
    return id;
}

void ps_cl_device_close(uint32_t id) {
    pthread_mutex_lock(&ps_cl_device_lock);
    if (id && devices[id - 1].n_queues) {
        if (devices[id - 1].has_timer) {
            read_clock(id);
        }
        devices[id - 1].n_queues--;
    }
    pthread_mutex_unlock(&ps_cl_device_lock);
}

bool ps_cl_device_has_timer(uint32_t id) {
    pthread_mutex_lock(&ps_cl_device_lock);
    bool has_timer = id && devices[id - 1].has_timer;
    pthread_mutex_unlock(&ps_cl_device_lock);
    return has_timer;
}

void ps_cl_clock_read_all(void) {
    pthread_mutex_lock(&ps_cl_device_lock);
    for (uint32_t i = 0; i < n_devices; i++) {
        if (devices[i].n_queues && devices[i].has_timer) {
            read_clock(i + 1);
        }
    }
    pthread_mutex_unlock(&ps_cl_device_lock);
}

void ps_cl_clock_mark(ps_cl_queue_state *queue) {
    bool is_wanted = queue->is_profiled && !ps_cl_device_has_timer(queue->device) &&
                     !(atomic_load(&ps_cl_gate) & PS_CL_GATE_PROFILE_ONLY);
    ps_cl_thread *thread = is_wanted ? ps_cl_this_thread() : NULL;
    ps_cl_entry *entry = thread ? ps_cl_ring_slot(thread) : NULL;
    if (!entry) {
        return;
    }
    cl_event event = NULL;
    int64_t before_ns = ps_now_ns();
    cl_int status = ps_cl_below.clEnqueueMarkerWithWaitList
                        ? ps_cl_below.clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, &event)
                        : ps_cl_below.clEnqueueMarker(queue->handle, &event);
    int64_t after_ns = ps_now_ns();
    if (status != CL_SUCCESS || !event || !(entry = ps_cl_ring_slot(thread))) {
        if (event) {
            ps_cl_below.clReleaseEvent(event);
        }
        return;
    }
    *entry = (ps_cl_entry){.event = event, .queue = queue};
    entry->command.sequence = atomic_load(&ps_cl_next_sequence);
    entry->command.type = PS_CL_CLOCK_ENTRY;
    entry->command.host_start_ns = before_ns;
    entry->command.host_end_ns = after_ns;
    ps_cl_ring_publish(thread);
}
