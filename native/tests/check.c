#include "check.h"

enum { MOST_TESTS = 64 };

static void (*tests[MOST_TESTS])(void);
static int n_tests;

char **test_arguments;

void test_register(void (*test)(void)) {
    CHECK(n_tests < MOST_TESTS);
    tests[n_tests++] = test;
}

int main(int argc, char **argv) {
    test_arguments = argv;
    CHECK(argc > 0 && n_tests > 0);
    for (int i = 0; i < n_tests; i++) {
        tests[i]();
    }
    return 0;
}
