/* Which files a process maps, and where in them a function lies: looked up in this very program. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bpf/mapped_files.h"
#include "bpf/target.h"
#include "check.h"

__attribute__((noinline)) int probed_function(int n) { return n * 3 + 1; }

TEST(a_line_of_the_mappings) {
    ps_mapping mapping;
    CHECK(ps_parse_mapping("7f00-8f00 r-xp 00001000 08:1f 4242    /lib/a library.so.0\n", &mapping));
    CHECK(mapping.begin == 0x7f00 && mapping.end == 0x8f00 && mapping.is_code);
    CHECK(mapping.major == 8 && mapping.minor == 0x1f && mapping.inode == 4242);
    CHECK(strcmp(mapping.path, "/lib/a library.so.0") == 0);
    CHECK(ps_parse_mapping("7f00-8f00 r--p 00001000 08:1f 4242 /lib/x", &mapping) && !mapping.is_code);
    CHECK(!ps_parse_mapping("7f00-8f00 rw-p 00000000 00:00 0\n", &mapping));
    CHECK(!ps_parse_mapping("7f00-8f00 r-xp 00000000 00:00 0      [vdso]\n", &mapping));
    CHECK(!ps_parse_mapping("nonsense", &mapping));
    CHECK(!ps_parse_mapping("", &mapping));
}

TEST(functions_of_this_program) {
    CHECK(probed_function(1) == 4);
    ps_problem problem = {{0}};
    ps_function functions[] = {
        {.name = "probed_function", .library = "test_bpf", .fd = -1},
        {.name = "no_such_function", .library = "libnothing", .fd = -1},
        {.name = "malloc", .library = "libc", .fd = -1},
    };
    CHECK(ps_find_functions(getpid(), functions, 3, &problem));
    CHECK(functions[0].fd >= 0 && functions[0].offset > 0 && functions[0].has_library);
    CHECK(functions[1].fd < 0 && !functions[1].has_library);
    CHECK(functions[2].fd >= 0 && functions[2].has_library);
    char in_file[16];
    CHECK(pread(functions[0].fd, in_file, sizeof(in_file), (off_t)functions[0].offset) == sizeof(in_file));
    CHECK(memcmp(in_file, (const void *)(uintptr_t)probed_function, sizeof(in_file)) == 0);
    CHECK(!ps_find_functions(INT32_MAX, functions, 1, &problem) && strstr(problem.text, "cannot be read"));
}

/* Files that are cut off or wrong in any byte of their headers are searched without harm. */
TEST(damaged_files) {
    const char *names[] = {"probed_function"};
    uint64_t offset = 0;
    static char content[1 << 22];
    int own = open("/proc/self/exe", O_RDONLY), copy = memfd_create("copy", 0);
    ssize_t n_bytes = pread(own, content, sizeof(content), 0);
    CHECK(n_bytes > 4096 && copy >= 0);
    CHECK(!ps_elf_offsets(copy, names, &offset, 1));
    CHECK(pwrite(copy, content, (size_t)n_bytes, 0) == n_bytes);
    CHECK(ps_elf_offsets(copy, names, &offset, 1) && offset);
    for (int i = 0; i < 64; i++) {
        for (int bit = 0; bit < 8; bit++) {
            char wrong = (char)(content[i] ^ 1 << bit);
            CHECK(pwrite(copy, &wrong, 1, i) == 1);
            offset = 0;
            ps_elf_offsets(copy, names, &offset, 1);
        }
        CHECK(pwrite(copy, content + i, 1, i) == 1);
    }
    for (ssize_t cut = n_bytes - 1; cut > 0; cut -= n_bytes / 37 + 1) {
        CHECK(ftruncate(copy, cut) == 0);
        offset = 0;
        ps_elf_offsets(copy, names, &offset, 1);
    }
    close(copy);
    close(own);
}

TEST(users) {
    uint32_t uids[4];
    CHECK(ps_parse_uids("Name:\tx\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n", uids));
    CHECK(uids[0] == 1000 && uids[1] == 1001 && uids[2] == 1002 && uids[3] == 1003);
    CHECK(!ps_parse_uids("Name:\tUid:\t1\t1\t1\t1\n", uids)); /* a program may have any name */
    CHECK(!ps_parse_uids("\nUid:\t1\t1\n", uids));
}

TEST(a_target_of_ones_own) {
    ps_target target;
    ps_problem problem = {{0}};
    char name[16];
    CHECK(prctl(PR_SET_NAME, "a (name) of own") == 0); /* the kernel's own is an emulator's where one runs this */
    CHECK(ps_open_target(getpid(), &target, &problem) && ps_is_alive(&target));
    CHECK(ps_thread_name(&target, (uint32_t)getpid(), name) && strcmp(name, "a (name) of own") == 0);
    CHECK(!ps_thread_name(&target, 1u << 30, name));
    CHECK(!ps_open_target(INT32_MAX, &target, &problem) && strstr(problem.text, "there is none"));
}
