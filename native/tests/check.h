/* CHECK(condition) ends the program with the place and the text of the first condition that fails. */
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

#endif
