// The devices of "river": their streams are threads with random delays, their memory is separate.
#pragma once

#include "control.h"

#include <catena/abi/ext/draft/graph.h>

#include <memory.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace river {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

// The state of an event after it was recorded on a stream.
struct Record {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    Clock::time_point time;

    void reach() {
        const std::lock_guard lock(mutex);
        done = true;
        time = Clock::now();
        changed.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done; });
    }
    bool reached() {
        const std::lock_guard lock(mutex);
        return done;
    }
};

struct Event {
    std::mutex mutex;
    std::shared_ptr<Record> last;

    std::shared_ptr<Record> get() {
        const std::lock_guard lock(mutex);
        return last;
    }
    void set(std::shared_ptr<Record> record) {
        const std::lock_guard lock(mutex);
        last = std::move(record);
    }
};

struct Counts {
    std::atomic<std::int64_t> allocations{0}, live_bytes{0}, pinned{0}, event_records{0},
        event_waits{0}, stream_syncs{0}, device_syncs{0}, fills{0}, peer_copies{0}, async_copies{0},
        streams{0}, launches{0}, frees_recording{0};
};

class Stream;

struct Device {
    Memory memory;
    Counts counts;
    std::atomic<int> delay{100};
    std::atomic<int> fail_in{0};  // counts down to the item that fails
    std::atomic<bool> lost{false};
    std::atomic<std::int64_t> limit{std::int64_t{1} << 40};
    std::atomic<std::int64_t> workspace{0};
    std::atomic<bool> strict{false};
    std::atomic<bool> held{false};
    std::mutex mutex;  // guards streams only, so that it does not order the streams' work
    std::vector<Stream*> streams;

    void pass() const {  // called before each item of work
        while (held.load(std::memory_order_relaxed))
            std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
};

class Stream {
public:
    explicit Stream(Device& device) : device_(device), thread_([this] { run(); }) {}
    ~Stream() {
        give([this] { stop_ = true; });
        thread_.join();
    }
    Device& device() { return device_; }

    void give(Work work) {
        const std::lock_guard lock(mutex_);
        if (recorded_) return recorded_->push_back(std::move(work));
        todo_.push_back(std::move(work));
        changed_.notify_all();
    }
    std::shared_ptr<Record> mark() {
        auto record = std::make_shared<Record>();
        give([record] { record->reach(); });
        return record;
    }
    bool idle() {
        const std::lock_guard lock(mutex_);
        return todo_.empty() && !busy_;
    }

    bool recording() {
        const std::lock_guard lock(mutex_);
        return recorded_ != nullptr;
    }
    void begin() {
        const std::lock_guard lock(mutex_);
        recorded_ = std::make_unique<std::vector<Work>>();
    }
    std::unique_ptr<std::vector<Work>> end() {
        const std::lock_guard lock(mutex_);
        return std::move(recorded_);
    }

private:
    void run() {
        std::minstd_rand random(std::random_device{}());
        while (!stop_) {
            Work work;
            {
                std::unique_lock lock(mutex_);
                busy_ = false;
                changed_.wait(lock, [&] { return !todo_.empty(); });
                work = std::move(todo_.front());
                todo_.pop_front();
                busy_ = true;
            }
            device_.pass();
            if (const int most = device_.delay; most > 0) {
                const auto time =
                    std::chrono::microseconds(random() % (static_cast<unsigned>(most) + 1));
                std::this_thread::sleep_for(time);
            }
            if (device_.fail_in > 0 && --device_.fail_in == 0) device_.lost = true;
            work();
        }
    }

    Device& device_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> todo_;
    std::unique_ptr<std::vector<Work>> recorded_;
    bool busy_ = false;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace river
