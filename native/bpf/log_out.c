#define _GNU_SOURCE
#include "log_out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void ps_log_open(ps_log_out *out, int fd, int limit_ms) {
    struct stat status;
    out->fd = fd;
    out->limit_ms = limit_ms;
    out->may_block = fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
}

/* A pipe that can be written to takes PIPE_BUF bytes without waiting; a reader that takes nothing is given up. */
static ssize_t write_some(const ps_log_out *out, const char *bytes, size_t n_bytes) {
    struct pollfd room = {.fd = out->fd, .events = POLLOUT};
    if (!out->may_block) {
        return write(out->fd, bytes, n_bytes);
    }
    int n_ready = poll(&room, 1, out->limit_ms);
    if (n_ready <= 0) {
        errno = n_ready ? errno : ETIMEDOUT;
        return -1;
    }
    return write(out->fd, bytes, n_bytes < PIPE_BUF ? n_bytes : PIPE_BUF);
}

bool ps_log_flush(ps_log_out *out) {
    for (uint32_t n_done = 0; !out->error && n_done < out->n_buffered;) {
        ssize_t n = write_some(out, out->buffer + n_done, out->n_buffered - n_done);
        if (n > 0) {
            n_done += (uint32_t)n;
        } else if (n == 0 || errno != EINTR) {
            out->error = n == 0 ? EIO : errno;
        }
    }
    out->n_buffered = 0;
    return !out->error;
}

bool ps_log_write(ps_log_out *out, const void *bytes, uint32_t n_bytes) {
    if (n_bytes > sizeof(out->buffer)) {
        out->error = EMSGSIZE;
    }
    if (out->error || (out->n_buffered + n_bytes > sizeof(out->buffer) && !ps_log_flush(out))) {
        return false;
    }
    if (n_bytes) {
        memcpy(out->buffer + out->n_buffered, bytes, n_bytes);
    }
    out->n_buffered += n_bytes;
    return true;
}

bool ps_log_record(ps_log_out *out, ps_bpf_record record, const void *content, uint16_t n_bytes) {
    record.bytes = (uint16_t)(sizeof(record) + n_bytes);
    record.ns = record.ns ? record.ns : ps_now_ns();
    return ps_log_write(out, &record, sizeof(record)) && ps_log_write(out, content, n_bytes);
}
