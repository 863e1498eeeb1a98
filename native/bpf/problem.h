/* Why something did not work: one line, the first reason. */
#ifndef PERFSUITE_BPF_PROBLEM_H
#define PERFSUITE_BPF_PROBLEM_H

#include <stdbool.h>

enum { PS_PROBLEM_BYTES = 512 };

typedef struct ps_problem {
    char text[PS_PROBLEM_BYTES];
} ps_problem;

/* Keeps the text, with anything that is not printable replaced; always false, so that it can be returned. */
bool ps_fail(ps_problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
