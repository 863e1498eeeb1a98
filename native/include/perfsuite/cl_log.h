/* The log that the OpenCL layer writes: one file a process, a header and then records in the order of their writing.
 *
 * Everything is little-endian and in the layout of these structs, which have no padding that is not named.  A record
 * begins with its kind and its length in bytes, prefix included, a multiple of 8; who does not know a kind skips it.  A
 * file that ends within a record, or without a `PS_CL_END`, is of a process that was killed: what stands before counts.
 * Host times are CLOCK_MONOTONIC in ns; device times are what the driver's profiling gives, in ns of its own clock.
 * perfsuite/records/opencl_log_file.py reads it.
 */
#ifndef PERFSUITE_CL_LOG_H
#define PERFSUITE_CL_LOG_H

#include <stdint.h>

#define PS_CL_LOG_MAGIC "PSCLLOG1"
#define PS_CL_MAX_BUFFERS 8

typedef struct ps_cl_log_header {
    char magic[8];
    uint32_t header_bytes; /* of this struct: records begin there */
    uint32_t pid;
    int64_t opened_ns; /* host time */
} ps_cl_log_header;

typedef enum ps_cl_record_kind {
    PS_CL_NAME = 1,    /* ps_cl_text: the name of a kernel; the ids count from 1 */
    PS_CL_DEVICE = 2,  /* ps_cl_text: 'platform name\tdevice name\tdriver version\tresolution of its profiling timer in
                          ns'; the ids count from 1 */
    PS_CL_QUEUE = 3,   /* ps_cl_queue */
    PS_CL_CLOCK = 4,   /* ps_cl_clock */
    PS_CL_COMMAND = 5, /* ps_cl_command */
    PS_CL_LOSS = 6,    /* ps_cl_loss */
    PS_CL_END = 7,     /* ps_cl_end: the process ended in order */
} ps_cl_record_kind;

typedef struct ps_cl_prefix {
    uint32_t kind; /* a ps_cl_record_kind */
    uint32_t bytes;
} ps_cl_prefix;

typedef struct ps_cl_text {
    ps_cl_prefix prefix;
    uint32_t id;
    uint32_t length;
    /* `length` bytes of UTF-8 follow, and zeros up to the end of the record. */
} ps_cl_text;

enum { PS_CL_QUEUE_OUT_OF_ORDER = 1, PS_CL_QUEUE_CALLER_PROFILES = 2, PS_CL_QUEUE_ON_DEVICE = 4 };

typedef struct ps_cl_queue {
    ps_cl_prefix prefix;
    uint32_t id; /* counts from 1 */
    uint32_t context; /* counts from 1 */
    uint32_t device;
    uint32_t flags;
} ps_cl_queue;

enum { PS_CL_CLOCK_TIMER = 1, PS_CL_CLOCK_MARKER = 2 };

/* One reading of a device's clock.  TIMER: clGetDeviceAndHostTimer gave `device_ns` between the two host times.
 * MARKER: an empty command was QUEUED at `device_ns`, and its enqueue call took from the one to the other. */
typedef struct ps_cl_clock {
    ps_cl_prefix prefix;
    uint32_t device;
    uint32_t source;
    int64_t device_ns;
    int64_t host_before_ns;
    int64_t host_after_ns;
} ps_cl_clock;

typedef enum ps_cl_command_type {
    PS_CL_KERNEL = 1,
    PS_CL_READ = 2,  /* device to host: buffers, rectangles, images */
    PS_CL_WRITE = 3, /* host to device */
    PS_CL_COPY = 4,  /* device to device: buffers, images, and from one to the other */
    PS_CL_FILL = 5,
    PS_CL_MAP = 6,
    PS_CL_UNMAP = 7,
    PS_CL_MIGRATE = 8,
    PS_CL_MARKER = 9, /* markers and barriers */
    PS_CL_SVM = 10,   /* copies, fills, maps of shared virtual memory */
    PS_CL_NATIVE = 11,
    PS_CL_OTHER = 12,
} ps_cl_command_type;

enum {
    PS_CL_BLOCKING = 1,       /* the call returned when the command was complete */
    PS_CL_CALLERS_EVENT = 2,  /* the caller asked for an event */
    PS_CL_REPLAYED = 4,       /* the layer's own duplicate, not the program's command */
    PS_CL_WAITS = 8,          /* it waits for a list of events */
    PS_CL_NO_PROFILE = 16,    /* the driver gave none of the times; a single one that it did not give is 0 */
};

typedef struct ps_cl_command {
    ps_cl_prefix prefix;
    uint64_t sequence; /* counts the program's commands of all queues from 0, in the order of their enqueue calls; one
                          that the driver refused while another thread enqueued leaves a gap; a duplicate has its
                          original's */
    int64_t host_start_ns, host_end_ns; /* around the driver's enqueue call */
    int64_t queued_ns, submit_ns, start_ns, end_ns; /* of the device's clock */
    uint32_t queue, name; /* name: 0 where it is no kernel */
    uint32_t thread; /* the kernel's id of the thread (gettid) */
    int32_t status;  /* CL_COMPLETE, or the error that the command ended with */
    uint16_t type, flags;
    uint16_t work_dim, n_buffers; /* buffers and images among the kernel's arguments, those beyond the array included */
    uint64_t global[3]; /* work items; 1 from work_dim on */
    uint64_t moved_bytes; /* by copies, fills and maps, where the call says it; 0 for kernels */
    uint32_t local[3];  /* 0 where the driver chose */
    uint32_t reserved;
    uint64_t buffer_bytes[PS_CL_MAX_BUFFERS]; /* sizes of the first of them, in the order of the arguments */
} ps_cl_command;

/* Commands of which nothing else is known: the thread's ring was full; or, with thread 0, they were on their way when
 * memory or the disk ran out. */
typedef struct ps_cl_loss {
    ps_cl_prefix prefix;
    uint32_t thread;
    uint32_t reserved;
    uint64_t n_commands;
} ps_cl_loss;

typedef struct ps_cl_end {
    ps_cl_prefix prefix;
    uint64_t n_commands;   /* enqueued without an error, the layer's own left out */
    uint64_t n_recorded;   /* written to this file */
    uint64_t n_lost;       /* n_commands = n_recorded + n_lost + n_unfinished */
    uint64_t n_unfinished; /* not complete when the process ended */
    int64_t closed_ns;
} ps_cl_end;

#endif
