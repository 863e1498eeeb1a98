/* Files and texts, as they are read and written here. */
#ifndef PERFSUITE_WORKER_TEXT_H
#define PERFSUITE_WORKER_TEXT_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfsuite {

/* The content of a file, also of one of /proc whose size nobody knows; none where it cannot be read (`errno` says why). */
std::optional<std::string> read_file(const std::string &path);

/* The same; a `Failure` names the file and why. */
std::string required_file(const std::string &path);

/* Writes a file whole or not at all; a `Failure` names the file and why. */
void write_whole(const std::string &path, std::string_view content);

/* Views of a text that outlives them: no temporary is taken. */
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> lines_of(std::string &&) = delete;

/* Split at any number of blanks. */
std::vector<std::string_view> words_of(std::string_view line);
std::vector<std::string_view> words_of(std::string &&) = delete;

/* A whole number that fills the text, or none. */
std::optional<long long> number_in(std::string_view text);

/* The folder that a path lies in. */
std::string folder_of(const std::string &path);

/* The path without links; the path itself where it is not there. */
std::string real_path(const std::string &path);

/* The file that starts this program: it itself, or the one that starts it by the C library of its bundle. */
std::string own_program();

} // namespace perfsuite

#endif
