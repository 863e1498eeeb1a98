/* What this process has in memory, and which files it maps. */
#ifndef PERFSUITE_WORKER_OWN_PROCESS_H
#define PERFSUITE_WORKER_OWN_PROCESS_H

#include <cstdint>
#include <string>

#include "message.h"

namespace perfsuite {

/* Lets the kernel kill this process with whoever started it, as far as the environment says who that is.
 * A `Failure` where that is gone already. */
void end_with_parent();

/* What is resident now: [at_ns, anonymous, file, shared bytes]; nil where the kernel does not say (before Linux 4.5). */
Value resident_sample();

/* The largest resident size so far, bytes. */
int64_t peak_rss_bytes();

/* Gives this process pages of its own for the engine's code and constants, drawn by the kernel anew; returns the bytes
 * that were copied.
 *
 * All processes share a library's pages in the page cache, which stay where they came to lie when the file was first
 * read.  Two copies of one build then differ for as long as they stay cached: decode's attention by 3 %, an operator of
 * 2 us by 11 %, in 138 of 138 pairs alike (docs/results.md, 'The main road').  With pages of its own a process draws
 * where its code lies, as it draws where its buffers do, and what was a bias between two files is noise between
 * processes.
 *
 * Each page gets its first byte written over itself, which makes the kernel copy it.  0 where the system lets no page of
 * code be written (SELinux without execmod): then the pages stay those of the file.  The mappings are the file's as
 * before, so that uprobes find them. */
int64_t own_code_pages(const std::string &library_dir);

/* A place in the file that it was mapped from. */
struct FilePlace {
    std::string path;
    uint64_t offset;
};

/* Which file, and where in it, an address of this process is mapped from; a `Failure` where none is. */
FilePlace mapped_place(uintptr_t address);

/* A `Failure` where a library of llama.cpp's that a folder has was loaded from elsewhere, as its RUNPATH may have it: two
 * builds would be one. */
void refuse_foreign_libraries(const std::string &library_dir);

/* A `Failure` unless the llama.cpp that this process maps is the build of a plan, by its files and the digest of their build ids.
 *
 * Source: ELF specification, section "Note Section"; the digest is that of perfsuite/measure/engine.py. */
void refuse_other_engine(const std::string &library_dir, const std::string &engine_build_id);

/* The build id of a file of ELF, or the first 40 hex digits of its content's SHA-256. */
std::string library_build_id(const std::string &path);

} // namespace perfsuite

#endif
