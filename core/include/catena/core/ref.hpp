// An intrusive reference to an object with retain() and release().
#pragma once

#include <cstddef>
#include <utility>

namespace catena {

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
