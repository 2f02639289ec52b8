// Conversions between types.
#include "lanes.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

double widened(half h) {
    const u32 e = h.bits >> 10 & 31, m = h.bits & 1023;
    const double x = e == 31  ? (m != 0 ? std::numeric_limits<double>::quiet_NaN()
                                        : std::numeric_limits<double>::infinity())
                     : e == 0 ? __builtin_ldexp(m, -24)
                              : __builtin_ldexp(m + 1024, static_cast<int>(e) - 25);
    return (h.bits & 0x8000) != 0 ? -x : x;
}
double widened(bhalf h) { return std::bit_cast<float>(static_cast<u32>(h.bits) << 16); }

// Rounds to a type of 16 bits with so many bits of significand, besides the first, and of exponent.
template <int fraction, int exponent>
u16 narrowed(double x, int mode) {
    const u16 sign = std::signbit(x) ? 0x8000 : 0;
    constexpr u16 infinity = ((1 << exponent) - 1) << fraction;
    if (x != x) return 0x7fff;
    if (__builtin_isinf(x)) return sign | infinity;
    constexpr int bias = (1 << (exponent - 1)) - 1;
    int e = 0;
    double a = std::fabs(x);
    if (a == 0) return sign;
    __builtin_frexp(a, &e);
    --e;  // a = 1.f * 2^e
    const int unit = (e < 1 - bias ? 1 - bias : e) - fraction;
    const double scaled = __builtin_ldexp(a, -unit);  // exact
    double whole = __builtin_floor(scaled);
    const double rest = scaled - whole;
    const bool up = mode == round_nearest
                        ? rest > 0.5 || (rest == 0.5 && __builtin_fmod(whole, 2) != 0)
                    : mode == round_zero ? false
                    : mode == round_down ? sign != 0 && rest > 0
                                         : sign == 0 && rest > 0;
    if (up) whole += 1;
    const double back = __builtin_ldexp(whole, unit);
    if (back >= __builtin_ldexp(1.0, bias + 1)) {
        const bool stays = mode == round_zero || (mode == round_down && sign == 0) ||
                           (mode == round_up && sign != 0);
        return sign | (stays ? infinity - 1 : infinity);
    }
    if (back < __builtin_ldexp(1.0, 1 - bias))  // subnormal
        return sign | static_cast<u16>(__builtin_ldexp(back, bias - 1 + fraction));
    __builtin_frexp(back, &e);
    --e;
    const auto m = static_cast<u32>(__builtin_ldexp(back, fraction - e));
    return static_cast<u16>(sign |
                            ((static_cast<u32>(e + bias) << fraction) + m - (1u << fraction)));
}

template <class T>
T in_whole_numbers(T x, int mode) {
    switch (mode & round_mask) {
        case round_nearest: return std::nearbyint(x);
        case round_zero: return std::trunc(x);
        case round_down: return std::floor(x);
        default: return std::ceil(x);
    }
}
template <class D, class S>
D converted(S s, int mode) {
    if constexpr (type_of<S> == Type::f32)
        if ((mode & flush) != 0) s = flushed(s);
    if constexpr (is_half<S>) {
        return converted<D>(static_cast<float>(widened(s)), mode);
    } else if constexpr (is_half<D>) {
        double x = static_cast<double>(s);
        if ((mode & to_integer) != 0) x = in_whole_numbers(x, mode);
        if ((mode & saturate) != 0) x = x > 0 ? (x < 1 ? x : 1) : 0;
        if constexpr (type_of<D> == Type::f16) return {narrowed<10, 5>(x, mode & round_mask)};
        else return {narrowed<7, 8>(x, mode & round_mask)};
    } else if constexpr (is_floating<D> && is_floating<S>) {
        S x = s;
        if ((mode & to_integer) != 0) x = in_whole_numbers(x, mode);
        D d = static_cast<D>(x);
        if constexpr (sizeof(D) == 4)
            if ((mode & flush) != 0) d = flushed(static_cast<float>(d));
        if ((mode & saturate) != 0) d = d > 0 ? (d < 1 ? d : D(1)) : D(0);
        return d;
    } else if constexpr (is_floating<S>) {  // to integers: saturates
        if (s != s)                         // the manual's rule
            return sizeof(D) == 8 || sizeof(S) == 8 ? static_cast<D>(u64(1) << (sizeof(D) * 8 - 1))
                                                    : D(0);
        const S x = in_whole_numbers(s, mode);
        constexpr S low = static_cast<S>(std::numeric_limits<D>::min());
        constexpr S past = static_cast<S>(std::numeric_limits<D>::max() / 2 + 1) * 2;
        if (x < low) return std::numeric_limits<D>::min();
        if (x >= past) return std::numeric_limits<D>::max();
        return static_cast<D>(x);
    } else if constexpr (is_floating<D>) {
        return (mode & saturate) == 0 ? static_cast<D>(s) : s > 0 ? D(1) : D(0);
    } else {
        if ((mode & saturate) != 0) {
            const SignedWide x = s;
            constexpr SignedWide low = std::numeric_limits<D>::min(),
                                 high_ = std::numeric_limits<D>::max();
            return static_cast<D>(x < low ? low : x > high_ ? high_ : x);
        }
        return static_cast<D>(s);
    }
}
template <class D, class S>
void convert_lanes(Warp& w, const Instruction& in) {
    const int mode = in.target;
    if (in.wide[0] == sizeof(D) && in.wide[1] == sizeof(S)) {
        D* const d = w.at<D>(in.at[0]);
        const S* const s = w.at<S>(in.at[1]);
        if (mode == round_nearest)
            for_lanes(
                w, [=](int i) __attribute__((always_inline)) {
                    d[i] = converted<D>(s[i], round_nearest);
                });
        else for_lanes(w, [=](int i) { d[i] = converted<D>(s[i], mode); });
        return;
    }
    unsigned char* const to = w.at<unsigned char>(in.at[0]);
    const unsigned char* const from = w.at<unsigned char>(in.at[1]);
    for_lanes(w, [=, &in](int i) {
        S s;
        std::memcpy(&s, from + i * in.wide[1], sizeof s);
        const D d = converted<D>(s, mode);
        i64 wide = 0;
        if constexpr (is_floating<D>) std::memcpy(&wide, &d, sizeof d);
        else wide = static_cast<i64>(d);
        std::memcpy(to + i * in.wide[0], &wide, in.wide[0]);
    });
}
template <class D, class S>
void convert(Warp& w, const Instruction& in) {
    constexpr bool rounds =
        is_floating<D> && !is_half<D> && !is_half<S> && (sizeof(D) == 4 || !is_floating<S>);
    if (const int mode = in.target & round_mask;
        rounds && mode != 0 && (in.target & to_integer) == 0) {
        std::fesetround(mode == round_zero   ? FE_TOWARDZERO
                        : mode == round_down ? FE_DOWNWARD
                                             : FE_UPWARD);
        convert_lanes<D, S>(w, in);
        std::fesetround(FE_TONEAREST);
    } else {
        convert_lanes<D, S>(w, in);
    }
}
template <class S, class... D>
void add_conversions_from(Table& t, const char* name) {
    (t.add(name, type_of<D>, &convert<D, S>, {type_of<D>, type_of<S>}), ...);
}
// Adds the conversions from each type to all of them.
template <class... T, class... Names>
void add_conversions(Table& t, Names... names) {
    (add_conversions_from<T, T...>(t, names), ...);
}

}  // namespace

void fill_conversions(Table& t) {
    add_conversions<u8, i8, u16, i16, u32, i32, u64, i64, half, bhalf, float, double>(
        t, "cvt.$.u8", "cvt.$.s8", "cvt.$.u16", "cvt.$.s16", "cvt.$.u32", "cvt.$.s32", "cvt.$.u64",
        "cvt.$.s64", "cvt.$.f16", "cvt.$.bf16", "cvt.$.f32", "cvt.$.f64");
}

}  // namespace catena_machine::MACHINE_ISA
