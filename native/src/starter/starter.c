/* perfsuite-worker of a bundle that has a C library of its own: starts lib/perfsuite-worker by it.
 *
 * Static, for the device may have no C library that the program could be started by; the path of one that comes along
 * cannot stand in the program, for nobody knows where the bundle will be.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As perfsuite/measure/bundle/making.py lays them, and own_program() in worker/text.cpp knows the first. */
static const char LOADER[] = "lib/ld-musl.so", PROGRAM[] = "lib/perfsuite-worker";

extern char **environ;

int main(int argc, char **argv) {
    char folder[PATH_MAX], loader[PATH_MAX + sizeof LOADER], program[PATH_MAX + sizeof PROGRAM];
    ssize_t size = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[size < 0 ? 0 : size] = '\0';
    char *end = strrchr(folder, '/');
    if (!end) {
        fprintf(stderr, "perfsuite-worker: /proc/self/exe cannot be read (%s)\n", strerror(errno));
        return 127;
    }
    end[1] = '\0';
    strcat(strcpy(loader, folder), LOADER);
    strcat(strcpy(program, folder), PROGRAM);

    char *words[argc + 2];
    words[0] = loader;
    words[1] = program;
    for (int n = 1; n <= argc; n++) { /* with the NULL at the end */
        words[n + 1] = argv[n];
    }
    execve(loader, words, environ);
    fprintf(stderr, "%s: cannot be started (%s)\n", loader, strerror(errno));
    return 127;
}
