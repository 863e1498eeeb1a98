/* The parts of the worker that need neither an engine nor a device. */
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "check.h"
#include "worker/base64.h"
#include "worker/contention.h"
#include "worker/library.h"
#include "worker/message.h"
#include "worker/operators.h"
#include "worker/own_process.h"
#include "worker/placed_operators.h"
#include "worker/probes.h"
#include "worker/sha256.h"
#include "worker/supervised.h"
#include "worker/text.h"

using perfsuite::Bytes;
using perfsuite::Failure;
using perfsuite::Value;

/* What a function fails with; "" where it does not. */
template <typename Function> static std::string failure_of(Function function) {
    try {
        function();
    } catch (const Failure &failure) {
        return failure.what();
    }
    return "";
}

static Value back(const Value &value) { return perfsuite::unpack(perfsuite::pack(value)); }

TEST(numbers_come_back) {
    const int64_t wholes[] = {0, 1, 127, 128, 255, 256, 65535, 65536, 4294967295, 4294967296, -1, -32, -33, -128, -129,
                              -32768, -32769, -2147483649, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()};
    for (int64_t whole : wholes) {
        CHECK(back(whole).whole() == whole);
    }
    CHECK(back(0.1).number() == 0.1);
    CHECK(back(7).number() == 7.0);
    CHECK(back(true).boolean() && !back(false).boolean() && back(nullptr).is_nil());
    CHECK(failure_of([] { back(std::numeric_limits<uint64_t>::max()).whole(); }) != "");
    CHECK(failure_of([] { back(int64_t{1} << 31).whole32(); }) != "");
}

TEST(texts_lists_and_maps_come_back) {
    for (size_t size : {size_t{0}, size_t{31}, size_t{32}, size_t{65535}, size_t{65536}}) {
        std::string text(size, 'x');
        CHECK(back(text).text() == text);
        CHECK(back(Bytes{text}).bytes() == text);
        Value::List list(size, Value(1));
        CHECK(back(list).list().size() == size);
    }
    Value map;
    for (int i = 0; i < 17; i++) {
        map.set("key " + std::to_string(i), i);
    }
    map.set("key 3", "another");
    Value found = back(map);
    CHECK(found.map().size() == 17 && found.at("key 3").text() == "another" && found.at("key 16").whole() == 16);
    CHECK(found.find("key 17") == nullptr);
    CHECK(failure_of([&] { found.at("key 17"); }) == "a message lacks 'key 17'");
}

TEST(what_others_write_is_read) {
    /* Forms that msgspec never writes, as the specification has them: short numbers, floats of 32 bits, short bytes. */
    CHECK(perfsuite::unpack(std::string("\xd0\x80", 2)).whole() == -128);
    CHECK(perfsuite::unpack(std::string("\xd1\xff\x00", 3)).whole() == -256);
    CHECK(perfsuite::unpack(std::string("\xcd\x01\x00", 3)).whole() == 256);
    CHECK(perfsuite::unpack(std::string("\xca\x3f\x80\x00\x00", 5)).number() == 1.0);
    CHECK(perfsuite::unpack(std::string("\xc4\x01z", 3)).bytes() == "z");
    CHECK(perfsuite::unpack(std::string("\xd9\x01z", 3)).text() == "z");
}

TEST(garbage_is_refused) {
    std::string whole = perfsuite::pack(Value::Map{{"list", Value::List{1, "two", Bytes{"three"}}}});
    for (size_t size = 0; size < whole.size(); size++) {
        CHECK(failure_of([&] { perfsuite::unpack(whole.substr(0, size)); }) == "a message is cut short");
    }
    CHECK(failure_of([&] { perfsuite::unpack(whole + 'x'); }) == "a message goes on after its end");
    CHECK(failure_of([] { perfsuite::unpack(std::string(1000, '\x91')); }).find("nests") != std::string::npos);
    CHECK(failure_of([] { perfsuite::unpack("\xdd\xff\xff\xff\xff"); }) == "a message is cut short");
    CHECK(failure_of([] { perfsuite::unpack("\xc6\xff\xff\xff\xff"); }) == "a message is cut short");
    CHECK(failure_of([] { perfsuite::unpack("\xc1"); }).find("no value") != std::string::npos);
    CHECK(failure_of([] { perfsuite::unpack("\x81\x01\x01"); }).find("in the place of text") != std::string::npos);
}

TEST(digests_are_those_of_the_standard) {
    auto digest = [](const std::string &text) {
        perfsuite::Sha256 sha;
        for (size_t at = 0; at < text.size(); at += 61) {
            sha.add(std::string_view(text).substr(at, 61));
        }
        return sha.hex();
    };
    CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(bytes_cross_in_a_line) {
    const std::pair<const char *, const char *> known[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
                                                           {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
    for (auto [bytes, text] : known) {
        CHECK(perfsuite::to_base64(bytes) == text && perfsuite::from_base64(text) == bytes);
    }
    std::string all;
    for (int byte = 0; byte < 1000; byte++) {
        all += static_cast<char>(byte * 7);
    }
    CHECK(perfsuite::from_base64(perfsuite::to_base64(all)) == all);
    CHECK(failure_of([] { perfsuite::from_base64("Zg="); }) == "bytes of a line are cut short");
    CHECK(failure_of([] { perfsuite::from_base64("Zg=g"); }) == "bytes of a line hold what is no digit");
    CHECK(failure_of([] { perfsuite::from_base64("===="); }) == "bytes of a line hold what is no digit");
}

/* How work crashed that has marked two steps before; "" where it did not. */
static std::string crash_of(const std::function<void()> &last, double step_limit_s = 60.0) {
    auto crash = perfsuite::supervised(step_limit_s, [&](perfsuite::Progress &progress) {
        progress.step(3);
        progress.step(5);
        last();
    });
    CHECK(!crash || crash->place == 5);
    return crash ? crash->how : "";
}

TEST(a_crash_is_that_of_a_step) {
    CHECK(crash_of([] {}) == "");
    CHECK(crash_of([] {
              signal(SIGTERM, SIG_DFL);
              raise(SIGTERM);
          }) == "signal 15");
    CHECK(crash_of([] { _exit(3); }) == "exit 3");
    CHECK(crash_of([] { pause(); }, 0.05) == "hung");
    CHECK(failure_of([] { crash_of([] { throw Failure("no device"); }); }) == "no device");
    /* Who rests is waited for, however long that is. */
    auto crash = perfsuite::supervised(0.02, [](perfsuite::Progress &progress) {
        progress.rest();
        usleep(200000);
    });
    CHECK(!crash);
}

TEST(texts_are_taken_apart) {
    CHECK(perfsuite::lines_of(std::string_view("a\nb\n")).size() == 2 && perfsuite::lines_of(std::string_view("")).empty());
    CHECK(perfsuite::words_of(std::string_view("  a  b\t")).size() == 2);
    CHECK(perfsuite::number_in("12") == 12 && !perfsuite::number_in("12x") && !perfsuite::number_in(""));
    CHECK(perfsuite::folder_of("/a/b") == "/a" && perfsuite::folder_of("/a") == "/" && perfsuite::folder_of("a") == ".");
}

TEST(a_busy_stretch_has_run) {
    perfsuite::ContentionMark before = perfsuite::ContentionMark::take();
    volatile double sum = 0.0;
    for (int i = 0; i < 20000000; i++) {
        sum = sum + i;
    }
    perfsuite::Contention spent = before.until(perfsuite::ContentionMark::take());
    CHECK(spent.wall_ns > 0);
    CHECK(!spent.running_ns || *spent.running_ns > 0);
    perfsuite::Contention known = spent, both = perfsuite::total({spent, spent});
    CHECK(both.wall_ns == 2 * spent.wall_ns && both.running_ns.has_value() == spent.running_ns.has_value());
    known.running_ns = std::nullopt;
    CHECK(!perfsuite::total({spent, known}).running_ns);
}

TEST(an_operator_takes_its_median) {
    perfsuite::Library library(test_arguments[1]);
    auto time_of = [&](int64_t n_tokens, const char *op, const char *type) {
        Value shape = Value::Map{{"op", op}, {"type", type}, {"n_inner", 256}, {"n_outer", 32}, {"n_tokens", n_tokens},
                                 {"n_heads", 0}, {"n_kv_heads", 0}, {"n_past", 0}, {"n_experts", 0}, {"n_used", 0}};
        Value tensor = Value::Map{{"type", "f32"}, {"ne", Value::List{256, n_tokens, 1, 1}}};
        Value alone = Value::Map{{"tensors", Value::List{tensor, tensor}}, {"params", Value::List{1}}};
        Value plan = Value::Map{{"shapes", Value::List{shape}}, {"alone", Value::List{alone}}, {"n_threads", 2},
                                {"budget_ns", 1}, {"spread_bytes", 4096}};
        return perfsuite::operator_times(library, plan).at(0).number();
    };
    CHECK(time_of(1, "MUL_MAT", "q4_k") == 4096.0 && time_of(127, "MUL_MAT", "Q4_K") == 4096.0);
    CHECK(time_of(128, "MUL_MAT", "q4_k") == 1024.0); /* fewer parameters where arithmetic takes longer */
    CHECK(failure_of([&] { time_of(1, "DANCE", "q4_k"); }) == "no dancing");
    CHECK(failure_of([&] { time_of(1, "MUL_MAT", "f32"); }) == "ggml cannot measure MUL_MAT");
    CHECK(failure_of([&] { time_of(1, "NOTHING", "q4_k"); }) == "ggml cannot measure NOTHING");
    CHECK(failure_of([&] { perfsuite::Library("/nowhere.so"); }).find("cannot be loaded") != std::string::npos);
    CHECK(failure_of([&] { library.function(&abort, "ps_nothing"); }).find("has no ps_nothing") != std::string::npos);
}

TEST(operators_do_what_lines_ask_for) {
    perfsuite::Library library(test_arguments[1]);
    perfsuite::Progress progress;
    Value plan = Value::Map{{"subject", "ggml-cpu"}, {"n_threads", 2}, {"backend_library", nullptr},
                            {"library_dir", "/engine"}};
    {
        perfsuite::PlacedOperators operators(library, plan, progress);
        auto answer = [&](const std::string &line) { return operators.answer(line).value_or("nothing"); };
        std::string told = operators.description(), spec = "MUL_MAT q4_k 256 32 1 0 0 0";
        CHECK(told.substr(told.find(' ', told.find(' ') + 1)) == " An idle device");
        CHECK(answer("check " + spec) == "" && failure_of([&] { answer("check DANCE f32 1 1 1 0 0 0"); }) == "no dancing");
        CHECK(answer("place 4 " + spec) == "1" && answer("place 1 " + spec) == "2");
        CHECK(failure_of([&] { answer("set 1 1"); }) == "expected one number");
        CHECK(answer("part AACA") == "nothing" && answer("part Pw==") == "nothing" && answer("set 1 1") == "");
        CHECK(answer("output 1") == "65");
        float values[2];
        std::string content = perfsuite::from_base64(answer("values 0 2"));
        CHECK(content.size() == sizeof values);
        memcpy(values, content.data(), sizeof values);
        CHECK(values[0] == 1.0f && values[1] != values[1]);
        CHECK(failure_of([&] { answer("values 65 1"); }).find("the output has 65") != std::string::npos);
        CHECK(answer("launch 1 3 1000000000") == "4000" && answer("launch 2 1 0") == "1000"); /* not the first ones */
        CHECK(answer("time 3 1 2 1") == "1000 1000 1000" && progress.place() == 2);
        CHECK(answer("drop 2") == "" && failure_of([&] { answer("drop 2"); }).find("open another") != std::string::npos);
        for (const char *wrong : {"", "fly 1", "place", "place x MUL_MAT f32 1 1 1 0 0 0", "place 1 MUL_MAT", "set", "set 1",
                                  "time", "time 1 9", "launch 1", "values 0", "values -1 1", "values 0 9000", "part ?"}) {
            CHECK(failure_of([&] { answer(wrong); }) != "");
        }
    }
    plan.set("subject", "ggml-opencl");
    CHECK(failure_of([&] { perfsuite::PlacedOperators(library, plan, progress); }) == "no such backend");
}

constexpr int64_t KIB = 1024, MIB = 1024 * KIB;

/* A folder of caches as sysfs has them: 32 KiB of L1 data and instruction cache, 1 MiB of L2 for each processor, and
 * 8 MiB of L3 for each pair. */
static std::string caches_of(int n_processors, bool has_l3 = true) {
    char root[] = "/tmp/perfsuite-caches-XXXXXX";
    CHECK(mkdtemp(root));
    auto write = [&](int cpu, int index, const char *level, const char *type, const char *size, const std::string &list) {
        std::string folder = std::string(root) + "/cpu" + std::to_string(cpu);
        mkdir(folder.c_str(), 0700);
        mkdir((folder += "/cache").c_str(), 0700);
        mkdir((folder += "/index" + std::to_string(index)).c_str(), 0700);
        std::ofstream(folder + "/level") << level << "\n";
        std::ofstream(folder + "/type") << type << "\n";
        std::ofstream(folder + "/size") << size << "\n";
        std::ofstream(folder + "/shared_cpu_list") << list << "\n";
    };
    for (int cpu = 0; cpu < n_processors; cpu++) {
        std::string own = std::to_string(cpu), pair = std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1);
        write(cpu, 0, "1", "Data", "32K", own);
        write(cpu, 1, "1", "Instruction", "64K", own);
        write(cpu, 2, "2", "Unified", "1024K", own);
        if (has_l3) {
            write(cpu, 3, "3", "Unified", "8M", pair);
        }
        write(cpu, 4, "4", "Unified", "unknown", own);
    }
    return root;
}

TEST(working_sets_follow_the_caches) {
    using Sets = std::vector<int64_t>;
    constexpr int64_t MEMORY = 64 * 1024 * MIB;
    std::string four = caches_of(4), without = caches_of(4, false), eight = caches_of(8), many = caches_of(64);
    /* Half of what the threads have of each cache: private ones once a thread, shared ones once. */
    CHECK((perfsuite::standard_working_sets(1, MEMORY, four) == Sets{16 * KIB, 512 * KIB, 4 * MIB, 64 * MIB}));
    CHECK((perfsuite::standard_working_sets(2, MEMORY, four) == Sets{32 * KIB, 1 * MIB, 8 * MIB, 64 * MIB}));
    CHECK((perfsuite::standard_working_sets(8, MEMORY, four) == Sets{64 * KIB, 2 * MIB, 8 * MIB, 64 * MIB}));
    CHECK((perfsuite::standard_working_sets(2, MEMORY, without) == Sets{32 * KIB, 1 * MIB, 64 * MIB}));
    /* Memory's is four times the last cache, 64 MiB at least, 512 at most, an eighth of the machine's at most. */
    CHECK(perfsuite::standard_working_sets(8, MEMORY, eight).back() == 128 * MIB);
    CHECK(perfsuite::standard_working_sets(64, MEMORY, many).back() == 512 * MIB);
    CHECK((perfsuite::standard_working_sets(1, MEMORY, "/nowhere") == Sets{64 * MIB}));
    CHECK(perfsuite::standard_working_sets(1, 256 * MIB, four).back() == 32 * MIB);
    CHECK(perfsuite::largest_working_set(1, 16, MEMORY, four) == 128 * MIB);
    for (const std::string &folder : {four, without, eight, many}) {
        std::filesystem::remove_all(folder);
    }
}

/* What the stand-in for the probes was asked for: threads, bytes or minus the type of number, ms. */
struct Asked {
    int32_t n_threads;
    int64_t what;
    int64_t budget_ms;
};

static std::vector<Asked> asked_of(const perfsuite::Library &library, const std::function<void()> &work) {
    constexpr int MOST = 4096;
    auto count = library.function(static_cast<int32_t (*)(Asked *, int32_t)>(nullptr), "fake_asked");
    count(nullptr, 0);
    work();
    std::vector<Asked> asked(MOST);
    asked.resize(static_cast<size_t>(count(asked.data(), MOST)));
    return asked;
}

TEST(ceilings_share_a_budget) {
    perfsuite::Library library(test_arguments[2]);
    Value found;
    int64_t spent_ms = 0;
    for (const Asked &each : asked_of(library, [&] { found = perfsuite::measured_ceilings(library, 3, 2500); })) {
        CHECK(each.n_threads == 3 && each.budget_ms >= 1);
        spent_ms += each.budget_ms;
    }
    CHECK(spent_ms > 2250 && spent_ms <= 2500);
    CHECK(found.at("n_threads").whole() == 3 && found.at("dispatch_ns").whole() == 1);
    CHECK(found.at("fp32_flops_per_s").number() == 4e11 && found.at("int8_flops_per_s").number() == 16e11);
    CHECK(found.at("f16_flops_per_s").is_nil()); /* the stand-in has no instruction for it */
    const Value &memory = found.at("bandwidths").list().back();
    double size = memory.at("working_set_bytes").number();
    CHECK(memory.at("read_bytes_per_s").number() == 1e15 / size && memory.at("triad_bytes_per_s").number() == 3e15 / size);
    for (const Asked &each : asked_of(library, [&] { perfsuite::measured_ceilings(library, 3, 1); })) {
        CHECK(each.budget_ms == 1);
    }
    CHECK(failure_of([&] { perfsuite::measured_ceilings(library, 1025, 10); }).find("no luck (status 3); try fewer") !=
          std::string::npos);
}

TEST(sentinels_are_times_of_fixed_work) {
    perfsuite::Library library(test_arguments[2]);
    Value found;
    auto asked = asked_of(library, [&] { found = perfsuite::measured_sentinels(library, 3); });
    CHECK(asked.size() == 2 && asked[0].what == 64 * MIB && asked[1].what == 0);
    CHECK(asked[0].budget_ms + asked[1].budget_ms < 200);
    CHECK(found.at("memory_ns").whole() == 64 * MIB / 64 && found.at("compute_ns").whole() == 1000000);
}

TEST(a_survey_goes_round) {
    perfsuite::Library library(test_arguments[2]);
    Value found;
    auto asked = asked_of(library, [&] { found = perfsuite::surveyed_ceilings(library, 2, {1, 2}, 20000); });
    std::set<std::pair<int32_t, int64_t>> slots;
    int64_t spent_ms = 0;
    for (const Asked &each : asked) {
        slots.insert({each.n_threads, each.what});
        spent_ms += each.budget_ms;
    }
    CHECK(asked.size() == 5 * slots.size() && spent_ms > 19000 && spent_ms < 21000);
    for (size_t at = slots.size(); at < asked.size(); at++) { /* each round asks for everything in one order */
        CHECK(asked[at].what == asked[at - slots.size()].what);
    }
    CHECK(slots.count({2, 64 * KIB}) && slots.count({2, 128 * KIB}) && slots.count({1, 32 * KIB}));
    CHECK(!slots.count({1, 64 * KIB}) && slots.count({1, 128 * KIB})); /* coarse for other numbers of threads */
    std::map<std::string, int> kinds;
    for (const Value &ceiling : found.list()) {
        kinds[ceiling.at("kind").text()]++;
        bool is_missing = ceiling.at("kind").text() == "f16";
        CHECK(ceiling.at("rate").is_nil() == is_missing && ceiling.at("missing").text().empty() != is_missing);
        CHECK(is_missing || ceiling.at("rate").at("n_rounds").whole() == 5);
    }
    CHECK(kinds["fp32"] == 2 && kinds["read"] == kinds["triad"] && kinds["read"] > 10);
    for (const Asked &each : asked_of(library, [&] { perfsuite::surveyed_ceilings(library, 2, {}, 1); })) {
        CHECK(each.budget_ms == 3);
    }
}

TEST(another_engine_is_refused) {
    CHECK(failure_of([] { perfsuite::refuse_other_engine("/engine", "0"); }).find("another llama.cpp (none)") !=
          std::string::npos);
    std::filesystem::path copies = std::filesystem::temp_directory_path() / ("perfsuite-copies-" + std::to_string(getpid()));
    std::filesystem::create_directory(copies);
    std::filesystem::copy_file(test_arguments[1], copies / "libggml-x.so.0");
    std::filesystem::create_directory(copies / "other");
    std::filesystem::copy_file(test_arguments[1], copies / "other" / "libggml-x.so");
    {
        perfsuite::Library loaded((copies / "libggml-x.so.0").string());
        perfsuite::refuse_foreign_libraries(copies.string());
        perfsuite::refuse_foreign_libraries((copies / "nowhere").string());
        CHECK(failure_of([&] { perfsuite::refuse_foreign_libraries((copies / "other").string()); })
                  .find("other: libggml-x.so was loaded from " + (copies / "libggml-x.so.0").string() + ", not") !=
              std::string::npos);
    }
    std::filesystem::remove_all(copies);
    std::string id = perfsuite::library_build_id(test_arguments[1]);
    CHECK(id.size() == 40 && id.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(perfsuite::resident_sample().is_nil() || perfsuite::resident_sample().list().size() == 4);
    CHECK(perfsuite::peak_rss_bytes() > 0);
}
