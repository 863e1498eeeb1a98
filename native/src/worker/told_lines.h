/* A worker that is asked line by line, and answers each with one. */
#ifndef PERFSUITE_WORKER_TOLD_LINES_H
#define PERFSUITE_WORKER_TOLD_LINES_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervised.h"

namespace perfsuite {

/* The words of a line, of which the first one says what is asked for. */
using Words = std::vector<std::string_view>;

/* A request's number; a `Failure` where it lacks one. */
int64_t number_at(const Words &words, size_t place);

/* Of an output what "values FIRST NUMBER" asks for, in base 64. */
std::string told_values(const float *output, size_t n_values, const Words &words);

/* This machine: its architecture, and its memory in bytes. */
std::string machine_description();

/* Answers line after line of the input until it ends, after one that says what is measured; of those without an answer
 * nothing is said, and a `Failure` is an answer, too. */
void serve_lines(const std::string &description, Progress &progress,
                 const std::function<std::optional<std::string>(const std::string &line)> &answer);

/* Says how the work of a supervised process has crashed, in the place of an answer. */
void say_crashed(const Crash &crash);

} // namespace perfsuite

#endif
