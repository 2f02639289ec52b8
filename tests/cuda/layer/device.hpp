// Arrays on the device, and helpers of the layer's tests.
#pragma once

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <catena/plugin/cuda/reduce.cuh>

#include <cstring>
#include <random>
#include <vector>

namespace layer {

using namespace catena::plugin;
using cuda::Operand;
using cuda::Result;
using Extents = std::vector<std::int64_t>;

inline const cuda::Queue queue = {"layer", nullptr, 0};

// A copy of `values` on the device, `shift` elements after an aligned address, between guard areas.
template <class T>
class OnDevice {
public:
    explicit OnDevice(const std::vector<T>& values, std::size_t shift = 0)
        : n_(values.size()), shift_(guard + shift), host_(n_ + shift_ + guard) {
        std::memset(host_.data(), 0x5a, host_.size() * sizeof(T));
        std::copy(values.begin(), values.end(),
                  host_.begin() + static_cast<std::ptrdiff_t>(shift_));
        REQUIRE(cudaMalloc(&data_, host_.size() * sizeof(T)) == cudaSuccess);
        REQUIRE(cudaMemcpy(data_, host_.data(), host_.size() * sizeof(T), cudaMemcpyHostToDevice) ==
                cudaSuccess);
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    ~OnDevice() { cudaFree(data_); }

    T* data() const { return data_ + shift_; }
    // Returns the current values; checks that the guard areas are unchanged.
    std::vector<T> values() const {
        std::vector<T> now(host_.size());
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        REQUIRE(cudaMemcpy(now.data(), data_, now.size() * sizeof(T), cudaMemcpyDeviceToHost) ==
                cudaSuccess);
        const auto begin = static_cast<std::ptrdiff_t>(shift_);
        const auto end = static_cast<std::ptrdiff_t>(shift_ + n_);
        REQUIRE(std::memcmp(now.data(), host_.data(), shift_ * sizeof(T)) == 0);
        REQUIRE(std::memcmp(now.data() + end, host_.data() + end, guard * sizeof(T)) == 0);
        return {now.begin() + begin, now.begin() + end};
    }

private:
    static constexpr std::size_t guard = 32;
    std::size_t n_, shift_;
    std::vector<T> host_;
    T* data_ = nullptr;
};

template <class T>
constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// Convert on the host as kernels do when they load and store.
template <class C, class T>
C wide(T x) {
    if constexpr (layer::is_half<T>) return to_float(x);
    else return static_cast<C>(x);
}
template <class T, class C>
T narrow(C x) {
    if constexpr (layer::is_half<T>) return to_half<T>(static_cast<float>(x));
    else return static_cast<T>(x);
}

// Small integers, or multiples of 1/4: sums and products of a few are exact, in halves as well.
template <class T>
std::vector<T> draw(std::int64_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<T> values(static_cast<std::size_t>(n));
    for (T& v : values) {
        const int k = static_cast<int>(random() % 17) - 8;
        if constexpr (std::is_integral_v<T>) v = static_cast<T>(k);
        else v = narrow<T>(static_cast<cuda::Compute<T>>(k) / 4);
    }
    return values;
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
template <class T>
double number(T x) {
    return static_cast<double>(wide<cuda::Compute<T>>(x));
}

// Returns the offset in an operand of an element of the result, by NumPy's broadcasting rules.
inline std::size_t offset_of(std::int64_t element, Shape shape, Shape operand) {
    std::int64_t offset = 0;
    std::int64_t stride = 1;
    const std::size_t more = shape.size() - operand.size();
    for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) {
        if (d < more) continue;
        if (operand[d - more] != 1) offset += element % shape[d] * stride;
        stride *= operand[d - more];
    }
    return static_cast<std::size_t>(offset);
}

// y = a * b + c and a - b.
template <class T>
struct TwoOf {
    using In = cuda::Types<T, T, T>;
    using Out = cuda::Types<T, T>;
    using Value = cuda::Compute<T>;
    static constexpr bool walks = true;
    __host__ __device__ void operator()(const Value* x, Value* y) const {
        y[0] = static_cast<Value>(x[0] * x[1] + x[2]);
        y[1] = static_cast<Value>(x[0] - x[1]);
    }
};

}  // namespace layer
