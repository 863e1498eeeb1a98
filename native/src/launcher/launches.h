/* Kernels with their buffers on one device, ready to be launched. */
#ifndef PERFSUITE_LAUNCHER_LAUNCHES_H
#define PERFSUITE_LAUNCHER_LAUNCHES_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../worker/message.h"
#include "devices.h"
#include "opencl.h"

namespace perfsuite {

/* A program that does not build, or lacks a kernel. */
struct Unbuilt {
    std::string log;
};

/* The four times of a launch, ns of the device's clock; 0 where the driver has none. */
struct Stamps {
    uint64_t queued_ns, submit_ns, start_ns, end_ns;
};

/* A device with a queue on which launches run in order, and what was built for it. */
class LaunchDevice {
  public:
    /* `programs` are those of a plan, which outlives this, or a list that grows; what is built is kept in the folder `built_dir`, if any. */
    LaunchDevice(const OpenCl &cl, const OpenClDevice &device, const Value::List &programs, std::string built_dir);

    /* A kernel of the program at a place, built when first asked for; raises `Unbuilt`. */
    ClOwned kernel(size_t program, const std::string &entry);
    ClOwned buffer(uint64_t flags, std::string &content) const;
    void finish() const;

    const OpenCl &cl;
    const OpenClDevice device;
    const ClOwned context, queue;

  private:
    ClOwned built(const std::string &source, const std::string &options) const;
    ClOwned from_source(const std::string &source) const;
    ClOwned from_binary(const std::string &binary) const;
    void build(ClObject program, const std::string &options) const;
    std::string binary(ClObject program) const;

    const Value::List &sources_;
    std::string built_dir_;
    std::vector<ClOwned> programs_;
};

/* The buffers of a launch, or of several: what it reads, and an output that is poisoned to begin with. */
struct Buffers {
    /* Of a `PlannedLaunch`, whose contents may be the bytes themselves; raises `NoMemory` where the device refuses them. */
    Buffers(const LaunchDevice &device, const Value &plan);

    std::vector<ClOwned> inputs;
    ClOwned output;
};

/* A kernel with its arguments set: inputs, output, scalars. */
class Launch {
  public:
    /* `plan` is a `PlannedLaunch`; `buffers` are its own or another one's. */
    Launch(LaunchDevice &device, const Value &plan, std::shared_ptr<Buffers> buffers);

    /* Sets the last scalar, which is one of 32 bits. */
    void set_last(uint32_t value) const;

    /* Launches once, and does not wait. */
    ClOwned enqueue() const;
    /* Launches once, waits, and returns the times. */
    Stamps run() const;
    /* Launches once on a poisoned output, and returns what it holds then: bytes of 0xFF where nothing was written.
     * None where the kernel wrote behind it. */
    std::optional<std::string> output() const;
    /* What an input holds now. */
    std::string input(size_t place, size_t n_bytes) const;

    Stamps stamps(const ClOwned &event) const;

  private:
    size_t poisoned_bytes() const;

    LaunchDevice &device_;
    size_t output_bytes_;
    uint32_t n_arguments_ = 0;
    std::vector<size_t> global_, local_;
    ClOwned kernel_;
    std::shared_ptr<Buffers> buffers_;
};

} // namespace perfsuite

#endif
