// Probe: a number that only records which arguments it was computed from. The SDK runs every
// gradient formula on it once, at compile time, to find the values to keep for backward.
#pragma once

#include <concepts>
#include <cstdint>

#include "catena/plugin/isa.hpp"

namespace catena::plugin {

struct Probe {
    std::uint64_t uses = 0;

    constexpr Probe() = default;
    constexpr Probe(double) {}  // NOLINT(google-explicit-constructor): a constant uses nothing
    static constexpr Probe argument(int i) {
        Probe probe;
        probe.uses = std::uint64_t{1} << i;
        return probe;
    }
    template <std::same_as<bool> B>
    explicit constexpr operator B() const {
        static_assert(sizeof(B) == 0,
                      "backward: write math::where(condition, a, b), a and b of type T, instead of "
                      "if, ?:, && or !");
        return false;
    }
    friend constexpr Probe join(Probe a, Probe b) {
        a.uses |= b.uses;
        return a;
    }
    friend constexpr Probe operator-(Probe a) { return a; }
    friend constexpr Probe operator+(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator-(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator*(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator/(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator<(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator>(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator<=(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator>=(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator==(Probe a, Probe b) { return join(a, b); }
    friend constexpr Probe operator&(Probe a, Probe b) { return join(a, b); }
};

namespace math {
constexpr Probe where(Probe c, Probe a, Probe b) { return join(c, join(a, b)); }
constexpr Probe isnan(Probe a) { return a; }
constexpr Probe unless_nan(Probe a, Probe b) { return join(a, b); }
constexpr Probe abs(Probe a) { return a; }
constexpr Probe max(Probe a, Probe b) { return join(a, b); }
constexpr Probe min(Probe a, Probe b) { return join(a, b); }
constexpr Probe sqrt(Probe a) { return a; }
constexpr Probe exp(Probe a) { return a; }
constexpr Probe log(Probe a) { return a; }
constexpr Probe erf(Probe a) { return a; }
constexpr Probe sin(Probe a) { return a; }
constexpr Probe cos(Probe a) { return a; }
constexpr Probe tanh(Probe a) { return a; }
constexpr Probe sigmoid(Probe a) { return a; }
constexpr Probe pow(Probe a, Probe b) { return join(a, b); }
}  // namespace math

}  // namespace catena::plugin
