#include "devices.h"

#include <vector>

namespace perfsuite {

namespace {

/* What a query says, without the blanks and zeros around it. */
template <typename Query> std::string text_of(Query query) {
    size_t size = 0;
    if (query(0, nullptr, &size) != opencl::SUCCESS || size == 0) {
        return "";
    }
    std::string text(size, '\0');
    if (query(size, text.data(), nullptr) != opencl::SUCCESS) {
        return "";
    }
    constexpr const char BLANKS[] = " \t\r\n";
    text.erase(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
    size_t first = text.find_first_not_of(BLANKS), last = text.find_last_not_of(BLANKS);
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string platform_text(const OpenCl &cl, ClObject platform, uint32_t name) {
    return text_of([&](size_t size, void *to, size_t *needed) {
        return cl.clGetPlatformInfo(platform, name, size, to, needed);
    });
}

std::string device_text(const OpenCl &cl, ClObject device, uint32_t name) {
    return text_of([&](size_t size, void *to, size_t *needed) {
        return cl.clGetDeviceInfo(device, name, size, to, needed);
    });
}

template <typename Number> Number device_number(const OpenCl &cl, ClObject device, uint32_t name) {
    Number number = 0;
    cl.clGetDeviceInfo(device, name, sizeof number, &number, nullptr);
    return number;
}

/* None where the driver says so, or fails: a platform whose device is gone must not hide the others. */
template <typename Query> std::vector<ClObject> listed(Query query) {
    uint32_t count = 0;
    if (query(0, nullptr, &count) != opencl::SUCCESS) {
        return {};
    }
    std::vector<ClObject> found(count);
    return count && query(count, found.data(), nullptr) == opencl::SUCCESS ? found : std::vector<ClObject>();
}

std::vector<ClObject> platforms(const OpenCl &cl) {
    return listed([&](uint32_t most, ClObject *to, uint32_t *count) { return cl.clGetPlatformIDs(most, to, count); });
}

std::vector<ClObject> devices_of(const OpenCl &cl, ClObject platform) {
    return listed([&](uint32_t most, ClObject *to, uint32_t *count) {
        return cl.clGetDeviceIDs(platform, opencl::ALL_DEVICES, most, to, count);
    });
}

const char *type_name(uint64_t bits) {
    return bits & opencl::GPU ? "gpu" : bits & opencl::CPU ? "cpu" : bits & opencl::ACCELERATOR ? "accelerator" : "other";
}

Value described(const OpenCl &cl, ClObject platform, ClObject device) {
    return Value::Map{
        {"platform_name", platform_text(cl, platform, opencl::PLATFORM_NAME)},
        {"platform_version", platform_text(cl, platform, opencl::PLATFORM_VERSION)},
        {"device_name", device_text(cl, device, opencl::DEVICE_NAME)},
        {"device_version", device_text(cl, device, opencl::DEVICE_VERSION)},
        {"driver_version", device_text(cl, device, opencl::DRIVER_VERSION)},
        {"type", type_name(device_number<uint64_t>(cl, device, opencl::DEVICE_TYPE))},
        {"compute_units", device_number<uint32_t>(cl, device, opencl::DEVICE_COMPUTE_UNITS)},
        {"global_memory_bytes", device_number<uint64_t>(cl, device, opencl::DEVICE_GLOBAL_MEMORY)},
        {"local_memory_bytes", device_number<uint64_t>(cl, device, opencl::DEVICE_LOCAL_MEMORY)},
    };
}

std::vector<size_t> axis_items(const OpenCl &cl, ClObject device) {
    size_t size = 0;
    cl.clGetDeviceInfo(device, opencl::DEVICE_AXIS_ITEMS, 0, nullptr, &size);
    std::vector<size_t> items(size / sizeof(size_t));
    cl.clGetDeviceInfo(device, opencl::DEVICE_AXIS_ITEMS, items.size() * sizeof(size_t), items.data(), nullptr);
    return items;
}

Value limits_of(const OpenCl &cl, ClObject device) {
    std::vector<size_t> items = axis_items(cl, device);
    return Value::Map{
        {"extensions", device_text(cl, device, opencl::DEVICE_EXTENSIONS)},
        {"allocation_bytes", device_number<uint64_t>(cl, device, opencl::DEVICE_ALLOCATION)},
        {"group_items", device_number<size_t>(cl, device, opencl::DEVICE_GROUP_ITEMS)},
        {"axis_items", Value::List(items.begin(), items.end())},
    };
}

} // namespace

Value::List device_limits(const OpenCl &cl) {
    Value::List found;
    for (ClObject platform : platforms(cl)) {
        for (ClObject device : devices_of(cl, platform)) {
            found.push_back(limits_of(cl, device));
        }
    }
    return found;
}

Value::List described_devices(const OpenCl &cl) {
    Value::List found;
    std::vector<ClObject> all = platforms(cl);
    for (size_t platform = 0; platform < all.size(); platform++) {
        std::vector<ClObject> devices = devices_of(cl, all[platform]);
        for (size_t device = 0; device < devices.size(); device++) {
            found.push_back(described(cl, all[platform], devices[device]));
            found.back().set("platform_index", platform);
            found.back().set("device_index", device);
        }
    }
    if (found.empty()) {
        throw Failure("OpenCL: " + cl.library +
                          " knows no platform with a device; expected an .icd file in /etc/OpenCL/vendors, or where "
                          "OCL_ICD_VENDORS says, that names a driver's library; install the driver of the device's "
                          "vendor (for the processor Debian's pocl-opencl-icd)",
                      "OpenClError");
    }
    return found;
}

OpenClDevice planned_device(const OpenCl &cl, const Value &plan) {
    auto platform = static_cast<size_t>(plan.at("platform_index").whole());
    auto device = static_cast<size_t>(plan.at("device_index").whole());
    std::vector<ClObject> all = platforms(cl), devices;
    if (platform < all.size()) {
        devices = devices_of(cl, all[platform]);
    }
    std::string seen = "none";
    if (device < devices.size()) {
        Value told = described(cl, all[platform], devices[device]);
        const std::string &name = told.at("device_name").text(), &of = told.at("platform_name").text();
        seen = of + ": " + name;
        if (name == plan.at("device_name").text() && of == plan.at("platform_name").text()) {
            return {devices[device], seen + " (" + told.at("type").text() + ", driver " +
                                         told.at("driver_version").text() + ")"};
        }
    }
    throw Failure("OpenCL: " + seen + " is device " + std::to_string(device) + " of platform " +
                      std::to_string(platform) + ", expected " + plan.at("platform_name").text() + ": " +
                      plan.at("device_name").text() + "; run it again",
                  "OpenClError");
}

} // namespace perfsuite
