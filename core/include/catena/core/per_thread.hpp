// PerThread: a thread_local object whose allocation failure can be reported.
#pragma once

#include <memory>
#include <new>
#include <utility>

namespace catena {

// The base of objects that keep_for_thread() owns.
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
// Destroys the object when the calling thread ends; objects of the main thread are never destroyed.
// Throws std::bad_alloc.
void keep_for_thread(std::unique_ptr<ThreadObject> object);

// Constructs a T for each thread at the first get() there:
//     static thread_local constinit PerThread<T> mine;
//     T& object = mine.get(arguments of T's constructor);
// get() throws std::bad_alloc without memory; for a plain thread_local T with a destructor, glibc
// would abort.
template <class T>
class PerThread {
public:
    template <class... A>
    T& get(A&&... arguments) {
        if (kept_ == nullptr) [[unlikely]]
            make(std::forward<A>(arguments)...);
        return kept_->value;
    }
    // The same, or NULL without memory.
    T* try_get() noexcept { return kept_ != nullptr ? &kept_->value : try_make(); }
    // The thread's object, or NULL before the first get().
    T* find() const noexcept { return kept_ != nullptr ? &kept_->value : nullptr; }

private:
    struct Kept : ThreadObject {
        template <class... A>
        explicit Kept(Kept*& user, A&&... arguments)
            : slot(user), value(std::forward<A>(arguments)...) {}
        ~Kept() override { slot = nullptr; }
        Kept*& slot;
        T value;
    };
    [[gnu::noinline]] T* try_make() noexcept {
        try {
            make();
            return find();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    template <class... A>
    [[gnu::noinline]] void make(A&&... arguments) {
        auto made = std::make_unique<Kept>(kept_, std::forward<A>(arguments)...);
        Kept* const kept = made.get();
        keep_for_thread(std::move(made));
        kept_ = kept;
    }
    Kept* kept_ = nullptr;
};

}  // namespace catena
