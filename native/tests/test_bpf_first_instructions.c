/* Where an entry probe may sit: at the first instruction that the kernel emulates, with the arguments still in place. */
#include "bpf/first_instructions.h"

#include "check.h"

#define PLACE(bytes) ps_cheap_place((const uint8_t *)(bytes), sizeof(bytes) - 1)

TEST(the_first_emulated_instruction_is_found) {
    /* mov 0x68(%rdi),%eax; cmp $1,%ax; je: past both */
    CHECK(PLACE("\x8b\x47\x68\x66\x83\xf8\x01\x74\x07\xe9\x00\x00\x00\x00") == 7);
    /* lea 8(%rsp),%r10; and $-64,%rsp; push -8(%r10); push %rbp */
    CHECK(PLACE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xc0\x41\xff\x72\xf8\x55") == 13);
    /* endbr64; push %r13 */
    CHECK(PLACE("\xf3\x0f\x1e\xfa\x41\x55") == 4);
    /* push %rbx: the entry itself */
    CHECK(PLACE("\x53\x48\x8d\x74\x24\x10") == 0);
    /* test %rdi,%rdi; far jump on a condition */
    CHECK(PLACE("\x48\x85\xff\x0f\x84\x00\x00\x00\x00") == 3);
    /* mov 0x8(%rip),%rax; cmpb $0,0x4(%rax,%rbx,2); call */
    CHECK(PLACE("\x48\x8b\x05\x08\x00\x00\x00\x80\x7c\x58\x04\x00\xe8\x00\x00\x00\x00") == 12);
    /* cmpl $0x12345678,(%rsi) and cmpw $0x1234,(%rsi): the length of what is compared follows the prefix */
    CHECK(PLACE("\x81\x3e\x78\x56\x34\x12\x75\x00") == 6);
    CHECK(PLACE("\x66\x81\x3e\x34\x12\x75\x00") == 5);
    /* movzwl (%rdi),%eax; jne */
    CHECK(PLACE("\x0f\xb7\x07\x75\x00") == 3);
    /* mov %rsi,%rdi; push: an argument is gone by then */
    CHECK(PLACE("\x48\x89\xf7\x53") == 0);
    /* mov %rdi,%r15 leaves %rdi alone, for the register number has a fourth bit */
    CHECK(PLACE("\x49\x89\xff\x53") == 3);
    /* vzeroupper; push: not known here, and so not passed */
    CHECK(PLACE("\xc5\xf8\x77\x53") == 0);
    /* ret before anything that is emulated: nothing behind it is sure to run */
    CHECK(PLACE("\xc3\x53") == 0);
    /* cut off in the middle */
    CHECK(PLACE("\x48\x8b") == 0);
    CHECK(PLACE("\x66") == 0);
    CHECK(PLACE("") == 0);
}
