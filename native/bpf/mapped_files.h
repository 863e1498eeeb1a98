/* The files that a process has mapped as code, and where in them the functions lie that are probed. */
#ifndef PERFSUITE_BPF_MAPPED_FILES_H
#define PERFSUITE_BPF_MAPPED_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "problem.h"

enum { PS_PATH_BYTES = 4096 };

/* One line of /proc/PID/maps. */
typedef struct ps_mapping {
    uint64_t begin, end;
    bool is_code;
    uint32_t major, minor;
    uint64_t inode;
    char path[PS_PATH_BYTES];
} ps_mapping;

typedef struct ps_function {
    const char *name;
    const char *library; /* where llama.cpp has it, for messages */
    int fd;              /* the file, or -1 */
    uint64_t offset;     /* in it */
    bool has_library;    /* that library is mapped, with or without the function */
} ps_function;

/* False where the line names no file. */
bool ps_parse_mapping(const char *line, ps_mapping *mapping);

/* Sets offsets[i] to the file offset of function names[i] where the ELF file defines it and offsets[i] was 0; false where
 * it is no whole ELF file of this machine. The file may be anybody's: nothing in it is trusted. */
bool ps_elf_offsets(int fd, const char *const *names, uint64_t *offsets, size_t n_names);

/* Finds what can be found; a function that is nowhere keeps fd -1. A file is opened by the way that the process sees
 * it, and used only if it is the very one that is mapped. */
bool ps_find_functions(int32_t pid, ps_function *functions, int n_functions, ps_problem *problem);

#endif
