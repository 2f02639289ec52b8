// DeviceThreads: a worker thread for each device except the first, which the caller's thread runs.
#include "../support.hpp"

#include <catena/core/config.hpp>
#include <catena/device_threads.hpp>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

namespace catena {

class DeviceThreads::Worker {
public:
    using Task = std::packaged_task<void()>;

    explicit Worker(Device device)
        : thread_([this, device](const std::stop_token& stop) { work(device, stop); }) {}
    void start(Task task) {
        const std::lock_guard lock(mutex_);
        task_ = std::move(task);
        changed_.notify_one();
    }

private:
    void work(Device device, const std::stop_token& stop) {
        const using_device scope(device);
        std::unique_lock lock(mutex_);
        while (changed_.wait(lock, stop, [&] { return task_.valid(); })) {
            Task task = std::move(task_);
            lock.unlock();
            task();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    Task task_;
    std::jthread thread_;  // last, because it uses the members above
};

DeviceThreads::DeviceThreads(std::vector<Device> devices) : devices_(std::move(devices)) {
    if (devices_.empty())
        throw ShapeError("[DeviceThreads] devices: expected at least one, got none");
    for (std::size_t i = 1; i < devices_.size(); ++i)
        workers_.push_back(std::make_unique<Worker>(devices_[i]));
}
DeviceThreads::~DeviceThreads() = default;

void DeviceThreads::run(const std::function<void(std::size_t)>& body) {
    if (runs_.exchange(true))
        throw InvalidError("[DeviceThreads] run(): expected no concurrent run(), got one");
    const OnExit ended{[&] { runs_ = false; }};
    const Config settings = config();
    std::vector<Worker::Task> tasks;
    std::vector<std::future<void>> results;
    for (std::size_t i = 0; i < size(); ++i) {
        tasks.emplace_back([&, i] {
            config() = settings;
            body(i);
        });
        results.push_back(tasks.back().get_future());
    }
    for (std::size_t i = 1; i < size(); ++i) workers_[i - 1]->start(std::move(tasks[i]));
    {
        const using_device scope(devices_[0]);
        tasks[0]();
    }
    for (const std::future<void>& result : results) result.wait();  // all, before get() throws
    for (std::future<void>& result : results) result.get();
}

}  // namespace catena
