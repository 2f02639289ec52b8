// PerThread: an object of each thread, for variables that are thread_local.
#pragma once

#include <memory>
#include <utility>

namespace catena {

// What lives until its thread ends.
class ThreadObject {
public:
    ThreadObject() = default;
    ThreadObject(const ThreadObject&) = delete;
    ThreadObject& operator=(const ThreadObject&) = delete;
    virtual ~ThreadObject() = default;

private:
    friend struct ThreadObjects;
    ThreadObject* next_ = nullptr;
};
// Keeps the object until the calling thread ends; for ever if it is the one that leaves main(). Throws
// std::bad_alloc.
void keep_for_thread(std::unique_ptr<ThreadObject> object);

// A thread_local T that is made at its first use:
//     static thread_local constinit PerThread<T> mine;
//     T& here = mine.get(arguments of T's constructor);
// If there is no memory for a plain thread_local T, glibc ends the process; this throws std::bad_alloc.
template <class T>
class PerThread {
public:
    template <class... A>
    T& get(A&&... arguments) {
        if (kept_ == nullptr) {
            auto made = std::make_unique<Kept>(kept_, std::forward<A>(arguments)...);
            Kept* const kept = made.get();
            keep_for_thread(std::move(made));
            kept_ = kept;
        }
        return kept_->value;
    }

private:
    struct Kept : ThreadObject {
        template <class... A>
        explicit Kept(Kept*& user, A&&... arguments)
            : slot(user), value(std::forward<A>(arguments)...) {}
        ~Kept() override { slot = nullptr; }
        Kept*& slot;
        T value;
    };
    Kept* kept_ = nullptr;
};

}  // namespace catena
