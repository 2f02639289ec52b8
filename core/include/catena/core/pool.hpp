// What a thread has: free lists of small memory blocks, used instead of heap memory during calls, and
// thread-local objects.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace catena {

// Blocks of up to 1 KiB are recycled; larger ones come from the heap. Any thread may free any
// block.
void* pool_allocate(std::size_t bytes);
void pool_free(void* block, std::size_t bytes) noexcept;

// The base of classes whose objects are allocated from the pool.
class Pooled {
public:
    static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
    static void operator delete(void* block, std::size_t bytes) noexcept {
        pool_free(block, bytes);
    }
};

template <class T>
struct PoolAllocator {
    using value_type = T;
    PoolAllocator() = default;
    template <class U>
    PoolAllocator(const PoolAllocator<U>&) noexcept {}  // NOLINT: allocators convert
    T* allocate(std::size_t n) { return static_cast<T*>(pool_allocate(n * sizeof(T))); }
    void deallocate(T* block, std::size_t n) noexcept { pool_free(block, n * sizeof(T)); }
    bool operator==(const PoolAllocator&) const = default;
};

// ---- objects of a thread

// The base of objects that keep_for_thread() owns.
struct ThreadObject {
    virtual ~ThreadObject() = default;
    ThreadObject* next = nullptr;
};
// Destroys the object when the calling thread ends; objects of the main thread are never destroyed.
// Throws std::bad_alloc.
void keep_for_thread(std::unique_ptr<ThreadObject> object);

// A thread_local object whose allocation failure can be reported. Constructs a T for each thread at
// the first get() there:
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
