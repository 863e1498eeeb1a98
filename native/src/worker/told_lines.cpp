#include "told_lines.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/utsname.h>
#include <unistd.h>

#include "base64.h"
#include "failure.h"
#include "own_output.h"
#include "text.h"

namespace perfsuite {

namespace {

/* What an answer begins with. */
constexpr const char *ANSWER_MARK = "perfsuite-worker-ready";

/* Most values that cross in one line: what hears a worker keeps 64 KiB of one. */
constexpr int64_t MOST_VALUES = 8192;

void say(const std::string &kind, const std::string &text) { say_line(std::string(ANSWER_MARK) + " " + kind + " " + text); }

} // namespace

int64_t number_at(const Words &words, size_t place) {
    auto number = place < words.size() ? number_in(words[place]) : std::nullopt;
    if (!number) {
        throw Failure("'" + std::string(words[0]) + "' lacks a number");
    }
    return *number;
}

std::string told_values(const float *output, size_t n_output, const Words &words) {
    int64_t first = number_at(words, 1), number = number_at(words, 2), n_values = static_cast<int64_t>(n_output);
    if (first < 0 || number < 0 || number > MOST_VALUES || first > n_values || number > n_values - first) {
        throw Failure("values " + std::to_string(first) + " and " + std::to_string(number) + " more; the output has " +
                      std::to_string(n_values));
    }
    return to_base64({reinterpret_cast<const char *>(output + first), static_cast<size_t>(number) * sizeof(float)});
}

std::string machine_description() {
    utsname told = {};
    ::uname(&told);
    int64_t memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    return std::string(told.machine) + " " + std::to_string(memory_bytes);
}

void serve_lines(const std::string &description, Progress &progress,
                 const std::function<std::optional<std::string>(const std::string &line)> &answer) {
    say("done", description);
    progress.rest();
    char *line = nullptr;
    size_t room = 0;
    for (ssize_t length; (length = ::getline(&line, &room, stdin)) > 0; progress.rest()) {
        progress.step(0);
        std::string asked(line, static_cast<size_t>(line[length - 1] == '\n' ? length - 1 : length));
        try {
            if (auto told = answer(asked)) {
                say("done", *told);
            }
        } catch (const Failure &failure) {
            say("failed", failure.what());
        } catch (const std::bad_alloc &) {
            say("failed", "there is no memory for it");
        }
    }
    std::free(line);
}

void say_crashed(const Crash &crash) { say("crashed", std::to_string(crash.place) + " " + crash.how); }

} // namespace perfsuite
