// DeviceThreads: threads that wait for work.
#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/device_threads.hpp>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace catena {

class DeviceThreads::Worker {
public:
    explicit Worker(Device device) : device_(device), thread_([this] { work(); }) {}
    ~Worker() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    // task outlives wait().
    void start(const std::function<void()>& task, const Config& settings) {
        {
            const std::lock_guard lock(mutex_);
            task_ = &task;
            config_ = &settings;
            failure_ = nullptr;
        }
        changed_.notify_all();
    }
    std::exception_ptr wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return task_ == nullptr; });
        return failure_;
    }

private:
    void work() {
        const using_device scope(device_);
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return task_ || ends_; });
            if (!task_) return;
            std::exception_ptr failure;
            lock.unlock();
            try {
                config() = *config_;
                (*task_)();
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            failure_ = failure;
            task_ = nullptr;
            changed_.notify_all();
        }
    }

    Device device_;
    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* task_ = nullptr;
    const Config* config_ = nullptr;
    std::exception_ptr failure_;
    bool ends_ = false;
    std::thread thread_;  // last: it uses the others
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
    struct Ended {
        std::atomic<bool>& runs;
        ~Ended() { runs = false; }
    };
    const Ended ended{runs_};
    const Config settings = config();
    std::vector<std::function<void()>> tasks;
    for (std::size_t i = 1; i < size(); ++i) tasks.emplace_back([&body, i] { body(i); });
    for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i]->start(tasks[i], settings);
    std::exception_ptr failure;
    try {
        const using_device scope(devices_[0]);
        body(0);
    } catch (...) {
        failure = std::current_exception();
    }
    for (const auto& worker : workers_) {
        const std::exception_ptr other = worker->wait();
        if (!failure) failure = other;
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace catena
