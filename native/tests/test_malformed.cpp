/* What comes from outside is read without harm, whatever was done to it: messages, JSON, lines, ELF files.
 *
 * Each seed is changed at random, always in the same way; under the sanitizers any access beyond an end is an error. */
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "bpf/first_instructions.h"
#include "bpf/mapped_files.h"
#include "bpf/options.h"
#include "bpf/target.h"
}

#include "agent/json.h"
#include "check.h"
#include "worker/base64.h"
#include "worker/message.h"
#include "worker/text.h"

using perfsuite::Bytes;
using perfsuite::Failure;
using perfsuite::Value;

constexpr int N_ROUNDS = 10000, N_ELF_ROUNDS = 200;

/* Xorshift: the same numbers on each machine. */
static uint64_t next_number(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static size_t below(size_t limit) { return limit ? static_cast<size_t>(next_number() % limit) : 0; }

/* One to eight changes: a bit, a byte, bytes that say a large number, a cut, a doubled part. */
static std::string changed(std::string content) {
    for (size_t left = 1 + below(8); left > 0; left--) {
        size_t at = below(content.size() + 1), n_bytes = below(9);
        switch (below(6)) {
        case 0:
            if (at < content.size()) {
                content[at] = static_cast<char>(content[at] ^ 1 << below(8));
            }
            break;
        case 1:
            content.insert(at, 1, static_cast<char>(next_number()));
            break;
        case 2:
            content.replace(at, n_bytes, n_bytes, static_cast<char>(below(2) ? 0xff : 0x7f));
            break;
        case 3:
            content.erase(at, n_bytes);
            break;
        case 4:
            content.resize(at);
            break;
        default:
            content.insert(at, content.substr(below(content.size() + 1), 64));
        }
    }
    return content;
}

/* A `Failure` is an answer; nothing else is thrown. */
template <typename Function> static bool succeeds(Function function) {
    try {
        function();
        return true;
    } catch (const Failure &) {
        return false;
    }
}

/* How many of the changed seeds were still read. */
static int n_read(const std::vector<std::string> &seeds, int n_rounds, const std::function<void(const std::string &)> &read) {
    int n_good = 0;
    for (const std::string &seed : seeds) {
        CHECK(succeeds([&] { read(seed); }));
    }
    for (int round = 0; round < n_rounds; round++) {
        n_good += succeeds([&] { read(changed(seeds[below(seeds.size())])); });
    }
    return n_good;
}

TEST(messages) {
    Value::Map inner = {{"kind", "hello"}, {"id", 7}, {"n", -3}, {"ratio", 0.5}, {"raw", Bytes{"\x01\x02"}}, {"no", nullptr}};
    Value nested = 1;
    for (int depth = 0; depth < 40; depth++) {
        nested = Value::List{nested, "x"};
    }
    std::vector<std::string> seeds = {perfsuite::pack(inner), perfsuite::pack(nested),
                                      perfsuite::pack(Value::List(300, Value(Value::Map{{"a", true}})))};
    int n_good = n_read(seeds, N_ROUNDS, [](const std::string &content) {
        Value value = perfsuite::unpack(content);
        std::string again = perfsuite::pack(value); /* what is read is written, and reads the same */
        CHECK(perfsuite::pack(perfsuite::unpack(again)) == again);
        perfsuite::json_text(value);
    });
    CHECK(n_good > 0 && n_good < N_ROUNDS);
}

TEST(json) {
    std::vector<std::string> seeds = {
        "{\"uid\": 1000, \"user\": \"a\\u00e9\\ud83d\\ude00\\n\", \"began_ns\": 12345678901234, \"x\": [1.5e3, -2, true, null, {}]}",
        std::string(30, '[') + std::string(30, ']'), "\"\xe2\x82\xac\"", "-0.0"};
    int n_good = n_read(seeds, N_ROUNDS, [](const std::string &content) {
        std::optional<Value> value = perfsuite::parse_json(content);
        perfsuite::printable(content);
        if (!value) {
            throw Failure("no JSON");
        }
        perfsuite::json_text(*value);
    });
    CHECK(n_good > 0 && n_good < N_ROUNDS);
}

TEST(lines) {
    std::vector<std::string> seeds = {"values 0 12\nset 1 7\n", "AACAPwAAwH8=", "9223372036854775807"};
    for (int round = 0; round < N_ROUNDS; round++) {
        std::string content = changed(seeds[below(seeds.size())]);
        for (std::string_view line : perfsuite::lines_of(content)) {
            for (std::string_view word : perfsuite::words_of(line)) {
                perfsuite::number_in(word);
            }
        }
        std::string bytes;
        if (succeeds([&] { bytes = perfsuite::from_base64(content); })) {
            CHECK(perfsuite::from_base64(perfsuite::to_base64(bytes)) == bytes);
        }
    }
}

/* What the helper with privileges reads of a process that anybody may have written. */
TEST(what_the_helper_reads) {
    std::vector<std::string> seeds = {"7f00-8f00 r-xp 00001000 08:1f 4242    /lib/a library.so.0\n",
                                      "Name:\tx\nUid:\t1000\t1001\t1002\t1003\n", "task-clock:1:0x1000000000000"};
    const std::string code("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x0f\x84\x10\x00\x00\x00\xe8\x00\x00\x00\x00\x66\x81\xc7\x01", 23);
    for (int round = 0; round < N_ROUNDS; round++) {
        std::string content = changed(seeds[below(seeds.size())]);
        ps_mapping mapping;
        uint32_t uids[4];
        ps_parse_mapping(content.c_str(), &mapping);
        ps_parse_uids(content.c_str(), uids);
        std::string name = "perfsuite-bpf", option = "--counter", counter = content.c_str();
        char *arguments[] = {name.data(), option.data(), counter.data()};
        ps_options options;
        ps_problem problem = {{0}};
        ps_parse_options(3, arguments, &options, &problem);
        std::string instructions = changed(code);
        std::vector<uint8_t> bytes(instructions.begin(), instructions.end()); /* with no byte to spare behind it */
        CHECK(ps_cheap_place(bytes.data(), bytes.size()) <= bytes.size());
    }
}

/* Bytes anywhere in the headers and tables, and in what they lead to. */
TEST(elf_files) {
    const char *names[] = {"malloc", "main"};
    std::ifstream own("/proc/self/exe", std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(own), {}};
    int copy = memfd_create("copy", 0);
    CHECK(content.size() > 4096 && copy >= 0);
    for (int round = 0; round < N_ELF_ROUNDS; round++) {
        std::string head = changed(content.substr(0, 1024)), tail = changed(content.substr(content.size() - 4096));
        CHECK(ftruncate(copy, 0) == 0 && ftruncate(copy, static_cast<off_t>(content.size())) == 0);
        CHECK(pwrite(copy, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
        const std::string &part = round % 2 ? head : tail; /* the sections' table is at the end */
        off_t at = round % 2 ? 0 : static_cast<off_t>(content.size() - 4096);
        CHECK(pwrite(copy, part.data(), part.size(), at) == static_cast<ssize_t>(part.size()));
        uint64_t offsets[2] = {0};
        ps_elf_offsets(copy, names, offsets, 2);
    }
    close(copy);
}
