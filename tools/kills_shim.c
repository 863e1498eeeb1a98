/* Preloaded below a command: counts its changes of files below a folder, and at one of them kills the process, or
 * refuses that one and all after it, or notes them all for a power cut.
 *
 * The process arms itself through `kills_watch`, or each process of a command is armed by PERFSUITE_KILLS_ROOT and
 * PERFSUITE_KILLS_JOURNAL in its environment.
 *
 * A journal's lines have fields that tabs part. Contents are noted when they are synced, in files beside the journal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum mode { OFF, COUNT, KILL, REFUSE, JOURNAL };
enum change { MAKES, WRITES, SYNCS, NAMES, REMOVES };

static int mode = OFF;
static long at;
static int refusal;
static atomic_long n_seen;
static char root[PATH_MAX];
static size_t root_length;
static char journal[PATH_MAX];
static int journal_file = -1;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int real_open(const char *path, int flags, mode_t bits) {
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    return real(path, flags, bits);
}

static ssize_t real_write(int file, const void *bytes, size_t length) {
    REAL(write);
    return real(file, bytes, length);
}

static void open_journal(void) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/journal", journal);
    journal_file = real_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* Arm this process: from now on changes below `folder` are counted from 1. */
void kills_watch(int wanted, const char *folder, long number, int error, const char *notes) {
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    snprintf(journal, sizeof journal, "%s", notes);
    at = number;
    refusal = error;
    atomic_store(&n_seen, 0);
    if (wanted == JOURNAL) open_journal();
    mode = wanted;
}

/* How many changes there were since. */
long kills_seen(void) { return atomic_load(&n_seen); }

__attribute__((constructor)) static void arm_by_environment(void) {
    const char *folder = getenv("PERFSUITE_KILLS_ROOT"), *notes = getenv("PERFSUITE_KILLS_JOURNAL");
    if (folder && notes) kills_watch(JOURNAL, folder, 0, 0, notes);
}

static int is_below(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == '\0');
}

/* Write the absolute path of a name below a folder, whose own links are followed; 0 where it is not watched. */
static int place(int folder, const char *name, char *found) {
    char joined[PATH_MAX * 2], above[PATH_MAX], link[64];
    if (mode == OFF || !name) return 0;
    if (name[0] == '/') {
        snprintf(joined, sizeof joined, "%s", name);
    } else {
        char base[PATH_MAX];
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            ssize_t length = readlink(link, base, sizeof base - 1);
            if (length < 0) return 0;
            base[length] = '\0';
        }
        snprintf(joined, sizeof joined, "%s/%s", base, name);
    }
    size_t length = strlen(joined);
    while (length > 1 && joined[length - 1] == '/') joined[--length] = '\0';
    char *last = strrchr(joined, '/');
    *last = '\0';
    if (!realpath(*joined ? joined : "/", above)) return 0;
    if (strlen(above) + strlen(last + 1) + 2 > PATH_MAX) return 0;
    stpcpy(stpcpy(stpcpy(found, strcmp(above, "/") ? above : ""), "/"), last + 1);
    return is_below(found);
}

/* Whether an open file is watched; writes its path. */
static int place_of(int file, char *found) {
    char link[64];
    if (mode == OFF || file == journal_file) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, found, PATH_MAX - 1);
    if (length < 0) return 0;
    found[length] = '\0';
    return is_below(found);
}

static int is_refused(enum change change) {
    switch (refusal) {
    case ENOSPC: return change == MAKES || change == WRITES || change == SYNCS;
    default: return change != SYNCS;
    }
}

/* Count a change; returns whether it is refused, and does not return where the process is killed here. */
static int counted(enum change change) {
    long number = atomic_fetch_add(&n_seen, 1) + 1;
    if (mode == KILL && number == at) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (mode == REFUSE && number >= at && is_refused(change)) {
        errno = refusal;
        return 1;
    }
    return 0;
}

/* Count a write; where the process is killed here, half of it is written first. */
static int counted_write(int file, const void *bytes, size_t length) {
    if (mode == KILL && atomic_load(&n_seen) + 1 == at && bytes) real_write(file, bytes, length / 2);
    return counted(WRITES);
}

static void note(const char *form, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *form, ...) {
    if (mode != JOURNAL) return;
    char line[PATH_MAX * 2 + 128];
    int before = errno;
    va_list values;
    va_start(values, form);
    int length = vsnprintf(line, sizeof line, form, values);
    va_end(values);
    if (real_write(journal_file, line, (size_t)length) != length) abort();
    errno = before;
}

static unsigned long long number_of(int file) {
    struct stat about;
    return fstat(file, &about) ? 0 : (unsigned long long)about.st_ino;
}

static int note_open(int file, const char *path, int flags, int was_there) {
    if (file < 0 || mode != JOURNAL) return file;
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        note("unnamed\t%llu\n", number_of(file));
    } else if ((flags & O_CREAT) && !was_there) {
        note("create\t%s\t%llu\n", path, number_of(file));
    } else if (flags & O_TRUNC) {
        note("empty\t%s\t%llu\n", path, number_of(file));
    }
    return file;
}

static int opened(int folder, const char *path, int flags, mode_t bits) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
    char found[PATH_MAX];
    int changes = flags & (O_CREAT | O_TRUNC) || (flags & O_ACCMODE) != O_RDONLY;
    int is_unnamed = (flags & O_TMPFILE) == O_TMPFILE, is_watched = 0, was_there = 0;
    if (changes && is_unnamed) {
        char within[PATH_MAX + 4];
        snprintf(within, sizeof within, "%s/x", path);
        is_watched = place(folder, within, found);
    } else if (changes) {
        struct stat about;
        is_watched = place(folder, path, found);
        was_there = is_watched && lstat(found, &about) == 0;
    }
    if (!is_watched) return real(folder, path, flags, bits);
    int makes = is_unnamed || (!was_there && (flags & O_CREAT));
    if ((makes || flags & O_TRUNC || refusal != ENOSPC) && counted(makes ? MAKES : NAMES)) return -1;
    return note_open(real(folder, path, flags, bits), found, flags, was_there);
}

#define BITS() \
    mode_t bits = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        bits = va_arg(more, mode_t); \
        va_end(more); \
    }

int open(const char *path, int flags, ...) { BITS() return opened(AT_FDCWD, path, flags, bits); }
int open64(const char *path, int flags, ...) { BITS() return opened(AT_FDCWD, path, flags, bits); }
int openat(int folder, const char *path, int flags, ...) { BITS() return opened(folder, path, flags, bits); }
int openat64(int folder, const char *path, int flags, ...) { BITS() return opened(folder, path, flags, bits); }
int creat(const char *path, mode_t bits) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, bits); }

#define WRITE(name, parameters, arguments, bytes, length) \
    ssize_t name parameters { \
        REAL(name); \
        char found[PATH_MAX]; \
        if (!place_of(file, found)) return real arguments; \
        if (counted_write(file, bytes, length)) return -1; \
        ssize_t done = real arguments; \
        note("write\t%llu\n", number_of(file)); \
        return done; \
    }

WRITE(write, (int file, const void *bytes, size_t length), (file, bytes, length), bytes, length)
WRITE(pwrite, (int file, const void *bytes, size_t length, off_t from), (file, bytes, length, from), NULL, 0)
WRITE(pwrite64, (int file, const void *bytes, size_t length, off64_t from), (file, bytes, length, from), NULL, 0)
WRITE(writev, (int file, const struct iovec *parts, int count), (file, parts, count), NULL, 0)
WRITE(sendfile, (int file, int source, off_t *from, size_t length), (file, source, from, length), NULL, 0)
WRITE(sendfile64, (int file, int source, off64_t *from, size_t length), (file, source, from, length), NULL, 0)
WRITE(copy_file_range, (int source, off64_t *from, int file, off64_t *to, size_t length, unsigned flags),
      (source, from, file, to, length, flags), NULL, 0)

static void note_sync(int file, const char *path) {
    struct stat about;
    if (mode != JOURNAL || fstat(file, &about)) return;
    if (S_ISDIR(about.st_mode)) {
        note("names\t%s\n", path);
        return;
    }
    static atomic_long n_contents;
    char copy[PATH_MAX + 64], link[64], chunk[65536];
    snprintf(copy, sizeof copy, "%s/%d-%ld", journal, (int)getpid(), atomic_fetch_add(&n_contents, 1));
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int from = real_open(link, O_RDONLY | O_CLOEXEC, 0), to = real_open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (ssize_t length; (length = read(from, chunk, sizeof chunk)) > 0;)
        if (real_write(to, chunk, (size_t)length) != length) abort();
    close(from);
    close(to);
    note("sync\t%llu\t%s\n", (unsigned long long)about.st_ino, copy);
}

#define SYNC(name) \
    int name(int file) { \
        REAL(name); \
        char found[PATH_MAX]; \
        if (!place_of(file, found)) return real(file); \
        if (counted(SYNCS)) return -1; \
        int done = real(file); \
        if (!done) note_sync(file, found); \
        return done; \
    }

SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, type) \
    int name(int file, type length) { \
        REAL(name); \
        char found[PATH_MAX]; \
        if (!place_of(file, found)) return real(file, length); \
        if (counted(WRITES)) return -1; \
        note("write\t%llu\n", number_of(file)); \
        return real(file, length); \
    }

TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    REAL(renameat2);
    char source[PATH_MAX], target[PATH_MAX];
    int is_watched = place(from, old, source);
    if (!(place(to, new, target) | is_watched)) return real(from, old, to, new, flags);
    if (counted(NAMES)) return -1;
    int done = real(from, old, to, new, flags);
    if (!done) note("rename\t%s\t%s\n", source, target);
    return done;
}

int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    REAL(linkat);
    char target[PATH_MAX];
    if (!place(to, new, target)) return real(from, old, to, new, flags);
    if (counted(MAKES)) return -1;
    int done = real(from, old, to, new, flags);
    struct stat about;
    if (!done && !lstat(target, &about)) note("link\t%s\t%llu\n", target, (unsigned long long)about.st_ino);
    return done;
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int symlinkat(const char *text, int to, const char *new) {
    REAL(symlinkat);
    char target[PATH_MAX];
    if (!place(to, new, target)) return real(text, to, new);
    if (counted(MAKES)) return -1;
    int done = real(text, to, new);
    if (!done) note("symlink\t%s\t%s\n", target, text);
    return done;
}

int symlink(const char *text, const char *new) { return symlinkat(text, AT_FDCWD, new); }

int mkdirat(int folder, const char *name, mode_t bits) {
    REAL(mkdirat);
    char found[PATH_MAX];
    struct stat about;
    if (!place(folder, name, found) || !lstat(found, &about)) return real(folder, name, bits);
    if (counted(MAKES)) return -1;
    int done = real(folder, name, bits);
    if (!done) note("mkdir\t%s\n", found);
    return done;
}

int mkdir(const char *name, mode_t bits) { return mkdirat(AT_FDCWD, name, bits); }

int unlinkat(int folder, const char *name, int flags) {
    REAL(unlinkat);
    char found[PATH_MAX];
    struct stat about;
    if (!place(folder, name, found) || lstat(found, &about)) return real(folder, name, flags);
    if (counted(REMOVES)) return -1;
    int done = real(folder, name, flags);
    if (!done) note("remove\t%s\n", found);
    return done;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int remove(const char *name) {
    struct stat about;
    return unlinkat(AT_FDCWD, name, !lstat(name, &about) && S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0);
}
