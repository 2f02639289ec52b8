// Selects GPUs by number: the devices of one backend, without the host's device.
#include <catena/cuda/device.hpp>
#include <catena/fail.hpp>

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

namespace catena::cuda {
namespace {

// The name of the backend. Names are never freed, so readers need only one atomic load.
std::atomic<const std::string*> backend_name{nullptr};  // null: not chosen yet
std::atomic<DeviceState*> first_choice{nullptr};        // set by init()
std::atomic<DeviceState*> gpu_0{nullptr};               // set by gpu(0), because finding it is slow
std::atomic<pid_t> opened_by{0};                        // the process that opened GPUs

// Sets the name of the backend and returns it. If name is empty, uses $CATENA_GPU, by default "cuda".
const std::string& choose(std::string_view name) {
    static std::mutex mutex;
    static auto* const names = new std::set<std::string, std::less<>>;  // never freed: read at exit
    if (name.empty()) {
        const char* said = std::getenv("CATENA_GPU");
        name = said && *said ? said : "cuda";
    }
    const std::lock_guard lock(mutex);
    const std::string& chosen = *names->emplace(name).first;
    backend_name.store(&chosen, std::memory_order_release);
    return chosen;
}

const std::string& name_of_backend() {
    const std::string* const name = backend_name.load(std::memory_order_acquire);
    return name ? *name : choose({});
}

bool has_host(std::string_view name) { return host().backend() == name; }

std::optional<BackendInfo> backend_info() {
    const std::string name = backend();
    for (BackendInfo& info : Device::backends()) {
        if (info.name == name) return std::move(info);
    }
    return {};
}

void require_this_process() {
    const pid_t owner = opened_by;
    if (owner == 0 || owner == getpid()) return;
    fail<DeviceError>(
        "[cuda] process: expected one that was forked before its parent opened GPUs, got a child "
        "of process {}, which had opened them",
        owner);
}

Device gpu(int id) {
    require_this_process();
    const std::string name = backend();
    const int n = device_count();
    if (id >= 0 && id < n) {
        const Device device = Device::get(fmt::format("{}:{}", name, has_host(name) ? id + 1 : id));
        opened_by = getpid();
        if (id == 0) gpu_0 = device.state();
        return device;
    }
    if (n == 0) fail<DeviceError>("[cuda] device {}: expected a GPU, got none: {}", id, reason());
    fail<DeviceError>("[cuda] device: expected the number of a GPU, 0 to {}, got {}", n - 1, id);
}

// Releases the device's cached memory. Ignores errors: a device that failed has none to release.
void give_back(Device device) noexcept {
    try {
        device.synchronize();
        device.release_cached();
    } catch (...) {
    }
}

}  // namespace

std::string backend() { return name_of_backend(); }

void set_backend(std::string_view name) { choose(name); }

Device host() {
    const catena::using_device scope{Device()};
    return Device::current();
}

bool is_gpu(Device device) {
    return device && device.backend() == name_of_backend() && device != host();
}

int device_count() {
    const auto info = backend_info();
    if (!info) return 0;
    return info->devices > 0 && has_host(info->name) ? info->devices - 1 : info->devices;
}

std::string reason() {
    if (available()) return {};
    const auto info = backend_info();
    if (info && info->devices == 0) return info->reason;
    try {
        return fmt::format("{} is the only device of its backend, and the host's",
                           Device::get(backend()).name());
    } catch (const Error& error) {  // no plugin provides it; the message lists the plugins
        return error.what();
    }
}

Device get_device(const DeviceLike& like) {
    if (like.kind_ == DeviceLike::Kind::id) return gpu(like.id_);
    if (like.kind_ == DeviceLike::Kind::home) return is_gpu(like.device_) ? like.device_ : Device();
    if (like.device_) return like.device_;
    for (const Device choice : {Device::current(), Device(first_choice), Device(gpu_0)}) {
        if (!is_gpu(choice)) continue;
        require_this_process();
        return choice;
    }
    return gpu(0);
}

Device get_gpu(std::string_view what, const DeviceLike& like) {
    const Device device = get_device(like);
    if (is_gpu(device)) return device;
    fail<InvalidError>("[{}] device: expected a GPU, got {}", what,
                       device ? device.name() : "what is on none");
}

void init(const DeviceLike& like) {
    const Device device = get_gpu("init", like);
    require_this_process();
    first_choice = device.state();
    opened_by = getpid();
    static const bool at_exit = std::atexit([] { shutdown(); }) == 0;
    (void)at_exit;
}

void shutdown() noexcept {
    first_choice = nullptr;
    const pid_t owner = opened_by;
    if (owner != 0 && owner != getpid()) return;  // the GPUs belong to the parent process
    try {
        for (const Device device : Device::opened()) {
            if (is_gpu(device)) give_back(device);
        }
    } catch (...) {  // no memory for the list
    }
}

void use_device(const DeviceLike& like) {
    const Device device = get_device(like);
    catena::use_device(device ? device : get_gpu("use_device", like));
}

using_device::using_device(std::initializer_list<DeviceLike> likes) {
    for (const DeviceLike& like : likes) {
        if (enter(like)) return;
    }
}

using_device::using_device(std::span<const Array> arrays) {
    for (const Array& array : arrays) {
        if (enter(array)) return;
    }
}

bool using_device::enter(const DeviceLike& like) {
    const Device device = like.is_nothing() ? Device() : get_device(like);
    if (!is_gpu(device)) return false;
    device_ = device;
    scope_.emplace(device);
    return true;
}

}  // namespace catena::cuda
