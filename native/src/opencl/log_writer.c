/* The log file.  Notes (names, devices, queues, clock readings) come from any thread; commands from the drain alone. */
#define _GNU_SOURCE
#include "log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Static_assert(sizeof(ps_cl_command) == 200 && sizeof(ps_cl_log_header) == 24, "the log's layout");

enum { BUFFER_BYTES = 1 << 18, MAX_NAMES = 1 << 16, MAX_LOGS = 1000 };

static char folder[PATH_MAX - 64];
static int file = -1;
static off_t good_bytes; /* the file holds whole records up to here */
static bool has_complained;

pthread_mutex_t ps_cl_log_lock = PTHREAD_MUTEX_INITIALIZER; /* of the notes and names */
static char *notes, *taken;
static size_t notes_bytes, notes_capacity, taken_bytes, taken_capacity;
static char **names;
static uint32_t n_names, names_capacity;

static char buffer[BUFFER_BYTES]; /* the drain's */
static size_t buffered_bytes;
static uint64_t n_buffered, n_recorded;
static _Atomic uint64_t n_unwritten;

/* ---- the file --------------------------------------------------------------------------------------------------- */

bool ps_cl_log_is_possible(const char *asked) {
    if (!asked || !*asked) {
        ps_cl_say("PERFSUITE_OPENCL_LOG names no folder: nothing is recorded");
        return false;
    }
    if (strlen(asked) >= sizeof(folder)) {
        ps_cl_say("PERFSUITE_OPENCL_LOG is too long: nothing is recorded");
        return false;
    }
    strcpy(folder, asked);
    return true;
}

static bool write_all(const char *from, size_t bytes) {
    while (bytes) {
        ssize_t done = write(file, from, bytes);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        from += done;
        bytes -= (size_t)done;
    }
    return true;
}

/* Writes whole records or none. */
static bool append(const char *from, size_t bytes) {
    if (file < 0) {
        return false;
    }
    if (write_all(from, bytes)) {
        good_bytes += (off_t)bytes;
        return true;
    }
    if (!has_complained) {
        has_complained = true;
        ps_cl_say("the log in %s cannot be written (%s): commands are lost", folder, strerror(errno));
    }
    if (ftruncate(file, good_bytes) != 0 || lseek(file, good_bytes, SEEK_SET) < 0) {
        close(file);
        file = -1;
    }
    return false;
}

/* A process that execs another program keeps its number: what the first one left stays, and the next is -2, -3 ... */
static int make_new(char *path, size_t path_bytes) {
    int made = -1;
    errno = EEXIST;
    for (int i = 1; made < 0 && errno == EEXIST && i <= MAX_LOGS; i++) {
        char turn[16] = "";
        if (i > 1) {
            snprintf(turn, sizeof(turn), "-%d", i);
        }
        snprintf(path, path_bytes, "%s/opencl-%ld%s.log", folder, (long)getpid(), turn);
        made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    return made;
}

bool ps_cl_log_open(void) {
    char path[PATH_MAX];
    if (file >= 0) {
        close(file);
    }
    file = make_new(path, sizeof(path));
    if (file < 0) {
        ps_cl_say("%s cannot be made (%s): nothing is recorded", path, strerror(errno));
        return false;
    }
    ps_cl_log_header header = {.magic = PS_CL_LOG_MAGIC,
                               .header_bytes = sizeof(header),
                               .pid = (uint32_t)getpid(),
                               .opened_ns = ps_now_ns()};
    good_bytes = 0;
    return append((const char *)&header, sizeof(header));
}

/* ---- notes ------------------------------------------------------------------------------------------------------ */

/* Under the lock. */
static void note(const void *record, size_t bytes) {
    if (atomic_load(&ps_cl_gate) & PS_CL_GATE_PROFILE_ONLY) {
        return;
    }
    if (notes_bytes + bytes > notes_capacity) {
        size_t capacity = notes_capacity * 2 + bytes + 4096;
        char *grown = (char *)realloc(notes, capacity);
        if (!grown) {
            return;
        }
        notes = grown;
        notes_capacity = capacity;
    }
    memcpy(notes + notes_bytes, record, bytes);
    notes_bytes += bytes;
}

void ps_cl_log_note(const void *record, size_t bytes) {
    pthread_mutex_lock(&ps_cl_log_lock);
    note(record, bytes);
    pthread_mutex_unlock(&ps_cl_log_lock);
}

/* Under the lock. */
static void note_text(uint32_t kind, uint32_t id, const char *text) {
    size_t length = strlen(text), bytes = (sizeof(ps_cl_text) + length + 7) / 8 * 8;
    char *record = (char *)calloc(1, bytes);
    if (record) {
        ps_cl_text head = {.prefix = {kind, (uint32_t)bytes}, .id = id, .length = (uint32_t)length};
        memcpy(record, &head, sizeof(head));
        memcpy(record + sizeof(head), text, length);
        note(record, bytes);
        free(record);
    }
}

void ps_cl_log_text(uint32_t kind, uint32_t id, const char *text) {
    pthread_mutex_lock(&ps_cl_log_lock);
    note_text(kind, id, text);
    pthread_mutex_unlock(&ps_cl_log_lock);
}

/* Under the lock. */
static uint32_t add_name(const char *name) {
    if (n_names == names_capacity) {
        uint32_t capacity = names_capacity * 2 + 64;
        char **grown = (char **)realloc(names, capacity * sizeof(*names));
        if (!grown) {
            return 0;
        }
        names = grown;
        names_capacity = capacity;
    }
    char *kept = n_names < MAX_NAMES ? strdup(name) : NULL;
    if (!kept) {
        return 0;
    }
    names[n_names++] = kept;
    note_text(PS_CL_NAME, n_names, name);
    return n_names;
}

uint32_t ps_cl_log_name(const char *name) {
    pthread_mutex_lock(&ps_cl_log_lock);
    uint32_t id = 0;
    for (uint32_t i = 0; i < n_names && !id; i++) {
        id = strcmp(names[i], name) == 0 ? i + 1 : 0;
    }
    if (!id) {
        id = add_name(name);
    }
    pthread_mutex_unlock(&ps_cl_log_lock);
    return id;
}

const char *ps_cl_log_name_of(uint32_t id) {
    pthread_mutex_lock(&ps_cl_log_lock);
    const char *name = id && id <= n_names ? names[id - 1] : "";
    pthread_mutex_unlock(&ps_cl_log_lock);
    return name;
}

static void take_notes(void) {
    pthread_mutex_lock(&ps_cl_log_lock);
    char *swapped = taken;
    size_t capacity = taken_capacity;
    taken = notes;
    taken_bytes = notes_bytes;
    taken_capacity = notes_capacity;
    notes = swapped;
    notes_bytes = 0;
    notes_capacity = capacity;
    pthread_mutex_unlock(&ps_cl_log_lock);
}

/* Those that could not be written the last time come first: what follows them in the log refers to either. */
void ps_cl_log_write_notes(void) {
    if (taken_bytes && !append(taken, taken_bytes)) {
        return;
    }
    take_notes();
    if (taken_bytes && append(taken, taken_bytes)) {
        taken_bytes = 0;
    }
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

void ps_cl_log_flush(void) {
    if (buffered_bytes && append(buffer, buffered_bytes)) {
        n_recorded += n_buffered;
    } else if (buffered_bytes) {
        atomic_fetch_add(&n_unwritten, n_buffered);
    }
    buffered_bytes = 0;
    n_buffered = 0;
}

void ps_cl_log_command(const ps_cl_command *command) {
    if (buffered_bytes + sizeof(*command) > sizeof(buffer)) {
        ps_cl_log_flush();
    }
    memcpy(buffer + buffered_bytes, command, sizeof(*command));
    buffered_bytes += sizeof(*command);
    n_buffered += !(command->flags & PS_CL_REPLAYED);
}

uint64_t ps_cl_log_n_recorded(void) {
    return n_recorded;
}

uint64_t ps_cl_log_n_lost(void) {
    return atomic_load(&n_unwritten);
}

void ps_cl_log_close(const ps_cl_end *counts) {
    ps_cl_end end = *counts;
    end.prefix = (ps_cl_prefix){PS_CL_END, sizeof(end)};
    end.closed_ns = ps_now_ns();
    append((const char *)&end, sizeof(end));
    if (file >= 0) {
        close(file);
        file = -1;
    }
}
