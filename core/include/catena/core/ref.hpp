// An intrusive reference to an object with retain() and release(), and a counter for such objects.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace catena {

// The number of references to an object.
class RefCount {
public:
    explicit RefCount(std::uint32_t n) : n_(n) {}
    void add() noexcept { n_.fetch_add(1, std::memory_order_relaxed); }
    // Returns whether it was the last one. An acquire load is enough to know that there is no other
    // reference, so the common case needs no locked instruction and leaves 1.
    bool drop() noexcept { return get() == 1 || n_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
    std::uint32_t get() const noexcept { return n_.load(std::memory_order_acquire); }
    void reset() noexcept { n_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<std::uint32_t> n_;
};

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

}  // namespace catena
