/* The log goes to a file and to a pipe alike; a reader that reads no more is given up after a time, not waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/log_out.h"
#include "check.h"

enum { LIMIT_MS = 50, N_RECORDS = 100000 };

static ps_log_out out;

static void begin(int fd) {
    memset(&out, 0, sizeof(out));
    ps_log_open(&out, fd, LIMIT_MS);
}

static bool write_much(void) {
    bool works = true;
    for (int i = 0; works && i < N_RECORDS; i++) {
        works = ps_log_record(&out, (ps_bpf_record){.kind = PS_BPF_BARRIER, .ns = i + 1}, NULL, 0);
    }
    return works && ps_log_flush(&out);
}

TEST(a_file_takes_it_all) {
    int fd = memfd_create("log", MFD_CLOEXEC);
    ps_bpf_record last;
    begin(fd);
    CHECK(write_much());
    CHECK(lseek(fd, 0, SEEK_END) == (off_t)(N_RECORDS * sizeof(last)));
    CHECK(pread(fd, &last, sizeof(last), (off_t)((N_RECORDS - 1) * sizeof(last))) == (ssize_t)sizeof(last));
    CHECK(last.ns == N_RECORDS && last.bytes == sizeof(last));
    close(fd);
}

TEST(a_reader_that_takes_nothing_is_given_up) {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    char read_back[5000];
    CHECK(pipe(ends) == 0);
    begin(ends[1]);
    memset(read_back, 7, sizeof(read_back));
    CHECK(ps_log_write(&out, read_back, sizeof(read_back)) && ps_log_flush(&out));
    CHECK(read(ends[0], read_back, sizeof(read_back)) == (ssize_t)sizeof(read_back) && read_back[4999] == 7);
    CHECK(!write_much() && out.error == ETIMEDOUT);
    CHECK(!ps_log_write(&out, "x", 1) && out.error == ETIMEDOUT);
    close(ends[0]);
    begin(ends[1]);
    CHECK(ps_log_write(&out, "x", 1) && !ps_log_flush(&out) && out.error == EPIPE);
    close(ends[1]);
}
