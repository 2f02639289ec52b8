// A vector with inline storage for N elements; larger ones are in the pool. We do not use Boost's,
// because public classes contain it, and a program must not depend on the Boost version of the
// core.
#pragma once

#include <catena/core/pool.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace catena {

template <class T, std::size_t N>
class SmallVector {
    static_assert(N > 0 && std::is_nothrow_move_constructible_v<T>);

public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    SmallVector() noexcept {}  // NOLINT: the room stays as it is
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
    SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
    SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
    SmallVector& operator=(const SmallVector& other) {
        if (this == &other) return *this;
        clear();
        append(other.begin(), other.end());
        return *this;
    }
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
    T* room() noexcept { return reinterpret_cast<T*>(room_); }
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
        if (data_ != room()) PoolAllocator<T>().deallocate(data_, capacity_);
    }
    // Leaves other empty; this one is empty before.
    void take(SmallVector& other) noexcept {
        if (other.data_ == other.room()) {  // at most N, which fit
            std::uninitialized_move(other.begin(), other.end(), data_);
            size_ = other.size_;
            other.clear();
        } else {
            free();
            data_ = std::exchange(other.data_, other.room());
            capacity_ = std::exchange(other.capacity_, N);
            size_ = std::exchange(other.size_, 0);
        }
    }

    T* data_ = room();
    std::size_t size_ = 0;
    std::size_t capacity_ = N;
    alignas(T) std::byte room_[N * sizeof(T)];
};

}  // namespace catena
