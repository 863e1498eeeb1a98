/* Where near a function's entry a probe costs least.
 *
 * A probe on an instruction that the kernel can emulate (a push, a jump, a call) costs one trap; on any other it has to
 * be stepped over, with a second trap: about four times as much. So an entry probe may sit a few instructions further
 * on, as long as those before it run in one go and leave the arguments alone.
 *
 * Source: Linux, arch/x86/kernel/uprobes.c (branch_setup_xol_ops, push_setup_xol_ops).
 */
#ifndef PERFSUITE_BPF_FIRST_INSTRUCTIONS_H
#define PERFSUITE_BPF_FIRST_INSTRUCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes from the entry to the first instruction that is emulated; 0 where it is the first or none can be told. */
uint32_t ps_cheap_place(const uint8_t *code, size_t n_bytes);

#endif
