// DeviceThreads: one thread for each of several devices.
#pragma once

#include <catena/core/device.hpp>

#include <atomic>
#include <cstddef>
#include <memory>

namespace catena {

// For replicas of a net that train in parallel:
//
//     DeviceThreads threads({Device::get("cpu:0"), Device::get("cpu:1")});
//     threads.run([&](std::size_t i) {
//         const Variable x = as_variable(parts[i]), t = as_variable(labels[i]);
//         F::softmax_cross_entropy((*replicas[i])(x), t).backward();
//     });
//     optimizer.accumulate_grads(replicas[1]->gradients());
//     optimizer.update();
//     replicas[1]->copy_parameters_from(*replicas[0]);
//
// A graph belongs to one thread at a time: a body must only use its own replica.
class DeviceThreads {
public:
    // The calling thread runs the first device. Throws ShapeError if there are no devices.
    explicit DeviceThreads(std::vector<Device> devices);
    ~DeviceThreads();

    std::size_t size() const noexcept { return devices_.size(); }
    const std::vector<Device>& devices() const noexcept { return devices_; }

    // Runs body(i) in each thread, with devices()[i] as the current device and the caller's
    // config(). Returns when all threads are done, and rethrows the exception of the first device
    // that failed. Throws InvalidError for concurrent or nested runs.
    void run(const std::function<void(std::size_t)>& body);

private:
    class Worker;

    std::vector<Device> devices_;
    std::atomic<bool> runs_ = false;
    std::vector<std::unique_ptr<Worker>> workers_;  // for all devices except the first
};

}  // namespace catena
