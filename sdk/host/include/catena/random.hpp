// Random numbers, drawn on the host, bit-identical on every machine.
#pragma once

#include <catena/visitor.hpp>

namespace catena {

// Block `counter` of the stream `key`: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As
// Easy as 1, 2, 3", 2011). The upper 64 bits of the counter are 0.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter) noexcept;

// A sequence of random numbers; each block gives two of 64 bits.
class Generator {
public:
    explicit Generator(std::uint64_t key, std::uint64_t counter = 0) noexcept
        : key_(key), counter_(counter) {}

    std::uint64_t operator()() noexcept;
    // Uniform in [0, bound), without bias; bound > 0.
    std::uint64_t below(std::uint64_t bound) noexcept;
    // Uniform in [0, 1), with 53 bits.
    double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
    template <class T>
    void shuffle(std::vector<T>& values) noexcept {
        for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
    }
    // Fills values from N(0, 1), two from each two draws.
    void normal(std::span<double> values) noexcept;

private:
    std::uint64_t key_;
    std::uint64_t counter_;
    std::uint64_t spare_ = 0;
    bool has_spare_ = false;
};

// Fill values from the stream of the thread's current device (see catena::seed) and advance it.
// They use no library function whose rounding may differ.
void fill_uniform(std::span<double> values, double low, double high);  // [low, high)
void fill_normal(std::span<double> values, double mean, double stddev);

namespace random {

// New arrays of a floating dtype from U[low, high) and from N(mean, stddev^2), on any device; an
// empty Device means Device::current(). The host draws them from the device's stream (see
// catena::seed): devices with the same number in their backends get the same bits.
Array uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::float32,
              Device device = {});
Array normal(const Shape& shape, double mean = 0, double stddev = 1, Dtype dtype = Dtype::float32,
             Device device = {});

}  // namespace random

// The state of a device's random stream, to be part of a snapshot.
class RandomStream final : public Visitable {
public:
    explicit RandomStream(Device device) : device_(device) {}
    void visit(Visitor& visitor) override;

private:
    Device device_;
};

}  // namespace catena
