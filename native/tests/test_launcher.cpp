/* The launcher of OpenCL kernels, above a library that stands in for a driver. */
#include <cstdlib>
#include <filesystem>
#include <string>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "check.h"
#include "fake_driver.h"
#include "launcher/contents.h"
#include "launcher/devices.h"
#include "launcher/launch_steps.h"
#include "launcher/opencl.h"
#include "launcher/placed_kernels.h"
#include "worker/base64.h"
#include "worker/library.h"
#include "worker/message.h"
#include "worker/sha256.h"

using perfsuite::Bytes;
using perfsuite::Failure;
using perfsuite::OpenCl;
using perfsuite::Value;
namespace opencl = perfsuite::opencl;

/* The numbers and types of the launcher are those of OpenCL's own headers. */
static_assert(opencl::PROFILING_INFO_NOT_AVAILABLE == CL_PROFILING_INFO_NOT_AVAILABLE);
static_assert(opencl::PLATFORM_NAME == CL_PLATFORM_NAME && opencl::PLATFORM_VERSION == CL_PLATFORM_VERSION);
static_assert(opencl::ALL_DEVICES == CL_DEVICE_TYPE_ALL && opencl::CPU == CL_DEVICE_TYPE_CPU);
static_assert(opencl::GPU == CL_DEVICE_TYPE_GPU && opencl::ACCELERATOR == CL_DEVICE_TYPE_ACCELERATOR);
static_assert(opencl::DEVICE_TYPE == CL_DEVICE_TYPE && opencl::DEVICE_COMPUTE_UNITS == CL_DEVICE_MAX_COMPUTE_UNITS);
static_assert(opencl::DEVICE_GLOBAL_MEMORY == CL_DEVICE_GLOBAL_MEM_SIZE);
static_assert(opencl::DEVICE_LOCAL_MEMORY == CL_DEVICE_LOCAL_MEM_SIZE && opencl::DEVICE_NAME == CL_DEVICE_NAME);
static_assert(opencl::DEVICE_GROUP_ITEMS == CL_DEVICE_MAX_WORK_GROUP_SIZE);
static_assert(opencl::DEVICE_AXIS_ITEMS == CL_DEVICE_MAX_WORK_ITEM_SIZES);
static_assert(opencl::DEVICE_ALLOCATION == CL_DEVICE_MAX_MEM_ALLOC_SIZE);
static_assert(opencl::DEVICE_EXTENSIONS == CL_DEVICE_EXTENSIONS);
static_assert(opencl::DRIVER_VERSION == CL_DRIVER_VERSION && opencl::DEVICE_VERSION == CL_DEVICE_VERSION);
static_assert(opencl::PROFILING_QUEUE == CL_QUEUE_PROFILING_ENABLE && opencl::READ_WRITE == CL_MEM_READ_WRITE);
static_assert(opencl::READ_ONLY == CL_MEM_READ_ONLY && opencl::COPY_HOST_POINTER == CL_MEM_COPY_HOST_PTR);
static_assert(opencl::PROGRAM_BINARY_SIZES == CL_PROGRAM_BINARY_SIZES && opencl::BUILD_LOG == CL_PROGRAM_BUILD_LOG);
static_assert(opencl::PROGRAM_BINARIES == CL_PROGRAM_BINARIES && opencl::QUEUED == CL_PROFILING_COMMAND_QUEUED);
static_assert(opencl::SUBMIT == CL_PROFILING_COMMAND_SUBMIT && opencl::START == CL_PROFILING_COMMAND_START);
static_assert(opencl::END == CL_PROFILING_COMMAND_END && sizeof(size_t) == sizeof(void *));

/* What a function fails with; "" where it does not. */
template <typename Function> static std::string failure_of(Function function) {
    try {
        function();
    } catch (const Failure &failure) {
        return failure.what();
    }
    return "";
}

static bool holds(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

static Value floats(int64_t seed, int64_t count, double scale = 1.0, double offset = 0.0) {
    return Value::Map{{"kind", "floats"}, {"seed", seed},     {"n_bytes", 4 * count}, {"scale", scale},
                      {"offset", offset}, {"mask", Bytes{"\xff"}}, {"limit", 0}};
}

static Value bits(int64_t seed, int64_t n_bytes, std::string mask) {
    return Value::Map{{"kind", "bits"}, {"seed", seed},       {"n_bytes", n_bytes}, {"scale", 1.0},
                      {"offset", 0.0},  {"mask", Bytes{mask}}, {"limit", 0}};
}

static Value wholes(int64_t seed, int64_t count, int64_t limit) {
    return Value::Map{{"kind", "wholes"}, {"seed", seed},          {"n_bytes", 4 * count}, {"scale", 1.0},
                      {"offset", 0.0},    {"mask", Bytes{"\xff"}}, {"limit", limit}};
}

static Value cycle(int64_t count, int64_t limit, double offset) {
    Value content = wholes(0, count, limit);
    content.set("kind", "cycle");
    content.set("offset", offset);
    return content;
}

static std::string digest_of(const std::string &bytes) {
    perfsuite::Sha256 digest;
    digest.add(bytes);
    return digest.hex();
}

/* The digests are those of tests/measure/launches/test_contents.py. */
TEST(contents_are_those_of_the_desk) {
    CHECK(digest_of(perfsuite::drawn_bytes(floats(7, 1001))) ==
          "6ef99b5869495a793ea1eb335ede053d566d8241bd67cfee839ace1994bf7827");
    CHECK(digest_of(perfsuite::drawn_bytes(floats(7, 1001, 8.0, 1000.0))) ==
          "4564d9638599d5047fbd08cb30f98f07363f7a7f5325b11ba61eddf10a660669");
    CHECK(digest_of(perfsuite::drawn_bytes(bits(8, 1003, "\xff\xbf\xff"))) ==
          "c79ff74d5cb81afa628737dd26054837fbeff997caf0cefe728e091f8b2a08d3");
    CHECK(digest_of(perfsuite::drawn_bytes(wholes(9, 1001, 49152))) ==
          "8702caf66a68d06490970f4af4d62b3ba5aa9c8616ad4be8d09ed7cb6cf0f40e");
    CHECK(digest_of(perfsuite::drawn_bytes(cycle(1001, 251, 2.0))) ==
          "058240ebb4efecc84d22eb5d34f731384cd1673e133aabfbca6e6b3c49b796e6");
    CHECK(holds(failure_of([] { perfsuite::drawn_bytes(floats(1, 0)); }), "asks for 0 bytes"));
    CHECK(holds(failure_of([] { perfsuite::drawn_bytes(bits(1, 8, "")); }), "mask of 0"));
    Value unknown = bits(1, 8, "\xff");
    unknown.set("kind", "x");
    CHECK(holds(failure_of([&] { perfsuite::drawn_bytes(unknown); }), "contents of kind 'x'"));
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

constexpr int64_t N_OUTPUTS = 6;

static Value launch(const std::string &entry, int64_t seed, Value beside = nullptr) {
    std::string n_bytes(4, '\0');
    n_bytes[0] = static_cast<char>(4 * N_OUTPUTS);
    Value::List contents;
    if (beside.is_nil()) {
        contents.push_back(floats(seed, N_OUTPUTS + 1));
    }
    return Value::Map{{"name", "case/" + entry},
                      {"program", 0},
                      {"entry", entry},
                      {"contents", std::move(contents)},
                      {"n_outputs", N_OUTPUTS},
                      {"beside", std::move(beside)},
                      {"scalars", Value::List{Bytes{n_bytes}}},
                      {"global_size", Value::List{4, 2}},
                      {"local_size", nullptr}};
}

static Value step(const std::string &kind, Value::List launches, int64_t n_launches = 1, int64_t n_least = 0,
                  int64_t budget_ns = 0, Value::List known = {}) {
    return Value::Map{{"kind", kind},         {"launches", std::move(launches)}, {"n_launches", n_launches},
                      {"n_warm_up", 2},       {"n_least", n_least},              {"budget_ns", budget_ns},
                      {"known_outputs", std::move(known)}};
}

/* Turns of two launches at least, with so many at most; rounds by their leaders, of which three are taken at least. */
static Value turns(Value::List launches, int64_t n_launches, int64_t budget_ns, Value::List leaders) {
    Value found = step("turns", std::move(launches), n_launches, 3, budget_ns);
    found.set("n_turns", 2);
    found.set("leaders", std::move(leaders));
    return found;
}

static Value plan(Value::List launches, Value::List steps, const std::string &source = "copy overrun nothing") {
    return Value::Map{{"platform_index", 0},
                      {"device_index", 1},
                      {"platform_name", "Fakes"},
                      {"device_name", "second"},
                      {"programs", Value::List{Value::Map{{"source", source}, {"options", "-DX"}}}},
                      {"launches", std::move(launches)},
                      {"steps", std::move(steps)},
                      {"built_dir", nullptr}};
}

constexpr int64_t A_SECOND_NS = 1000000000;

static Value rounds(Value::List launches, int64_t n_least, int64_t target_ns) {
    Value found = step("rounds", std::move(launches), 2, n_least);
    found.set("target_ns", target_ns);
    return found;
}

static const OpenCl &library(void) {
    static const OpenCl found({test_arguments[1]});
    return found;
}

static Value taken(const Value &planned) { return perfsuite::taken_steps(library(), planned); }

/* ---- tests ------------------------------------------------------------------------------------------------------ */

TEST(devices_are_described) {
    Value::List found = perfsuite::described_devices(library());
    CHECK(found.size() == 2 && found[0].at("type").text() == "cpu" && found[1].at("type").text() == "gpu");
    CHECK(found[1].at("device_name").text() == "second" && found[1].at("platform_name").text() == "Fakes");
    CHECK(found[1].at("device_index").whole() == 1 && found[1].at("compute_units").whole() == 2);
    CHECK(found[0].at("global_memory_bytes").whole() == 4096);
    Value::List limits = perfsuite::device_limits(library());
    CHECK(limits.size() == 2 && limits[1].at("extensions").text() == "cl_khr_a cl_khr_b");
    CHECK(limits[0].at("allocation_bytes").whole() == 4096 && limits[0].at("group_items").whole() == 64);
    CHECK(limits[0].at("axis_items").list().size() == 3 && limits[0].at("axis_items").list()[1].whole() == 8);
    Value changed = plan({}, {});
    changed.set("device_name", "third");
    CHECK(failure_of([&] { taken(changed); }) ==
          "OpenCL: Fakes: second is device 1 of platform 0, expected Fakes: third; run it again");
    changed.set("device_index", 2);
    CHECK(holds(failure_of([&] { taken(changed); }), "OpenCL: none is device 2"));
}

TEST(an_output_comes_back) {
    Value told = taken(plan({launch("copy", 5)}, {step("output", {0})}));
    const Value &answer = told.at("steps").list().at(0);
    std::string expected = perfsuite::drawn_bytes(floats(5, N_OUTPUTS + 1)).substr(0, 4 * N_OUTPUTS);
    CHECK(answer.at("is_guard_whole").boolean() && answer.at("output").bytes() == expected);
    CHECK(answer.at("sha256").text() == digest_of(expected));
    Value::List known = {"other", digest_of(expected)};
    told = taken(plan({launch("copy", 5)}, {step("output", {0}, 1, 0, 0, known)}));
    CHECK(told.at("steps").list()[0].at("output").is_nil());
    CHECK(told.at("steps").list()[0].at("sha256").text() == digest_of(expected));
}

TEST(what_is_not_written_and_what_is_too_much_is_seen) {
    Value told = taken(
        plan({launch("nothing", 5), launch("overrun", 5)}, {step("output", {0}), step("output", {1})}));
    CHECK(told.at("steps").list()[0].at("output").bytes() == std::string(4 * N_OUTPUTS, '\xff'));
    CHECK(!told.at("steps").list()[1].at("is_guard_whole").boolean());
    CHECK(told.at("steps").list()[1].find("output") == nullptr);
}

TEST(launches_take_turns) {
    fake_driver_reset();
    Value told = taken(
        plan({launch("copy", 5), launch("nothing", 5, 0)},
                 {turns({0, 1}, 2, A_SECOND_NS, {Value::List{0}, Value::List{1}})}));
    CHECK(std::string(fake_driver_launched()) == "cncn" /* the warm-up */ "n" "cnnc" "c" "nccn");
    CHECK(told.at("steps").list()[0].at("n_per_round").list()[0].whole() == 2);
    const Value::List &times = told.at("steps").list()[0].at("times").list();
    CHECK(times.size() == 2);
    for (const Value &each : times) {
        const Value::List &start = each.at("start_ns").list(), &end = each.at("end_ns").list();
        CHECK(start.size() == 4 && end.size() == 4 && each.at("queued_ns").list().size() == 4);
        CHECK(end[0].whole() - start[0].whole() == 10 && start[0].whole() - each.at("submit_ns").list()[0].whole() == 10);
        CHECK(start[0].whole() < start[1].whole());
    }
    fake_driver_reset();
    Value::List leaders(9, Value::List{0, 1});
    taken(plan({launch("copy", 5), launch("nothing", 6)}, {turns({0, 1}, 100, -1, leaders)}));
    CHECK(std::string(fake_driver_launched()) == "ccnn" "cccnnn" "cccnnn" "cccnnn"); /* no time is left: the least */
}

TEST(a_burst_is_between_two_finishes) {
    fake_driver_reset();
    Value told = taken(plan({launch("copy", 5)}, {step("burst", {0}, 7)}));
    const Value &answer = told.at("steps").list()[0];
    CHECK(std::string(fake_driver_launched()) == "ccccccc" && answer.at("host_ns").whole() >= 0);
    CHECK(answer.at("start_ns").list().size() == 7 && answer.at("end_ns").list().size() == 7);
}

TEST(what_does_not_build_is_told_with_its_log) {
    Value broken = plan({launch("copy", 5)}, {step("output", {0})}, "copy broken");
    Value told = taken(broken);
    CHECK(told.at("unbuilt").at("launch").whole() == 0 && told.find("steps") == nullptr);
    CHECK(told.at("unbuilt").at("log").text() ==
          "options: -DX\nclBuildProgram failed: BUILD_PROGRAM_FAILURE\n\nline 1: it is broken");
    Value lacking = plan({launch("copy", 5), launch("nothing", 5)}, {step("output", {0}), step("output", {1})}, "copy");
    told = taken(lacking);
    CHECK(told.at("unbuilt").at("launch").whole() == 1);
    CHECK(told.at("unbuilt").at("log").text() == "no kernel nothing in the program: INVALID_KERNEL_NAME");
}

TEST(a_launch_that_writes_to_its_inputs_says_what_they_hold) {
    Value writing = launch("back", 5);
    writing.set("are_inputs_written", true);
    Value told = taken(plan({launch("copy", 5), writing}, {step("output", {0}), step("output", {1})},
                                                 "copy back"));
    const Value::List &steps = told.at("steps").list();
    CHECK(steps[0].at("inputs").list().empty());
    std::string input = perfsuite::drawn_bytes(floats(5, N_OUTPUTS + 1));
    input.replace(0, 4 * N_OUTPUTS, std::string(4 * N_OUTPUTS, '\xff')); /* the poison of the output */
    CHECK(steps[1].at("inputs").list().size() == 1 && steps[1].at("inputs").list()[0].text() == digest_of(input));
}

TEST(a_step_that_may_fail_says_why) {
    Value may_fail = step("output", {0}), other = step("output", {1});
    may_fail.set("may_fail", true);
    Value told = taken(plan({launch("nothing", 5), launch("copy", 5)}, {may_fail, other}, "copy"));
    const Value::List &steps = told.at("steps").list();
    CHECK(steps[0].at("unbuilt").text() == "no kernel nothing in the program: INVALID_KERNEL_NAME");
    CHECK(steps[1].at("is_guard_whole").boolean());
    fake_driver_refuse(CL_OUT_OF_RESOURCES);
    told = taken(plan({launch("copy", 5)}, {may_fail}));
    fake_driver_refuse(CL_SUCCESS);
    const Value &refused = told.at("steps").list()[0];
    CHECK(holds(refused.at("refused").text(), "case/copy: ") && !refused.at("is_memory").boolean());
}

/* Each launch of the stand-in takes 10 ns, however many passes it makes. */
TEST(rounds_have_as_many_passes_as_last_long_enough) {
    fake_driver_reset();
    Value told = taken(
        plan({launch("lacking", 5), launch("nothing", 5, 0), launch("copy", 5, 1)}, {rounds({0, 1, 2}, 3, 10)}));
    CHECK(std::string(fake_driver_launched()) == "nc" /* one pass is enough */ "nnccnnccnncc");
    const Value::List &ways = told.at("steps").list()[0].at("ways").list();
    CHECK(ways.size() == 3 && holds(ways[0].at("unbuilt").text(), "no kernel lacking"));
    CHECK(ways[1].at("passes").whole() == 1 && ways[2].at("best_ns").list().size() == 3);
    CHECK(ways[2].at("best_ns").list()[0].whole() == 10);
    fake_driver_reset();
    told = taken(plan({launch("nothing", 5)}, {rounds({0}, 1, 1000)}));
    CHECK(told.at("steps").list()[0].at("ways").list()[0].at("passes").whole() == 1 << 30);
    CHECK(std::string(fake_driver_launched()) == "nnnnnn" "nn"); /* 1, 64, 64², 64³, 64⁴, 2³⁰ */
    told = taken(plan({launch("lacking", 5)}, {rounds({0}, 1, 10)}));
    CHECK(told.at("steps").list()[0].at("ways").list()[0].find("passes") == nullptr);
}

static std::string placed_bytes(const std::string &entry, const std::string &input, const std::string &source) {
    Value planned = launch(entry, 5);
    planned.set("contents", Value::List{Bytes{input}});
    return perfsuite::pack(Value::Map{{"source", source}, {"options", "-DX"}, {"launch", std::move(planned)}});
}

TEST(kernels_are_placed_and_launched_line_by_line) {
    fake_driver_reset();
    perfsuite::Progress progress;
    perfsuite::PlacedKernels kernels(library(), plan({}, {}), progress);
    CHECK(holds(kernels.description(), "Fakes: second"));
    std::string input = "the bytes that are copied.. ";
    auto place = [&](const std::string &entry, const std::string &source) {
        std::string bytes = perfsuite::to_base64(placed_bytes(entry, input, source));
        size_t half = bytes.size() / 8 * 4;
        CHECK(!kernels.answer("part " + bytes.substr(0, half)) && !kernels.answer("part " + bytes.substr(half)));
        return *kernels.answer("place");
    };
    CHECK(place("copy", "copy nothing overrun") == "1" && place("nothing", "copy nothing overrun") == "2");
    CHECK(fake_driver_built() == 1);
    CHECK(*kernels.answer("output 1") == "6");
    CHECK(perfsuite::from_base64(*kernels.answer("values 0 6")) == input.substr(0, 4 * N_OUTPUTS));
    CHECK(place("overrun", "copy nothing overrun") == "3" && *kernels.answer("output 3") == "0");
    CHECK(holds(perfsuite::from_base64(place("copy", "broken").substr(8)), "line 1: it is broken"));
    CHECK(place("copy", "copy") == "4");
    CHECK(*kernels.answer("time 3 1 2") == "10 10" && progress.place() == 1);
    CHECK(std::stoll(*kernels.answer("launch 1 5 1000000000")) > 0);
    CHECK(std::string(fake_driver_launched()) == "co" "cccnnn" "ccccc");
    CHECK(*kernels.answer("drop 1") == "");
    CHECK(holds(failure_of([&] { kernels.answer("output 1"); }), "the launch is closed"));
    CHECK(holds(failure_of([&] { kernels.answer("dance 1"); }), "asked for 'dance'"));
    CHECK(holds(failure_of([&] { kernels.answer("values 0 9"); }), "the output has 0"));
}

TEST(a_refusal_names_launch_and_device) {
    fake_driver_refuse(CL_OUT_OF_RESOURCES);
    std::string said = failure_of([&] { taken(plan({launch("copy", 5)}, {step("burst", {0})})); });
    fake_driver_refuse(CL_SUCCESS);
    CHECK(said == "case/copy: clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES on Fakes: second (gpu, driver 7)");
}

TEST(a_plan_that_makes_no_sense_is_refused) {
    auto said = [&](Value::List launches, Value::List steps) {
        return failure_of([&] { taken(plan(launches, steps)); });
    };
    CHECK(holds(said({launch("copy", 5)}, {step("dance", {0})}), "a step of kind 'dance'"));
    CHECK(holds(said({launch("copy", 5)}, {step("output", {})}), "has no launch"));
    CHECK(holds(said({launch("copy", 5)}, {turns({0}, 1, 1, {})}), "turns of 1 launches"));
    CHECK(holds(said({launch("copy", 5, 0)}, {step("output", {0})}), "launch 0 is beside 0"));
    Value uneven = launch("copy", 5);
    uneven.set("local_size", Value::List{1});
    CHECK(holds(said({uneven}, {step("output", {0})}), "has 2 global sizes and 1 local ones"));
}

TEST(programs_are_built_once_and_kept) {
    std::string folder = (std::filesystem::temp_directory_path() / "perfsuite-launcher-XXXXXX").string();
    CHECK(mkdtemp(folder.data()));
    Value twice = plan({launch("copy", 5), launch("nothing", 6)}, {step("output", {0}), step("output", {1})});
    fake_driver_reset();
    taken(twice);
    CHECK(fake_driver_built() == 1);
    twice.set("built_dir", folder);
    taken(twice);
    CHECK(fake_driver_built() == 2);
    Value told = taken(twice);
    CHECK(fake_driver_built() == 2 && told.at("steps").list().size() == 2); /* from what is kept */
    twice.set("programs", Value::List{Value::Map{{"source", "copy overrun nothing"}, {"options", "-DY"}}});
    taken(twice);
    CHECK(fake_driver_built() == 3);
    std::filesystem::remove_all(folder);
}

TEST(a_library_is_looked_for_by_several_names) {
    const char *path = test_arguments[1];
    CHECK(OpenCl({"/nowhere/libOpenCL.so", path}).library == path);
    std::string said = failure_of([] { OpenCl({"/nowhere/libA.so", "/nowhere/libB.so"}); });
    CHECK(holds(said, "OpenCL: none of /nowhere/libA.so, /nowhere/libB.so can be loaded (/nowhere/libA.so: cannot"));
    CHECK(holds(said, "ocl-icd-libopencl1") && holds(said, "/etc/OpenCL/vendors"));
}

TEST(nothing_is_left) { CHECK(fake_driver_living() == 0); }
