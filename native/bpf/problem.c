#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

bool ps_fail(ps_problem *problem, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    for (char *c = problem->text; *c; c++) {
        if (*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
    return false;
}
