// cuda: which devices are GPUs, how calls name them, and the thread's current GPU.
#pragma once

#include <catena/core/variable.hpp>

#include <optional>

namespace catena::cuda {

using catena::Device;

// GPUs are the devices of one backend, numbered from 0: "cuda", unless $CATENA_GPU or set_backend()
// names another. The device of host arrays is never a GPU: for the backend "cpu", GPUs are the
// logical CPU devices after the first, so CATENA_GPU=cpu runs programs for several GPUs without a
// GPU. Thread-safe. $CATENA_GPU is read on first use, and by set_backend("").
std::string backend();
void set_backend(std::string_view name);  // "": from the environment

// The device of arrays that are not on a GPU; to_cpu() copies there.
Device host();
bool is_gpu(Device device);
int device_count();  // 0 if there is none
inline bool available() { return device_count() > 0; }
// The reason why there is no GPU; "" if there is one.
std::string reason();

// A device in a call: nothing (the current GPU), a GPU's number, a device, its name, or its array.
class DeviceLike {
public:
    DeviceLike() = default;
    DeviceLike(int id) : kind_(Kind::id), id_(id) {}                                // NOLINT
    DeviceLike(Device device) : kind_(Kind::device), device_(device) {}             // NOLINT
    DeviceLike(const Array& array) : kind_(Kind::home), device_(array.device()) {}  // NOLINT
    DeviceLike(const Variable& variable) : DeviceLike(variable.data()) {}           // NOLINT
    template <std::convertible_to<std::string_view> Name>
    DeviceLike(const Name& name) : DeviceLike(Device::get(name)) {}  // NOLINT

    // An empty Device counts as nothing too.
    bool is_nothing() const { return kind_ != Kind::id && !device_; }

private:
    enum class Kind : std::uint8_t { id, device, home };
    friend Device get_device(const DeviceLike& like);

    Kind kind_ = Kind::device;
    int id_ = 0;
    Device device_;
};

// The device of the argument. Nothing means the current GPU: Device::current() if that is a GPU,
// else the one chosen by init(), else GPU 0. An array or variable gives its device, or an empty
// Device if that is not a GPU. Throws DeviceError with the reason if there is no such GPU.
Device get_device(const DeviceLike& like = {});
// The same, but throws InvalidError, "[what] device: ...", if the result is not a GPU.
Device get_gpu(std::string_view what, const DeviceLike& like = {});

// Opens a GPU and makes it the default of the process; no thread's current device changes.
// Optional, because functions that need a GPU open it. GPUs do not survive a fork: loading plugins
// counts the GPUs and initializes the driver, so in processes forked after that everything that
// needs a GPU throws DeviceError. Otherwise throws the errors of get_gpu().
void init(const DeviceLike& device = {});
// Waits for all GPUs, releases their cached memory and resets the choice of init(). Arrays stay
// valid. May be called at any time, repeatedly, and without a GPU. After init(), it runs at exit.
void shutdown() noexcept;

// Makes a GPU, or another device given by name, the thread's current device: new arrays are made
// there until the next call, or the end of the enclosing using_device scope. There is no stack of
// contexts: to return to the previous device, use such a scope. Throws the errors of get_gpu().
void use_device(const DeviceLike& like);

// Makes the GPU of the first argument that is on one current in the thread, until the scope ends.
//
//     const cuda::using_device scope(x, y);
class [[nodiscard]] using_device {
public:
    template <std::convertible_to<DeviceLike>... Likes>
    [[nodiscard]] explicit using_device(const Likes&... likes)
        : using_device(std::initializer_list<DeviceLike>{DeviceLike(likes)...}) {}
    [[nodiscard]] explicit using_device(std::initializer_list<DeviceLike> likes);
    [[nodiscard]] explicit using_device(std::span<const Array> arrays);
    using_device(const using_device&) = delete;
    using_device& operator=(const using_device&) = delete;
    ~using_device() = default;

    Device device() const { return device_; }  // empty if inactive
    bool is_active() const { return static_cast<bool>(device_); }

private:
    bool enter(const DeviceLike& like);

    Device device_;
    std::optional<catena::using_device> scope_;
};
using DeviceUser = using_device;  // Chainer's name

}  // namespace catena::cuda
