// Prefetch: prepares items in advance, in several threads.
#pragma once

#include <catena/core/error.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace catena {

// Makes items number n, n + 1, ... in order, in several threads, a few items in advance. make(n)
// must depend only on n, and may run in any of the threads. next() rethrows its exception when that
// item is due; the next call of next() makes the item again. next() is not thread-safe.
template <class T>
class Prefetch {
public:
    using Make = std::function<T(std::int64_t)>;

    // Throws InvalidError if threads or ahead is below 1, std::system_error if no thread starts.
    Prefetch(Make make, std::int64_t first, int threads, std::size_t ahead)
        : make_(std::move(make)), taken_(first), started_(first), made_(ahead) {
        if (threads < 1 || ahead < 1)
            throw InvalidError("[Prefetch] threads, ahead: expected at least 1, got less");
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
    ~Prefetch() {
        for (std::jthread& thread : threads_)
            thread.request_stop();  // all, before one is waited for
    }

    T next() {
        std::unique_lock lock(mutex_);
        Made& slot = slot_of(taken_);
        changed_.wait(lock, [&] { return slot.thing || slot.failure; });
        const Made made = std::exchange(slot, {});
        if (made.failure) {
            for (Made& other : made_) other = {};
            started_ = taken_;
            ++generation_;
            changed_.notify_all();
            std::rethrow_exception(made.failure);
        }
        ++taken_;
        changed_.notify_all();
        return std::move(*made.thing);
    }

private:
    struct Made {
        std::unique_ptr<T> thing;
        std::exception_ptr failure;
    };

    // The next items, starting at taken_, each have a slot.
    Made& slot_of(std::int64_t n) { return made_[static_cast<std::uint64_t>(n) % made_.size()]; }

    void work(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        const auto has_room = [&] {
            return started_ < taken_ + static_cast<std::int64_t>(made_.size());
        };
        while (changed_.wait(lock, stop, has_room) && !stop.stop_requested()) {
            const std::int64_t n = started_++;
            const std::uint64_t generation = generation_;
            lock.unlock();
            Made made;
            try {
                made.thing = std::make_unique<T>(make_(n));
            } catch (...) {
                made.failure = std::current_exception();
            }
            lock.lock();
            if (generation == generation_) slot_of(n) = std::move(made);
            changed_.notify_all();
        }
    }

    Make make_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::int64_t taken_;    // next item to return
    std::int64_t started_;  // next item to make
    std::uint64_t generation_ = 0;
    std::vector<Made> made_;  // allocated once, as threads cannot report bad_alloc
    std::vector<std::jthread> threads_;
};

}  // namespace catena
