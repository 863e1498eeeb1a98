/* Where functions lie in an ELF file. The file may be anybody's: nothing in it is trusted. */
#ifndef PERFSUITE_BPF_ELF_SYMBOLS_H
#define PERFSUITE_BPF_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets offsets[i] to the file offset of function names[i] where the file defines it and offsets[i] was 0; false where it
 * is no whole ELF file of this machine. */
bool ps_elf_offsets(int fd, const char *const *names, uint64_t *offsets, size_t n_names);

#endif
