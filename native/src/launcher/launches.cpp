#include "launches.h"

#include <algorithm>

#include "../worker/sha256.h"
#include "../worker/text.h"
#include "contents.h"

namespace perfsuite {

namespace {

/* What lies behind the output, which a kernel must leave alone; and what both hold before. */
constexpr size_t GUARD_BYTES = 256;
constexpr char POISON = '\xFF';

ClOwned made_context(const OpenCl &cl, const OpenClDevice &device) {
    ClStatus status = opencl::SUCCESS;
    ClObject context = cl.clCreateContext(nullptr, 1, &device.handle, nullptr, nullptr, &status);
    return owned(context, status, "clCreateContext", cl.clReleaseContext);
}

ClOwned made_queue(const OpenCl &cl, const OpenClDevice &device, const ClOwned &context) {
    ClStatus status = opencl::SUCCESS;
    ClObject queue = cl.clCreateCommandQueue(context.get(), device.handle, opencl::PROFILING_QUEUE, &status);
    return owned(queue, status, "clCreateCommandQueue", cl.clReleaseCommandQueue);
}

std::vector<size_t> sizes_in(const Value::List &numbers) {
    std::vector<size_t> sizes;
    for (const Value &each : numbers) {
        sizes.push_back(static_cast<size_t>(each.whole()));
    }
    return sizes;
}

size_t output_bytes(const Value &plan) { return sizeof(float) * static_cast<size_t>(plan.at("n_outputs").whole()); }

} // namespace

LaunchDevice::LaunchDevice(const OpenCl &functions, const OpenClDevice &chosen, const Value::List &programs,
                           std::string built_dir)
    : cl(functions), device(chosen), context(made_context(cl, device)), queue(made_queue(cl, device, context)),
      sources_(programs), built_dir_(std::move(built_dir)), programs_(programs.size()) {}

ClOwned LaunchDevice::kernel(size_t program, const std::string &entry) {
    const Value &planned = sources_.at(program);
    programs_.resize(std::max(programs_.size(), sources_.size()));
    if (!programs_[program]) {
        programs_[program] = built(planned.at("source").text(), planned.at("options").text());
    }
    ClStatus status = opencl::SUCCESS;
    ClObject found = cl.clCreateKernel(programs_[program].get(), entry.c_str(), &status);
    if (status != opencl::SUCCESS) {
        throw Unbuilt{"no kernel " + entry + " in the program: " + status_name(status)};
    }
    return owned(found, status, "clCreateKernel", cl.clReleaseKernel);
}

ClOwned LaunchDevice::buffer(uint64_t flags, std::string &content) const {
    ClStatus status = opencl::SUCCESS;
    ClObject found = cl.clCreateBuffer(context.get(), flags | opencl::COPY_HOST_POINTER, content.size(), content.data(),
                                       &status);
    return owned(found, status, "clCreateBuffer", cl.clReleaseMemObject);
}

void LaunchDevice::finish() const { check(cl.clFinish(queue.get()), "clFinish"); }

/* From what an earlier process of the run has built, where it has. */
ClOwned LaunchDevice::built(const std::string &source, const std::string &options) const {
    std::string kept;
    if (!built_dir_.empty()) {
        Sha256 digest;
        digest.add(options + '\0' + source);
        kept = built_dir_ + "/" + digest.hex().substr(0, 32) + ".native.bin";
        if (std::optional<std::string> binary = read_file(kept)) {
            ClOwned program = from_binary(*binary);
            build(program.get(), options);
            return program;
        }
    }
    ClOwned program = from_source(source);
    build(program.get(), options);
    if (!kept.empty()) {
        write_whole(kept, binary(program.get()));
    }
    return program;
}

ClOwned LaunchDevice::from_source(const std::string &source) const {
    const char *text = source.c_str();
    size_t size = source.size();
    ClStatus status = opencl::SUCCESS;
    ClObject program = cl.clCreateProgramWithSource(context.get(), 1, &text, &size, &status);
    return owned(program, status, "clCreateProgramWithSource", cl.clReleaseProgram);
}

ClOwned LaunchDevice::from_binary(const std::string &binary) const {
    const auto *bytes = reinterpret_cast<const unsigned char *>(binary.data());
    size_t size = binary.size();
    ClStatus status = opencl::SUCCESS;
    ClObject program = cl.clCreateProgramWithBinary(context.get(), 1, &device.handle, &size, &bytes, nullptr, &status);
    return owned(program, status, "clCreateProgramWithBinary", cl.clReleaseProgram);
}

void LaunchDevice::build(ClObject program, const std::string &options) const {
    ClStatus status = cl.clBuildProgram(program, 1, &device.handle, options.c_str(), nullptr, nullptr);
    if (status == opencl::SUCCESS) {
        return;
    }
    size_t size = 0;
    cl.clGetProgramBuildInfo(program, device.handle, opencl::BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    cl.clGetProgramBuildInfo(program, device.handle, opencl::BUILD_LOG, size, log.data(), nullptr);
    log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
    throw Unbuilt{"options: " + options + "\nclBuildProgram failed: " + status_name(status) + "\n\n" + log};
}

std::string LaunchDevice::binary(ClObject program) const {
    size_t size = 0;
    check(cl.clGetProgramInfo(program, opencl::PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "clGetProgramInfo");
    std::string bytes(size, '\0');
    char *to = bytes.data();
    check(cl.clGetProgramInfo(program, opencl::PROGRAM_BINARIES, sizeof to, &to, nullptr), "clGetProgramInfo");
    return bytes;
}

Buffers::Buffers(const LaunchDevice &device, const Value &plan) {
    const Value *are_written = plan.find("are_inputs_written");
    uint64_t use = are_written && are_written->boolean() ? opencl::READ_WRITE : opencl::READ_ONLY;
    try {
        for (const Value &content : plan.at("contents").list()) {
            std::string bytes = content.is_map() ? drawn_bytes(content) : content.bytes();
            inputs.push_back(device.buffer(use, bytes));
        }
        std::string poison(output_bytes(plan) + GUARD_BYTES, POISON);
        output = device.buffer(opencl::READ_WRITE, poison);
    } catch (const ClRefusal &refusal) {
        throw NoMemory(refusal.what());
    }
}

Launch::Launch(LaunchDevice &device, const Value &plan, std::shared_ptr<Buffers> buffers)
    : device_(device), output_bytes_(output_bytes(plan)),
      global_(sizes_in(plan.at("global_size").list())),
      kernel_(device.kernel(static_cast<size_t>(plan.at("program").whole()), plan.at("entry").text())),
      buffers_(std::move(buffers)) {
    if (const Value *local = plan.find("local_size")) {
        local_ = sizes_in(local->list());
    }
    if (global_.empty() || (!local_.empty() && local_.size() != global_.size())) {
        throw Failure("a launch has " + std::to_string(global_.size()) + " global sizes and " +
                      std::to_string(local_.size()) + " local ones; expected as many, or none of the latter");
    }
    auto set = [&](size_t size, const void *value) {
        check(device.cl.clSetKernelArg(kernel_.get(), n_arguments_++, size, value), "clSetKernelArg");
    };
    for (const ClOwned &each : buffers_->inputs) {
        ClObject handle = each.get();
        set(sizeof handle, &handle);
    }
    ClObject output = buffers_->output.get();
    set(sizeof output, &output);
    for (const Value &each : plan.at("scalars").list()) {
        set(each.bytes().size(), each.bytes().data());
    }
}

void Launch::set_last(uint32_t value) const {
    check(device_.cl.clSetKernelArg(kernel_.get(), n_arguments_ - 1, sizeof value, &value), "clSetKernelArg");
}

size_t Launch::poisoned_bytes() const { return output_bytes_ + GUARD_BYTES; }

ClOwned Launch::enqueue() const {
    ClObject event = nullptr;
    ClStatus status = device_.cl.clEnqueueNDRangeKernel(
        device_.queue.get(), kernel_.get(), static_cast<uint32_t>(global_.size()), nullptr, global_.data(),
        local_.empty() ? nullptr : local_.data(), 0, nullptr, &event);
    return owned(event, status, "clEnqueueNDRangeKernel", device_.cl.clReleaseEvent);
}

Stamps Launch::run() const {
    ClOwned event = enqueue();
    ClObject handle = event.get();
    check(device_.cl.clWaitForEvents(1, &handle), "clWaitForEvents");
    return stamps(event);
}

std::optional<std::string> Launch::output() const {
    const OpenCl &cl = device_.cl;
    constexpr uint32_t WAITS = 1;
    std::string bytes(poisoned_bytes(), POISON);
    check(cl.clEnqueueWriteBuffer(device_.queue.get(), buffers_->output.get(), WAITS, 0, bytes.size(), bytes.data(), 0,
                                  nullptr, nullptr),
          "clEnqueueWriteBuffer");
    run();
    check(cl.clEnqueueReadBuffer(device_.queue.get(), buffers_->output.get(), WAITS, 0, bytes.size(), bytes.data(), 0,
                                 nullptr, nullptr),
          "clEnqueueReadBuffer");
    bool is_guard_whole = bytes.find_first_not_of(POISON, output_bytes_) == std::string::npos;
    bytes.resize(output_bytes_);
    return is_guard_whole ? std::optional<std::string>(std::move(bytes)) : std::nullopt;
}

std::string Launch::input(size_t place, size_t n_bytes) const {
    constexpr uint32_t WAITS = 1;
    std::string bytes(n_bytes, '\0');
    check(device_.cl.clEnqueueReadBuffer(device_.queue.get(), buffers_->inputs.at(place).get(), WAITS, 0, n_bytes,
                                         bytes.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    return bytes;
}

Stamps Launch::stamps(const ClOwned &event) const {
    auto time_ns = [&](uint32_t name) {
        uint64_t time = 0;
        ClStatus status = device_.cl.clGetEventProfilingInfo(event.get(), name, sizeof time, &time, nullptr);
        if (status == opencl::PROFILING_INFO_NOT_AVAILABLE) {
            return uint64_t{0};
        }
        check(status, "clGetEventProfilingInfo");
        return time;
    };
    return {time_ns(opencl::QUEUED), time_ns(opencl::SUBMIT), time_ns(opencl::START), time_ns(opencl::END)};
}

} // namespace perfsuite
