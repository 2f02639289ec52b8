// References, pooled memory and small vectors, which the classes of the core use.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace catena {

// The number of references to an object.
class RefCount {
public:
    explicit RefCount(std::uint32_t n) : n_(n) {}
    void add() noexcept { n_.fetch_add(1, std::memory_order_relaxed); }
    // Returns true if this was the last reference. If get() is 1, no other thread has a reference:
    // then the count may stay 1, which saves the atomic decrement in the common case.
    bool drop() noexcept { return get() == 1 || n_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
    std::uint32_t get() const noexcept { return n_.load(std::memory_order_acquire); }
    void reset() noexcept { n_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<std::uint32_t> n_;
};

// An intrusive reference to an object with retain() and release().
template <class T>
class Ref {
public:
    Ref() = default;
    Ref(std::nullptr_t) noexcept {}  // NOLINT: null is a value of every reference
    explicit Ref(T* object) noexcept : object_(object) {
        if (object_) object_->retain();
    }
    // Takes ownership of a reference that the caller holds.
    static Ref adopt(T* object) noexcept {
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    Ref(const Ref& other) noexcept : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_) object_->release();
    }

    T* get() const noexcept { return object_; }
    T* operator->() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    bool operator==(const Ref& other) const noexcept { return object_ == other.object_; }
    void reset() noexcept { *this = Ref(); }

private:
    T* object_ = nullptr;
};

// Whether freed blocks are kept for the next allocation.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool recycle = false;  // so that the sanitizer sees every free
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool recycle = false;
#else
inline constexpr bool recycle = true;
#endif
#else
inline constexpr bool recycle = true;
#endif

// ---- small memory blocks from thread-local free lists, which calls use instead of the heap

// Recycles blocks of up to 1 KiB; larger ones come from the heap. Any thread may free any block.
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
// Destroys the object when the thread ends; in the main thread never. Throws std::bad_alloc.
void keep_for_thread(std::unique_ptr<ThreadObject> object);

// A thread_local object for which running out of memory is an exception: the first get() of a
// thread allocates the thread's T, or throws std::bad_alloc.
//     static thread_local constinit PerThread<T> mine;
//     T& object = mine.get(arguments of T's constructor);
// With a plain thread_local T that has a destructor, glibc aborts the process instead.
template <class T>
class PerThread {
public:
    template <class... A>
    T& get(A&&... arguments) {
        if (kept_ == nullptr) [[unlikely]]
            make(std::forward<A>(arguments)...);
        return kept_->value;
    }
    // The same, but returns NULL if there is no memory.
    T* try_get() noexcept {
        try {
            return &get();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    // The thread's object, or NULL before the first get().
    T* find() const noexcept { return kept_ != nullptr ? &kept_->value : nullptr; }

private:
    struct Kept : ThreadObject {
        template <class... A>
        explicit Kept(Kept*& user, A&&... arguments)
            : slot(user), value(std::forward<A>(arguments)...) {
            slot = this;
        }
        ~Kept() override { slot = nullptr; }
        Kept*& slot;
        T value;
    };
    template <class... A>
    [[gnu::noinline]] void make(A&&... arguments) {
        keep_for_thread(std::make_unique<Kept>(kept_, std::forward<A>(arguments)...));
    }
    Kept* kept_ = nullptr;
};

// Sets a variable until the end of the scope.
template <class T>
class [[nodiscard]] using_value {
public:
    [[nodiscard]] using_value(T& variable, std::type_identity_t<T> value)
        : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
    using_value(using_value&&) = delete;
    ~using_value() { variable_ = std::move(before_); }

private:
    T& variable_;
    T before_;
};

// ---- small vectors

// A vector with inline storage for N elements; with more elements, its memory is from the pool. It
// replaces boost::container::small_vector, because public classes contain it and a program must not
// depend on the core's version of Boost.
template <class T, std::size_t N>
class SmallVector {
    static_assert(N > 0 && std::is_nothrow_move_constructible_v<T>);

public:
    using value_type = T;

    SmallVector() noexcept {}  // NOLINT: inline_storage_ stays uninitialized
    explicit SmallVector(std::size_t n) : SmallVector() { resize(n); }
    SmallVector(std::size_t n, const T& value) : SmallVector() {
        reserve(n);
        std::uninitialized_fill_n(data_, n, value);
        size_ = n;
    }
    template <std::forward_iterator I>
    SmallVector(I first, I last) : SmallVector() {
        append(first, last);
    }
    SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
    SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this == &other) return *this;
        clear();
        take(other);
        return *this;
    }
    ~SmallVector() {
        clear();
        free();
    }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    T* begin() noexcept { return data_; }
    const T* begin() const noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }
    const T* end() const noexcept { return data_ + size_; }
    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }
    T& back() noexcept { return data_[size_ - 1]; }
    const T& back() const noexcept { return data_[size_ - 1]; }

    template <class... A>
    T& emplace_back(A&&... arguments) {
        if (size_ == capacity_) {
            T made(std::forward<A>(arguments)...);  // the arguments may be elements of this vector
            grow(2 * capacity_);
            return *std::construct_at(data_ + size_++, std::move(made));
        }
        return *std::construct_at(data_ + size_++, std::forward<A>(arguments)...);
    }
    void push_back(const T& value) { emplace_back(value); }
    void push_back(T&& value) { emplace_back(std::move(value)); }
    void pop_back() noexcept { std::destroy_at(data_ + --size_); }
    // The elements must not be in this vector.
    template <std::forward_iterator I>
    void append(I first, I last) {
        const auto n = static_cast<std::size_t>(std::distance(first, last));
        reserve(size_ + n);
        std::uninitialized_copy(first, last, data_ + size_);
        size_ += n;
    }
    void assign(std::initializer_list<T> values) {
        clear();
        append(values.begin(), values.end());
    }
    void resize(std::size_t n) {
        resize(n, [](T* first, T* last) { std::uninitialized_value_construct(first, last); });
    }
    // New elements are uninitialized.
    void resize_for_overwrite(std::size_t n) {
        resize(n, [](T* first, T* last) { std::uninitialized_default_construct(first, last); });
    }
    void reserve(std::size_t n) {
        if (n > capacity_) grow(std::max(n, 2 * capacity_));
    }
    void clear() noexcept { shrink(0); }

private:
    T* inline_storage() noexcept { return reinterpret_cast<T*>(inline_storage_); }
    void shrink(std::size_t n) noexcept {
        if (n >= size_) return;
        std::destroy(data_ + n, data_ + size_);
        size_ = n;
    }
    template <class Construct>
    void resize(std::size_t n, const Construct& construct) {
        shrink(n);
        reserve(n);
        construct(data_ + size_, data_ + n);
        size_ = n;
    }
    void grow(std::size_t n) {
        T* const larger = PoolAllocator<T>().allocate(n);
        std::uninitialized_move(begin(), end(), larger);
        std::destroy(begin(), end());
        free();
        data_ = larger;
        capacity_ = n;
    }
    void free() noexcept {
        if (data_ != inline_storage()) PoolAllocator<T>().deallocate(data_, capacity_);
    }
    // Moves the elements of other to this vector, which must be empty.
    void take(SmallVector& other) noexcept {
        if (other.data_ == other.inline_storage()) {  // at most N elements, which fit
            std::uninitialized_move(other.begin(), other.end(), data_);
            size_ = other.size_;
            other.clear();
        } else {
            free();
            data_ = std::exchange(other.data_, other.inline_storage());
            capacity_ = std::exchange(other.capacity_, N);
            size_ = std::exchange(other.size_, 0);
        }
    }

    T* data_ = inline_storage();
    std::size_t size_ = 0;
    std::size_t capacity_ = N;
    alignas(T) std::byte inline_storage_[N * sizeof(T)];
};

}  // namespace catena
