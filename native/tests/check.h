/* What each test program has: TEST(a_fact) { ... } is run by the program's main, in check.c, in the order of the file, and
 * CHECK(condition) ends the program with the place and the text of the first condition that fails. */
#ifndef PERFSUITE_TESTS_CHECK_H
#define PERFSUITE_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

#define TEST(fact)                                                                          \
    static void fact(void);                                                                 \
    __attribute__((constructor)) static void register_##fact(void) { test_register(fact); } \
    static void fact(void)

#ifdef __cplusplus
extern "C" {
#endif

extern char **test_arguments; /* the program's, from its name on */
void test_register(void (*test)(void));

#ifdef __cplusplus
}
#endif

#endif
