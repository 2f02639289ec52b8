// What the files of the instructions share: types, loops over lanes, and entries of the table. These files
// are compiled once for each instruction set of the CPU, with MACHINE_ISA as the name of the namespace:
// its vectors make the machine several times faster. They may use no functions of the C++ library that
// are not inlined, because the linker keeps only one of their copies.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "../warp.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {  // each file has its own copies

using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
struct half {
    u16 bits;
};
struct bhalf {
    u16 bits;
};

template <class T>
constexpr Type type_of = std::is_same_v<T, half>     ? Type::f16
                         : std::is_same_v<T, bhalf>  ? Type::bf16
                         : std::is_same_v<T, float>  ? Type::f32
                         : std::is_same_v<T, double> ? Type::f64
                         : std::is_unsigned_v<T>     ? (sizeof(T) == 1   ? Type::u8
                                                        : sizeof(T) == 2 ? Type::u16
                                                        : sizeof(T) == 4 ? Type::u32
                                                                         : Type::u64)
                                                     : (sizeof(T) == 1   ? Type::s8
                                                        : sizeof(T) == 2 ? Type::s16
                                                        : sizeof(T) == 4 ? Type::s32
                                                                         : Type::s64);

template <class T>
constexpr bool is_unsigned = std::is_unsigned_v<T>;
template <class T>
using uns = std::make_unsigned_t<T>;  // for arithmetic that wraps around
__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;
template <class T, class U, class S>
using signed_as = std::conditional_t<is_unsigned<T>, U, S>;
// The integer of twice the size.
template <class T>
using wider = std::conditional_t<
    sizeof(T) == 2, signed_as<T, u32, i32>,
    std::conditional_t<sizeof(T) == 4, signed_as<T, u64, i64>, signed_as<T, Wide, SignedWide>>>;

template <class Body>
inline __attribute__((always_inline)) void for_lanes(const Warp& w, Body body) {
    if (w.active == all_lanes) {
#pragma GCC ivdep
        for (int lane = 0; lane < 32; ++lane) body(lane);
    } else {
        for (u32 rest = w.active; rest != 0; rest &= rest - 1) body(__builtin_ctz(rest));
    }
}

// A function f of the operands, for each lane.
template <auto f, class F = decltype(+f)>
struct Each;
template <auto f, class D, class A, class... More>
struct Each<f, D (*)(A, More...)> {
    static void run(Warp& w, const Instruction& in) {
        run_with(w, in, std::index_sequence_for<More...>());
    }
    // `$` in the name stands for the type, which is that of the first operand.
    static void add(Table& table, const char* name, Handler handler = &run,
                    Type type = type_of<A>) {
        table.add(name, type, handler,
                  {std::is_same_v<D, A> ? type : type_of<D>, type,
                   (std::is_same_v<More, A> ? type : type_of<More>)...});
    }

private:
    template <std::size_t... k>
    static void run_with(Warp& w, const Instruction& in, std::index_sequence<k...>) {
        D* const d = w.at<D>(in.at[0]);
        const A* const a = w.at<A>(in.at[1]);
        for_lanes(
            w, [ d, a, ... b = static_cast<const More*>(w.at<More>(in.at[k + 2])) ](int i)
                   __attribute__((always_inline)) { d[i] = f(a[i], b[i]...); });
    }
};
template <auto f>
void add(Table& table, const char* name) {
    Each<f>::add(table, name);
}
template <auto f>
void add(Table& table, const char* name, Type type) {
    Each<f>::add(table, name, &Each<f>::run, type);
}

template <class T>
constexpr bool is_half = false;
template <>
constexpr bool is_half<half> = true;
template <>
constexpr bool is_half<bhalf> = true;
template <class T>
constexpr bool is_floating = is_half<T>;
template <>
constexpr bool is_floating<float> = true;
template <>
constexpr bool is_floating<double> = true;

inline float flushed(float x) {
    return __builtin_fabsf(x) < std::numeric_limits<float>::min() ? __builtin_copysignf(0.0f, x)
                                                                  : x;
}
}  // namespace

void fill_integers(Table& table);
void fill_floats(Table& table);
void fill_comparisons(Table& table);
void fill_conversions(Table& table);
void fill_memory(Table& table);

}  // namespace catena_machine::MACHINE_ISA
