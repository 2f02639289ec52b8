// A coroutine that waits for MPI requests and for other tasks.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace catena_mpi {

class Task {
public:
    struct promise_type {
        std::coroutine_handle<> continuation = std::noop_coroutine();
        std::exception_ptr error;

        Task get_return_object() { return Task(Handle::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct Return {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(
                    std::coroutine_handle<promise_type> h) noexcept {
                    return h.promise().continuation;
                }
                void await_resume() noexcept {}
            };
            return Return();
        }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };
    using Handle = std::coroutine_handle<promise_type>;

    Task() = default;
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Task() {
        if (handle_) handle_.destroy();
    }

    // Runs until the first wait. Later the awaited object resumes the coroutine.
    void start() { handle_.resume(); }
    bool done() const { return handle_.done(); }
    // Throws the exception that ended the coroutine.
    void check() const {
        if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    }

    bool await_ready() const noexcept { return false; }
    Handle await_suspend(std::coroutine_handle<> caller) noexcept {
        handle_.promise().continuation = caller;
        return handle_;
    }
    void await_resume() const { check(); }

private:
    explicit Task(Handle handle) : handle_(handle) {}

    Handle handle_;
};

}  // namespace catena_mpi
