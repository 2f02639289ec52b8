// cuda: which devices are GPUs, how calls name them, and the thread's current one.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/device.hpp>
#include <catena/core/variable.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace catena::cuda {

using catena::Device;

// GPUs are the devices of one backend, numbered from 0: "cuda", unless $CATENA_GPU or set_backend()
// names another. The device that host arrays live on is never one of them: of the backend "cpu" they
// are the logical CPU devices after the first, so that a program for several GPUs can be tried without
// one, as CATENA_GPU=cpu program. For any thread.
// $CATENA_GPU is read when it is first needed, and by set_backend("").
std::string backend();
void set_backend(std::string_view name);  // "": as the environment says

// The device of arrays that are on no GPU; to_cpu() copies there.
Device host();
bool is_gpu(Device device);
int device_count();  // 0 where there is none
inline bool available() { return device_count() > 0; }
// The reason why there is no GPU; "" if there is one.
std::string reason();

// What names a device in a call: nothing (the current GPU), a GPU's number, a device or its name, or
// what lives on one.
class DeviceLike {
public:
    DeviceLike() = default;
    DeviceLike(int id) : kind_(Kind::id), id_(id) {}                                // NOLINT
    DeviceLike(Device device) : kind_(Kind::device), device_(device) {}             // NOLINT
    DeviceLike(const Array& array) : kind_(Kind::home), device_(array.device()) {}  // NOLINT
    DeviceLike(const Variable& variable) : DeviceLike(variable.data()) {}           // NOLINT
    DeviceLike(std::string_view name) : DeviceLike(Device::get(name)) {}            // NOLINT
    DeviceLike(const std::string& name) : DeviceLike(Device::get(name)) {}          // NOLINT
    DeviceLike(const char* name) : DeviceLike(Device::get(name)) {}                 // NOLINT

    // An empty Device is nothing, too.
    bool is_nothing() const { return kind_ != Kind::id && !device_; }

private:
    enum class Kind : std::uint8_t { id, device, home };
    friend Device get_device(const DeviceLike& like);

    Kind kind_ = Kind::device;
    int id_ = 0;
    Device device_;
};

// The device that the argument names. Nothing names the current GPU: Device::current() if that is a GPU,
// else the one that init() chose, else GPU 0. An array or variable names its device, or none if that is
// no GPU. Throws DeviceError with the reason if there is no such GPU.
Device get_device(const DeviceLike& like = {});
// The same, but throws InvalidError, "[what] device: ...", if the result is no GPU.
Device get_gpu(std::string_view what, const DeviceLike& like = {});

// Opens a GPU and makes it the process' first choice; no thread's current device changes. Not needed:
// whatever needs a GPU opens it. GPUs do not outlive a fork: once plugins are loaded, which counts them
// and so starts the driver, all that needs a GPU throws DeviceError in a forked process. Else throws as
// get_gpu().
void init(const DeviceLike& device = {});
// Waits for all GPUs, gives their cached memory back and forgets what init() chose. Arrays stay. May be
// called at any time, several times, and without a GPU. After init() the end of the process calls it.
void shutdown() noexcept;

// Makes a GPU, or another device that is named by name, the thread's current one: new arrays go there
// until the next call, or the end of the using_device scope that it is called in. There is no stack
// of contexts: to return to the device of before, use such a scope. Throws as get_gpu().
void use_device(const DeviceLike& like);

// Makes the first argument that names a GPU the thread's current device until the end of the scope. If
// none does it is inactive and changes nothing.
//
//     const cuda::using_device scope(x, y);
class [[nodiscard]] using_device {
public:
    template <std::convertible_to<DeviceLike>... Likes>
    explicit using_device(const Likes&... likes)
        : using_device(std::initializer_list<DeviceLike>{DeviceLike(likes)...}) {}
    explicit using_device(std::initializer_list<DeviceLike> likes);
    explicit using_device(std::span<const Array> arrays);
    using_device(const using_device&) = delete;
    using_device& operator=(const using_device&) = delete;
    ~using_device() = default;

    Device device() const { return device_; }  // none if inactive
    bool is_active() const { return static_cast<bool>(device_); }

private:
    bool enter(const DeviceLike& like);

    Device device_;
    std::optional<catena::using_device> scope_;
};
using DeviceUser = using_device;  // Chainer's name

}  // namespace catena::cuda
