// What each instruction does, for all lanes of a warp. Compiled once for each instruction set, with
// MACHINE_ISA as the name of the namespace: vectors of the CPU make this several times faster.
// It may use no functions of the C++ library that are not inlined, because the linker keeps only one
// of their copies.
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "warp.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

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

template <class T> constexpr Type type_of = Type::none;
template <> constexpr Type type_of<u8> = Type::u8;
template <> constexpr Type type_of<u16> = Type::u16;
template <> constexpr Type type_of<u32> = Type::u32;
template <> constexpr Type type_of<u64> = Type::u64;
template <> constexpr Type type_of<i8> = Type::s8;
template <> constexpr Type type_of<i16> = Type::s16;
template <> constexpr Type type_of<i32> = Type::s32;
template <> constexpr Type type_of<i64> = Type::s64;
template <> constexpr Type type_of<half> = Type::f16;
template <> constexpr Type type_of<bhalf> = Type::bf16;
template <> constexpr Type type_of<float> = Type::f32;
template <> constexpr Type type_of<double> = Type::f64;
template <> constexpr Type type_of<bool> = Type::pred;

template <class T> struct Wider { using type = void; };
template <> struct Wider<u16> { using type = u32; };
template <> struct Wider<i16> { using type = i32; };
template <> struct Wider<u32> { using type = u64; };
template <> struct Wider<i32> { using type = i64; };
template <> struct Wider<u64> { using type = unsigned __int128; };
template <> struct Wider<i64> { using type = __int128; };
template <class T> using wider = typename Wider<T>::type;
// Arithmetic that wraps around.
template <class T> struct Unsigned { using type = T; };
template <> struct Unsigned<i16> { using type = u16; };
template <> struct Unsigned<i32> { using type = u32; };
template <> struct Unsigned<i64> { using type = u64; };
template <class T> using uns = typename Unsigned<T>::type;
template <class T> constexpr bool is_unsigned = T(-1) > T(0);

template <class Body>
inline __attribute__((always_inline)) void for_lanes(const Warp& w, Body body) {
    if (w.active == all_lanes) {
#pragma GCC ivdep
        for (int lane = 0; lane < 32; ++lane) body(lane);
    } else {
        for (u32 rest = w.active; rest != 0; rest &= rest - 1) body(__builtin_ctz(rest));
    }
}

template <auto f, class D, class A>
void unary(Warp& w, const Instruction& in) {
    D* const d = w.at<D>(in.at[0]);
    const A* const a = w.at<A>(in.at[1]);
    for_lanes(w, [=](int i) __attribute__((always_inline)) { d[i] = f(a[i]); });
}
template <auto f, class D, class A, class B>
void binary(Warp& w, const Instruction& in) {
    D* const d = w.at<D>(in.at[0]);
    const A* const a = w.at<A>(in.at[1]);
    const B* const b = w.at<B>(in.at[2]);
    for_lanes(w, [=](int i) __attribute__((always_inline)) { d[i] = f(a[i], b[i]); });
}
template <auto f, class D, class A, class B, class C>
void ternary(Warp& w, const Instruction& in) {
    D* const d = w.at<D>(in.at[0]);
    const A* const a = w.at<A>(in.at[1]);
    const B* const b = w.at<B>(in.at[2]);
    const C* const c = w.at<C>(in.at[3]);
    for_lanes(w, [=](int i) __attribute__((always_inline)) { d[i] = f(a[i], b[i], c[i]); });
}
template <auto f, class D, class A>
void add(Table& table, const char* name, Type type = type_of<A>) {
    table.add(name, type, &unary<f, D, A>, {type_of<D>, type_of<A>});
}
template <auto f, class D, class A, class B>
void add(Table& table, const char* name, Type type = type_of<A>) {
    table.add(name, type, &binary<f, D, A, B>, {type_of<D>, type_of<A>, type_of<B>});
}
template <auto f, class D, class A, class B, class C>
void add(Table& table, const char* name, Type type = type_of<A>) {
    table.add(name, type, &ternary<f, D, A, B, C>,
              {type_of<D>, type_of<A>, type_of<B>, type_of<C>});
}

// Integers.

template <class T>
T shift_left(T x, u32 n) { return n < sizeof(T) * 8 ? static_cast<T>(static_cast<uns<T>>(x) << n) : T(0); }
template <class T>
T shift_right(T x, u32 n) {
    const u32 most = sizeof(T) * 8 - 1;
    if constexpr (is_unsigned<T>) return n <= most ? static_cast<T>(x >> n) : T(0);
    else return static_cast<T>(x >> (n <= most ? n : most));
}
// Division by zero has no defined result; GPUs return all ones.
template <class T>
T divide(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (!is_unsigned<T> && b == static_cast<T>(-1)) return static_cast<T>(uns<T>(0) - static_cast<uns<T>>(a));
    return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if (!is_unsigned<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
}
template <class T>
T high(T a, T b) {
    return static_cast<T>((static_cast<wider<T>>(a) * static_cast<wider<T>>(b)) >> sizeof(T) * 8);
}
template <class T>
T low(T a, T b) {
    return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b));
}
template <class T>
T sum(T a, T b) {
    return static_cast<T>(static_cast<uns<T>>(a) + static_cast<uns<T>>(b));
}
template <class T>
T difference(T a, T b) {
    return static_cast<T>(static_cast<uns<T>>(a) - static_cast<uns<T>>(b));
}
template <class T>
T extract(T a, u32 position, u32 length) {
    const u32 bits = sizeof(T) * 8;
    const u32 at = position & 0xff, n = length & 0xff;
    if (n == 0) return 0;
    const bool sign = !is_unsigned<T> && (a >> (at + n - 1 < bits - 1 ? at + n - 1 : bits - 1) & 1) != 0;
    uns<T> value = at < bits ? static_cast<uns<T>>(a) >> at : 0;
    if (n >= bits) {
        if (sign && at > 0) value |= at < bits ? ~(~uns<T>(0) >> at) : ~uns<T>(0);
        return static_cast<T>(value);
    }
    value &= (uns<T>(1) << n) - 1;
    if (at + n > bits && sign) value |= at < bits ? ~(~uns<T>(0) >> at) & ((uns<T>(1) << n) - 1) : ~uns<T>(0);
    if (sign) value |= ~((uns<T>(1) << n) - 1);
    return static_cast<T>(value);
}
template <class T>
void insert(Warp& w, const Instruction& in) {
    T* const d = w.at<T>(in.at[0]);
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]);
    const u32 *const at = w.at<u32>(in.at[3]), *const n = w.at<u32>(in.at[4]);
    for_lanes(w, [=](int i) {
        const u32 position = at[i] & 0xff, bits = sizeof(T) * 8, length = n[i] & 0xff;
        T mask = length >= bits ? ~T(0) : static_cast<T>((T(1) << length) - 1);
        mask = position < bits ? mask << position : 0;
        d[i] = (b[i] & ~mask) | ((position < bits ? a[i] << position : 0) & mask);
    });
}
template <int mode>
u32 permute(u32 a, u32 b, u32 selector) {
    const u64 all = static_cast<u64>(b) << 32 | a;
    const u32 s = selector & 3;
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
        u32 which = 0;
        if (mode == 0) which = selector >> i * 4 & 0xf;
        if (mode == 1) which = s + i;                        // f4e
        if (mode == 2) which = (s - i) & 7;                  // b4e
        if (mode == 3) which = s;                            // rc8
        if (mode == 4) which = i > s ? i : s;                // ecl
        if (mode == 5) which = i < s ? i : s;                // ecr
        if (mode == 6) which = (s & 1) * 2 + (i & 1);        // rc16
        u32 byte = static_cast<u32>(all >> (which & 7) * 8) & 0xff;
        if ((which & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
        result |= byte << i * 8;
    }
    return result;
}
template <bool left, bool clamps>
u32 funnel(u32 a, u32 b, u32 c) {
    const u32 n = clamps ? (c < 32 ? c : 32) : c & 31;
    const u64 all = static_cast<u64>(b) << 32 | a;
    return static_cast<u32>(left ? (all << n) >> 32 : all >> n);
}
void lop3(Warp& w, const Instruction& in) {
    u32* const d = w.at<u32>(in.at[0]);
    const u32 *const a = w.at<u32>(in.at[1]), *const b = w.at<u32>(in.at[2]), *const c = w.at<u32>(in.at[3]);
    const u32 table = *w.at<u32>(in.at[4]);
    for_lanes(w, [=](int i) {
        u32 r = 0;
        for (int k = 0; k < 8; ++k)
            if ((table >> k & 1) != 0)
                r |= ((k & 4) != 0 ? a[i] : ~a[i]) & ((k & 2) != 0 ? b[i] : ~b[i]) & ((k & 1) != 0 ? c[i] : ~c[i]);
        d[i] = r;
    });
}
// Sums and products with a carry. at[4] is the carry of each lane.
enum class Carry { out, in, both };
template <class T, Carry carry, bool subtracts>
void add_with_carry(Warp& w, const Instruction& in) {
    T* const d = w.at<T>(in.at[0]);
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]);
    u8* const c = w.at<u8>(in.at[4]);
    for_lanes(w, [=](int i) {
        const auto from = static_cast<wider<T>>(carry == Carry::out ? 0 : c[i]);
        const wider<T> x = a[i], y = b[i];
        const wider<T> r = subtracts ? x - y - from : x + y + from;
        d[i] = static_cast<T>(r);
        if (carry != Carry::in) c[i] = static_cast<u8>(r >> sizeof(T) * 8 & 1);
    });
}
template <class T, bool upper, Carry carry>
void multiply_add_with_carry(Warp& w, const Instruction& in) {
    T* const d = w.at<T>(in.at[0]);
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]), *const c = w.at<T>(in.at[3]);
    u8* const flag = w.at<u8>(in.at[4]);
    for_lanes(w, [=](int i) {
        const auto from = static_cast<wider<T>>(carry == Carry::out ? 0 : flag[i]);
        const T product = upper ? high<T>(a[i], b[i]) : low<T>(a[i], b[i]);
        const wider<T> r = static_cast<wider<T>>(product) + c[i] + from;
        d[i] = static_cast<T>(r);
        if (carry != Carry::in) flag[i] = static_cast<u8>(r >> sizeof(T) * 8 & 1);
    });
}

template <class T>
void add_integer(Table& t) {
    using U = uns<T>;
    add<[](T a, T b) { return sum(a, b); }, T, T, T>(t, "add.$");
    add<[](T a, T b) { return difference(a, b); }, T, T, T>(t, "sub.$");
    add<[](T a, T b) { return low(a, b); }, T, T, T>(t, "mul.lo.$");
    add<[](T a, T b) { return high(a, b); }, T, T, T>(t, "mul.hi.$");
    add<[](T a, T b, T c) { return sum(low(a, b), c); }, T, T, T, T>(t, "mad.lo.$");
    add<[](T a, T b, T c) { return sum(high(a, b), c); }, T, T, T, T>(t, "mad.hi.$");
    if constexpr (sizeof(T) < 8) {
        using W = wider<T>;
        add<[](T a, T b) { return static_cast<W>(W(a) * W(b)); }, W, T, T>(t, "mul.wide.$");
        add<[](T a, T b, W c) { return sum<W>(static_cast<W>(W(a) * W(b)), c); }, W, T, T, W>(t, "mad.wide.$");
    }
    add<[](T a, T b) { return divide(a, b); }, T, T, T>(t, "div.$");
    add<[](T a, T b) { return remainder(a, b); }, T, T, T>(t, "rem.$");
    add<[](T a, T b) { return a < b ? a : b; }, T, T, T>(t, "min.$");
    add<[](T a, T b) { return b < a ? a : b; }, T, T, T>(t, "max.$");
    add<[](T a, u32 n) { return shift_right(a, n); }, T, T, u32>(t, "shr.$");
    if constexpr (!is_unsigned<T>) {
        add<[](T a) { return static_cast<T>(U(0) - U(a)); }, T, T>(t, "neg.$");
        add<[](T a) { return a < 0 ? static_cast<T>(U(0) - U(a)) : a; }, T, T>(t, "abs.$");
    }
    if constexpr (sizeof(T) >= 4) {
        add<[](T a, u32 at, u32 n) { return extract(a, at, n); }, T, T, u32, u32>(t, "bfe.$");
        t.add("add.cc.$", type_of<T>, &add_with_carry<U, Carry::out, false>, {type_of<T>, type_of<T>, type_of<T>});
        t.add("addc.$", type_of<T>, &add_with_carry<U, Carry::in, false>, {type_of<T>, type_of<T>, type_of<T>});
        t.add("addc.cc.$", type_of<T>, &add_with_carry<U, Carry::both, false>, {type_of<T>, type_of<T>, type_of<T>});
        t.add("sub.cc.$", type_of<T>, &add_with_carry<U, Carry::out, true>, {type_of<T>, type_of<T>, type_of<T>});
        t.add("subc.$", type_of<T>, &add_with_carry<U, Carry::in, true>, {type_of<T>, type_of<T>, type_of<T>});
        t.add("subc.cc.$", type_of<T>, &add_with_carry<U, Carry::both, true>, {type_of<T>, type_of<T>, type_of<T>});
        const auto with_carry = [&]<bool upper, Carry carry>(const char* name) {
            t.add(name, type_of<T>, &multiply_add_with_carry<U, upper, carry>,
                  {type_of<T>, type_of<T>, type_of<T>, type_of<T>});
        };
        with_carry.template operator()<false, Carry::out>("mad.lo.cc.$");
        with_carry.template operator()<true, Carry::out>("mad.hi.cc.$");
        with_carry.template operator()<false, Carry::in>("madc.lo.$");
        with_carry.template operator()<true, Carry::in>("madc.hi.$");
        with_carry.template operator()<false, Carry::both>("madc.lo.cc.$");
        with_carry.template operator()<true, Carry::both>("madc.hi.cc.$");
    }
}

template <class T>
void add_bits(Table& t, Type type) {
    const auto name = [&](const char* text, Handler run, std::initializer_list<Type> types) {
        t.add(text, type, run, types);
    };
    const Type T_ = type;
    name("and.$", &binary<[](T a, T b) { return static_cast<T>(a & b); }, T, T, T>, {T_, T_, T_});
    name("or.$", &binary<[](T a, T b) { return static_cast<T>(a | b); }, T, T, T>, {T_, T_, T_});
    name("xor.$", &binary<[](T a, T b) { return static_cast<T>(a ^ b); }, T, T, T>, {T_, T_, T_});
    name("shl.$", &binary<[](T a, u32 n) { return shift_left(a, n); }, T, T, u32>, {T_, T_, Type::u32});
    name("shr.$", &binary<[](T a, u32 n) { return shift_right(a, n); }, T, T, u32>, {T_, T_, Type::u32});
    name("not.$", &unary<[](T a) { return static_cast<T>(~a); }, T, T>, {T_, T_});
    name("cnot.$", &unary<[](T a) { return static_cast<T>(a == 0 ? 1 : 0); }, T, T>, {T_, T_});
    if constexpr (sizeof(T) >= 4) {
        name("popc.$", &unary<[](T a) { return static_cast<u32>(std::popcount(a)); }, u32, T>, {Type::u32, T_});
        name("clz.$", &unary<[](T a) { return static_cast<u32>(std::countl_zero(a)); }, u32, T>, {Type::u32, T_});
        name("brev.$", &unary<[](T a) {
            T r = 0;
            for (unsigned i = 0; i < sizeof(T) * 8; ++i) r |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
            return r;
        }, T, T>, {T_, T_});
        name("bfi.$", &insert<T>, {T_, T_, T_, Type::u32, Type::u32});
    }
}

// Floating point numbers.

template <class T>
T smaller(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
template <class T>
T larger(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float root(float a) { return __builtin_sqrtf(a); }
inline double root(double a) { return __builtin_sqrt(a); }

// Runs the handler in another rounding mode of the CPU.
template <Handler run, int mode>
void rounded(Warp& w, const Instruction& in) {
    std::fesetround(mode);
    run(w, in);
    std::fesetround(FE_TONEAREST);
}

// The approximations of the hardware, with errors as large as the manual allows: the exact value is
// moved by one unit in the last place, up or down, as a hash of the operand says. Exact results of
// simple operands stay: 2 to a whole number, for one, on which NVIDIA's own library relies.
inline float approximate(double exact, u32 operand) {
    const float x = static_cast<float>(exact);
    if (static_cast<double>(x) == exact || x != x || __builtin_isinf(x) || x == 0) return x;
    const u32 bits = std::bit_cast<u32>(x);
    const u32 h = (operand * 2654435761u) >> 30;
    return std::bit_cast<float>(h == 0 ? bits + 1 : h == 1 ? bits - 1 : bits);
}
inline float flushed(float x) {
    return __builtin_fabsf(x) < std::numeric_limits<float>::min() ? __builtin_copysignf(0.0f, x) : x;
}
enum class Function { ex2, lg2, rcp, sqrt, rsqrt, sin, cos, tanh };
template <Function f, bool flushes>
float approximation(float x) {
    if (flushes) x = flushed(x);
    const u32 bits = std::bit_cast<u32>(x);
    const double wide = x;
    double y = 0;
    if constexpr (f == Function::ex2) y = ::exp2(wide);
    if constexpr (f == Function::lg2) y = ::log2(wide);
    if constexpr (f == Function::rcp) y = 1 / wide;
    if constexpr (f == Function::sqrt) y = __builtin_sqrt(wide);
    if constexpr (f == Function::rsqrt) y = 1 / __builtin_sqrt(wide);
    if constexpr (f == Function::sin) y = ::sin(wide);
    if constexpr (f == Function::cos) y = ::cos(wide);
    if constexpr (f == Function::tanh) y = ::tanh(wide);
    const float r = approximate(y, bits);
    return flushes ? flushed(r) : r;
}
// Only the upper 32 bits of the operand and of the result count.
template <Function f>
double upper_half(double x) {
    constexpr u64 upper = 0xffffffff00000000;
    double wide = std::bit_cast<double>(std::bit_cast<u64>(x) & upper);
    if (__builtin_fabs(wide) < std::numeric_limits<double>::min()) wide = __builtin_copysign(0.0, wide);
    double r = f == Function::rcp ? 1 / wide : 1 / __builtin_sqrt(wide);
    if (r != r) return std::bit_cast<double>(u64{0x7fffffff00000000});
    if (__builtin_fabs(r) < std::numeric_limits<double>::min()) r = __builtin_copysign(0.0, r);
    return std::bit_cast<double>(std::bit_cast<u64>(r) & upper);
}
// Division by huge numbers gives 0, or NaN for an infinity.
inline float quotient(float a, float b) {
    return approximate(static_cast<double>(a) / b, std::bit_cast<u32>(a) ^ std::bit_cast<u32>(b));
}
inline float quotient_by_reciprocal(float a, float b) {
    const float size = __builtin_fabsf(b);
    if (size > 0x1p126f && size < std::numeric_limits<float>::infinity())
        return a * __builtin_copysignf(0.0f, b);
    return quotient(a, b);
}

template <auto f, class T, class... More>
void add_rounded(Table& t, const char* rn, const char* rz, const char* rm, const char* rp) {
    if constexpr (sizeof...(More) == 0) {
        constexpr Handler run = &unary<f, T, T>;
        const auto put = [&](const char* name, Handler h) { t.add(name, type_of<T>, h, {type_of<T>, type_of<T>}); };
        put(rn, run), put(rz, &rounded<run, FE_TOWARDZERO>), put(rm, &rounded<run, FE_DOWNWARD>), put(rp, &rounded<run, FE_UPWARD>);
    } else if constexpr (sizeof...(More) == 1) {
        constexpr Handler run = &binary<f, T, T, T>;
        const auto put = [&](const char* name, Handler h) {
            t.add(name, type_of<T>, h, {type_of<T>, type_of<T>, type_of<T>});
        };
        put(rn, run), put(rz, &rounded<run, FE_TOWARDZERO>), put(rm, &rounded<run, FE_DOWNWARD>), put(rp, &rounded<run, FE_UPWARD>);
    } else {
        constexpr Handler run = &ternary<f, T, T, T, T>;
        const auto put = [&](const char* name, Handler h) {
            t.add(name, type_of<T>, h, {type_of<T>, type_of<T>, type_of<T>, type_of<T>});
        };
        put(rn, run), put(rz, &rounded<run, FE_TOWARDZERO>), put(rm, &rounded<run, FE_DOWNWARD>), put(rp, &rounded<run, FE_UPWARD>);
    }
}

template <class T>
void add_float(Table& t) {
    constexpr auto plus = [](T a, T b) { return a + b; };
    constexpr auto minus = [](T a, T b) { return a - b; };
    constexpr auto times = [](T a, T b) { return a * b; };
    add<plus, T, T, T>(t, "add.$");
    add<minus, T, T, T>(t, "sub.$");
    add<times, T, T, T>(t, "mul.$");
    add_rounded<plus, T, T>(t, "add.rn.$", "add.rz.$", "add.rm.$", "add.rp.$");
    add_rounded<minus, T, T>(t, "sub.rn.$", "sub.rz.$", "sub.rm.$", "sub.rp.$");
    add_rounded<times, T, T>(t, "mul.rn.$", "mul.rz.$", "mul.rm.$", "mul.rp.$");
    add_rounded<[](T a, T b) { return a / b; }, T, T>(t, "div.rn.$", "div.rz.$", "div.rm.$", "div.rp.$");
    add_rounded<[](T a, T b, T c) { return fused(a, b, c); }, T, T, T>(t, "fma.rn.$", "fma.rz.$", "fma.rm.$", "fma.rp.$");
    add_rounded<[](T a) { return T(1) / a; }, T>(t, "rcp.rn.$", "rcp.rz.$", "rcp.rm.$", "rcp.rp.$");
    add_rounded<[](T a) { return root(a); }, T>(t, "sqrt.rn.$", "sqrt.rz.$", "sqrt.rm.$", "sqrt.rp.$");
    add<[](T a) { return -a; }, T, T>(t, "neg.$");
    add<[](T a) { return std::fabs(a); }, T, T>(t, "abs.$");
    add<[](T a, T b) { return smaller(a, b); }, T, T, T>(t, "min.$");
    add<[](T a, T b) { return larger(a, b); }, T, T, T>(t, "max.$");
    add<[](T a, T b) { return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : smaller(a, b); }, T, T, T>(t, "min.NaN.$");
    add<[](T a, T b) { return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : larger(a, b); }, T, T, T>(t, "max.NaN.$");
    add<[](T a, T b) { return std::copysign(b, a); }, T, T, T>(t, "copysign.$");
    add<[](T a) { return static_cast<u8>(std::isfinite(a)); }, u8, T>(t, "testp.finite.$");
}

template <Function f>
void add_approximation(Table& t, const char* plain, const char* ftz) {
    add<[](float x) { return approximation<f, false>(x); }, float, float>(t, plain);
    add<[](float x) { return approximation<f, true>(x); }, float, float>(t, ftz);
}

// Comparisons.

template <auto f, class T>
void compare(Warp& w, const Instruction& in) {
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]);
    alignas(32) u8 r[32];
    if (w.active == all_lanes) {
#pragma GCC ivdep
        for (int i = 0; i < 32; ++i) r[i] = f(a[i], b[i]) ? 1 : 0;
    } else {
        for_lanes(w, [&](int i) { r[i] = f(a[i], b[i]) ? 1 : 0; });
    }
    u8* const d = w.at<u8>(in.at[0]);
    if (in.target == 0) {
        for_lanes(w, [&](int i) { d[i] = r[i]; });
        return;
    }
    u8* const other = (in.target & second_result) != 0 ? w.at<u8>(in.at[3]) : nullptr;
    const int combine = in.target & combine_mask;
    const u8* const c = combine != 0 ? w.at<u8>(in.at[4]) : nullptr;
    const u8 flip = (in.target & combine_not) != 0 ? 1 : 0;
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int i = __builtin_ctz(rest);
        const u8 x = r[i], y = x ^ 1;
        const u8 z = c != nullptr ? c[i] ^ flip : 0;
        const auto with = [&](u8 v) -> u8 {
            return combine == combine_and ? v & z : combine == combine_or ? v | z : combine == combine_xor ? v ^ z : v;
        };
        d[i] = with(x);
        if (other != nullptr) other[i] = with(y);
    }
}
template <class T>
void add_comparisons(Table& t, Type type = type_of<T>) {
    const auto put = [&](const char* name, Handler run) { t.add(name, type, run, {Type::pred, type, type}); };
    put("setp.eq.$", &compare<[](T a, T b) { return a == b; }, T>);
    put("setp.lt.$", &compare<[](T a, T b) { return a < b; }, T>);
    put("setp.le.$", &compare<[](T a, T b) { return a <= b; }, T>);
    put("setp.gt.$", &compare<[](T a, T b) { return b < a; }, T>);
    put("setp.ge.$", &compare<[](T a, T b) { return a >= b; }, T>);
    if constexpr (T(0.5) == T(0)) {  // integers
        put("setp.ne.$", &compare<[](T a, T b) { return a != b; }, T>);
        put("setp.lo.$", &compare<[](T a, T b) { return a < b; }, T>);
        put("setp.ls.$", &compare<[](T a, T b) { return a <= b; }, T>);
        put("setp.hi.$", &compare<[](T a, T b) { return b < a; }, T>);
        put("setp.hs.$", &compare<[](T a, T b) { return a >= b; }, T>);
    } else {
        put("setp.ne.$", &compare<[](T a, T b) { return a < b || b < a; }, T>);
        put("setp.equ.$", &compare<[](T a, T b) { return !(a < b || a > b); }, T>);
        put("setp.neu.$", &compare<[](T a, T b) { return !(a == b); }, T>);
        put("setp.ltu.$", &compare<[](T a, T b) { return !(a >= b); }, T>);
        put("setp.leu.$", &compare<[](T a, T b) { return !(a > b); }, T>);
        put("setp.gtu.$", &compare<[](T a, T b) { return !(a <= b); }, T>);
        put("setp.geu.$", &compare<[](T a, T b) { return !(a < b); }, T>);
        put("setp.num.$", &compare<[](T a, T b) { return a == a && b == b; }, T>);
        put("setp.nan.$", &compare<[](T a, T b) { return a != a || b != b; }, T>);
    }
}
template <class T>
void select(Warp& w, const Instruction& in) {
    T* const d = w.at<T>(in.at[0]);
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]);
    const u8* const p = w.at<u8>(in.at[3]);
    for_lanes(w, [=](int i) __attribute__((always_inline)) { d[i] = p[i] != 0 ? a[i] : b[i]; });
}
template <class T>
void add_moves(Table& t, Type type) {
    t.add("selp.$", type, &select<T>, {type, type, type, Type::pred});
    t.add("mov.$", type, &unary<[](T a) { return a; }, T, T>, {type, type});
}

// Conversions.

double widened(half h) {
    const u32 e = h.bits >> 10 & 31, m = h.bits & 1023;
    const double x = e == 31 ? (m != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
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
    const bool up = mode == round_nearest ? rest > 0.5 || (rest == 0.5 && __builtin_fmod(whole, 2) != 0)
                    : mode == round_zero ? false
                    : mode == round_down ? sign != 0 && rest > 0
                                         : sign == 0 && rest > 0;
    if (up) whole += 1;
    const double back = __builtin_ldexp(whole, unit);
    if (back >= __builtin_ldexp(1.0, bias + 1)) {
        const bool stays = mode == round_zero || (mode == round_down && sign == 0) || (mode == round_up && sign != 0);
        return sign | (stays ? infinity - 1 : infinity);
    }
    if (back < __builtin_ldexp(1.0, 1 - bias))  // subnormal
        return sign | static_cast<u16>(__builtin_ldexp(back, bias - 1 + fraction));
    __builtin_frexp(back, &e);
    --e;
    const auto m = static_cast<u32>(__builtin_ldexp(back, fraction - e));
    return static_cast<u16>(sign | ((static_cast<u32>(e + bias) << fraction) + m - (1u << fraction)));
}

template <class T> constexpr bool is_half = false;
template <> constexpr bool is_half<half> = true;
template <> constexpr bool is_half<bhalf> = true;
template <class T> constexpr bool is_floating = is_half<T>;
template <> constexpr bool is_floating<float> = true;
template <> constexpr bool is_floating<double> = true;

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
    if constexpr (is_half<S>) {
        const double x = widened(s);
        if constexpr (is_half<D> || (is_floating<D> && sizeof(D) < 8)) return converted<D>(static_cast<float>(x), mode);
        else return converted<D>(x, mode);
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
        if (s != s)  // the manual's rule
            return sizeof(D) == 8 || sizeof(S) == 8 ? static_cast<D>(u64(1) << (sizeof(D) * 8 - 1)) : D(0);
        const S x = in_whole_numbers(s, mode);
        constexpr S low = static_cast<S>(std::numeric_limits<D>::min());
        constexpr S past = static_cast<S>(std::numeric_limits<D>::max() / 2 + 1) * 2;
        if (x < low) return std::numeric_limits<D>::min();
        if (x >= past) return std::numeric_limits<D>::max();
        return static_cast<D>(x);
    } else if constexpr (is_floating<D>) {
        return static_cast<D>(s);
    } else {
        if ((mode & saturate) != 0) {
            const __int128 x = s;
            constexpr __int128 low = std::numeric_limits<D>::min(), high_ = std::numeric_limits<D>::max();
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
        if (mode == round_nearest) for_lanes(w, [=](int i) __attribute__((always_inline)) { d[i] = converted<D>(s[i], round_nearest); });
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
    constexpr bool rounds = is_floating<D> && !is_half<D> && !is_half<S> && (sizeof(D) == 4 || !is_floating<S>);
    if (const int mode = in.target & round_mask; rounds && mode != 0 && (in.target & to_integer) == 0) {
        std::fesetround(mode == round_zero ? FE_TOWARDZERO : mode == round_down ? FE_DOWNWARD : FE_UPWARD);
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
template <class S>
void add_conversions(Table& t, const char* name) {
    add_conversions_from<S, u8, i8, u16, i16, u32, i32, u64, i64, half, bhalf, float, double>(t, name);
}

// Memory.

template <class M>
void load(Warp& w, const Instruction& in) {
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const auto* from = static_cast<const unsigned char*>(w.access(in, lane, w.address(in, lane), false));
        for (int k = 0; k < in.count; ++k) {
            M m;
            std::memcpy(&m, from + k * sizeof m, sizeof m);
            unsigned char* const to = w.at<unsigned char>(in.at[k]) + lane * in.wide[0];
            if (in.wide[0] == sizeof m) {
                std::memcpy(to, &m, sizeof m);
            } else {
                i64 wide = 0;
                if constexpr (is_floating<M>) std::memcpy(&wide, &m, sizeof m);
                else wide = static_cast<i64>(m);
                std::memcpy(to, &wide, in.wide[0]);
            }
        }
    }
}
template <class M>
void store(Warp& w, const Instruction& in) {
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        unsigned char value[16];
        for (int k = 0; k < in.count; ++k)
            std::memcpy(value + k * sizeof(M), w.at<unsigned char>(in.at[k]) + lane * in.wide[0], sizeof(M));
        w.store(in, lane, w.address(in, lane), value);
    }
}
template <auto f, class T>
void atomic(Warp& w, const Instruction& in) {
    T* const d = w.at<T>(in.at[0]);
    const T* const b = w.at<T>(in.at[1]);
    const T* const c = in.at[2] != no_slot ? w.at<T>(in.at[2]) : b;
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        T* const place = static_cast<T*>(w.access(in, lane, w.address(in, lane), true, true));
        T old, wanted;
        __atomic_load(place, &old, __ATOMIC_RELAXED);
        do wanted = f(old, b[lane], c[lane]);
        while (!__atomic_compare_exchange(place, &old, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        d[lane] = old;
    }
}
template <class T, Type... names>
void add_atomics(Table& t) {
    const auto put = [&](const char* name, Handler run) { (t.add(name, names, run, {}), ...); };
    put("atom.add.$", &atomic<[](T a, T b, T) { return static_cast<T>(a + b); }, T>);
    put("atom.exch.$", &atomic<[](T, T b, T) { return b; }, T>);
    put("atom.min.$", &atomic<[](T a, T b, T) { return a < b ? a : b; }, T>);
    put("atom.max.$", &atomic<[](T a, T b, T) { return b < a ? a : b; }, T>);
    if constexpr (!is_floating<T>) {
        put("atom.cas.$", &atomic<[](T a, T b, T c) { return a == b ? c : a; }, T>);
        put("atom.and.$", &atomic<[](T a, T b, T) { return static_cast<T>(a & b); }, T>);
        put("atom.or.$", &atomic<[](T a, T b, T) { return static_cast<T>(a | b); }, T>);
        put("atom.xor.$", &atomic<[](T a, T b, T) { return static_cast<T>(a ^ b); }, T>);
        put("atom.inc.$", &atomic<[](T a, T b, T) { return static_cast<T>(a >= b ? 0 : a + 1); }, T>);
        put("atom.dec.$", &atomic<[](T a, T b, T) { return static_cast<T>(a == 0 || a > b ? b : a - 1); }, T>);
    }
}
template <class T>
void add_memory(Table& t, Type type) {
    t.add("ld.$", type, &load<T>, {type});
    t.add("st.$", type, &store<T>, {type});
}
void pack(Warp& w, const Instruction& in) {
    unsigned char* const to = w.at<unsigned char>(in.at[4]);
    for_lanes(w, [&](int i) {
        for (int k = 0; k < in.count; ++k)
            std::memcpy(to + i * in.wide[1] + k * in.wide[0], w.at<unsigned char>(in.at[k]) + i * in.wide[0], in.wide[0]);
    });
}
void unpack(Warp& w, const Instruction& in) {
    const unsigned char* const from = w.at<unsigned char>(in.at[4]);
    for_lanes(w, [&](int i) {
        for (int k = 0; k < in.count; ++k)
            std::memcpy(w.at<unsigned char>(in.at[k]) + i * in.wide[0], from + i * in.wide[1] + k * in.wide[0], in.wide[0]);
    });
}

// Lanes that work together. The main loop has checked that those of the mask are here.

enum class Shuffle { up, down, bfly, idx };
template <Shuffle kind>
void shuffle(Warp& w, const Instruction& in) {
    const u32 *const b = w.at<u32>(in.at[3]), *const c = w.at<u32>(in.at[4]);
    u32 values[32];
    std::memcpy(values, w.at<u32>(in.at[2]), sizeof values);
    u32* const d = w.at<u32>(in.at[0]);
    u8* const p = (in.target & second_result) != 0 ? w.at<u8>(in.at[1]) : nullptr;
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const int n = static_cast<int>(b[lane] & 31), segment = static_cast<int>(c[lane] >> 8 & 31);
        const int clamp = static_cast<int>(c[lane] & 31);
        const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        int from = kind == Shuffle::up     ? lane - n
                   : kind == Shuffle::down ? lane + n
                   : kind == Shuffle::bfly ? lane ^ n
                                           : least | (n & ~segment);
        const bool inside = kind == Shuffle::up ? from >= most : from <= most;
        if (!inside) from = lane;
        if ((w.active >> from & 1) == 0) throw_stopped(lane, "reads a lane that does not take part");
        d[lane] = values[from];
        if (p != nullptr) p[lane] = inside ? 1 : 0;
    }
}
u32 ballot(const Warp& w, const Instruction& in) {
    const u8* const p = w.at<u8>(in.at[2]);
    const u8 flip = (in.target & combine_not) != 0 ? 1 : 0;
    u32 bits = 0;
    for_lanes(w, [&](int i) { bits |= static_cast<u32>(p[i] ^ flip) << i; });
    return bits;
}
template <auto f, class D>
void vote(Warp& w, const Instruction& in) {
    const D r = static_cast<D>(f(ballot(w, in), w.active));
    D* const d = w.at<D>(in.at[0]);
    for_lanes(w, [=](int i) { d[i] = r; });
}
template <auto f, class T>
void reduce(Warp& w, const Instruction& in) {
    const T* const a = w.at<T>(in.at[2]);
    T r = a[__builtin_ctz(w.active)];
    for (u32 rest = w.active & (w.active - 1); rest != 0; rest &= rest - 1) r = f(r, a[__builtin_ctz(rest)]);
    T* const d = w.at<T>(in.at[0]);
    for_lanes(w, [=](int i) { d[i] = r; });
}
void match_any(Warp& w, const Instruction& in) {
    u32 values[32];
    std::memcpy(values, w.at<u32>(in.at[2]), sizeof values);
    u32* const d = w.at<u32>(in.at[0]);
    for_lanes(w, [&](int i) {
        u32 same = 0;
        for_lanes(w, [&](int k) { same |= static_cast<u32>(values[k] == values[i]) << k; });
        d[i] = same;
    });
}
void nothing(Warp&, const Instruction&) {}
void trap(Warp& w, const Instruction&) { throw_stopped(__builtin_ctz(w.active), "trap"); }
void active_mask(Warp& w, const Instruction& in) {
    u32* const d = w.at<u32>(in.at[0]);
    const u32 mask = w.active;
    for_lanes(w, [=](int i) { d[i] = mask; });
}

}  // namespace

void fill(Table& t) {
    add_integer<i16>(t), add_integer<u16>(t), add_integer<i32>(t), add_integer<u32>(t);
    add_integer<i64>(t), add_integer<u64>(t);
    add_bits<u16>(t, Type::b16), add_bits<u32>(t, Type::b32), add_bits<u64>(t, Type::b64);
    t.add("and.pred", Type::pred, &binary<[](u8 a, u8 b) { return static_cast<u8>(a & b); }, u8, u8, u8>, {Type::pred, Type::pred, Type::pred});
    t.add("or.pred", Type::pred, &binary<[](u8 a, u8 b) { return static_cast<u8>(a | b); }, u8, u8, u8>, {Type::pred, Type::pred, Type::pred});
    t.add("xor.pred", Type::pred, &binary<[](u8 a, u8 b) { return static_cast<u8>(a ^ b); }, u8, u8, u8>, {Type::pred, Type::pred, Type::pred});
    t.add("not.pred", Type::pred, &unary<[](u8 a) { return static_cast<u8>(a ^ 1); }, u8, u8>, {Type::pred, Type::pred});
    t.add("prmt.b32", Type::b32, &ternary<&permute<0>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.f4e", Type::b32, &ternary<&permute<1>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.b4e", Type::b32, &ternary<&permute<2>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.rc8", Type::b32, &ternary<&permute<3>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.ecl", Type::b32, &ternary<&permute<4>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.ecr", Type::b32, &ternary<&permute<5>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.rc16", Type::b32, &ternary<&permute<6>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("shf.l.clamp.b32", Type::b32, &ternary<&funnel<true, true>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("shf.l.wrap.b32", Type::b32, &ternary<&funnel<true, false>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("shf.r.clamp.b32", Type::b32, &ternary<&funnel<false, true>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("shf.r.wrap.b32", Type::b32, &ternary<&funnel<false, false>, u32, u32, u32, u32>, {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("lop3.b32", Type::b32, &lop3, {Type::b32, Type::b32, Type::b32, Type::b32, Type::b32});

    add_float<float>(t), add_float<double>(t);
    add_approximation<Function::ex2>(t, "ex2.approx.f32", "ex2.approx.ftz.f32");
    add_approximation<Function::lg2>(t, "lg2.approx.f32", "lg2.approx.ftz.f32");
    add_approximation<Function::rcp>(t, "rcp.approx.f32", "rcp.approx.ftz.f32");
    add_approximation<Function::sqrt>(t, "sqrt.approx.f32", "sqrt.approx.ftz.f32");
    add_approximation<Function::rsqrt>(t, "rsqrt.approx.f32", "rsqrt.approx.ftz.f32");
    add_approximation<Function::sin>(t, "sin.approx.f32", "sin.approx.ftz.f32");
    add_approximation<Function::cos>(t, "cos.approx.f32", "cos.approx.ftz.f32");
    add<[](float x) { return approximation<Function::tanh, false>(x); }, float, float>(t, "tanh.approx.f32");
    add<&quotient_by_reciprocal, float, float, float>(t, "div.approx.f32");
    add<&quotient, float, float, float>(t, "div.full.f32");
    add<[](float a, float b) { return flushed(quotient_by_reciprocal(flushed(a), flushed(b))); }, float, float, float>(t, "div.approx.ftz.f32");
    add<[](float a, float b) { return flushed(quotient(flushed(a), flushed(b))); }, float, float, float>(t, "div.full.ftz.f32");
    add<[](double x) { return upper_half<Function::rcp>(x); }, double, double>(t, "rcp.approx.ftz.f64");
    add<[](double x) { return upper_half<Function::rsqrt>(x); }, double, double>(t, "rsqrt.approx.ftz.f64");
    add<[](double x) { return 1 / __builtin_sqrt(x); }, double, double>(t, "rsqrt.approx.f64");

    add_comparisons<i16>(t), add_comparisons<u16>(t), add_comparisons<i32>(t), add_comparisons<u32>(t);
    add_comparisons<i64>(t), add_comparisons<u64>(t), add_comparisons<float>(t), add_comparisons<double>(t);
    add_comparisons<u16>(t, Type::b16), add_comparisons<u32>(t, Type::b32), add_comparisons<u64>(t, Type::b64);
    for (const Type type : {Type::b16, Type::u16, Type::s16}) add_moves<u16>(t, type);
    for (const Type type : {Type::b32, Type::u32, Type::s32, Type::f32}) add_moves<u32>(t, type);
    for (const Type type : {Type::b64, Type::u64, Type::s64, Type::f64}) add_moves<u64>(t, type);
    add_moves<u8>(t, Type::pred);
    add<[](u64 a) { return a | shared_window; }, u64, u64>(t, "cvta.shared");
    add<[](u64 a) { return a & ~window_mask; }, u64, u64>(t, "cvta.to.shared");

    add_conversions<u8>(t, "cvt.$.u8"), add_conversions<i8>(t, "cvt.$.s8"), add_conversions<u16>(t, "cvt.$.u16");
    add_conversions<i16>(t, "cvt.$.s16"), add_conversions<u32>(t, "cvt.$.u32"), add_conversions<i32>(t, "cvt.$.s32");
    add_conversions<u64>(t, "cvt.$.u64"), add_conversions<i64>(t, "cvt.$.s64"), add_conversions<half>(t, "cvt.$.f16");
    add_conversions<bhalf>(t, "cvt.$.bf16"), add_conversions<float>(t, "cvt.$.f32"), add_conversions<double>(t, "cvt.$.f64");

    for (const Type type : {Type::b8, Type::u8}) add_memory<u8>(t, type);
    add_memory<i8>(t, Type::s8);
    for (const Type type : {Type::b16, Type::u16}) add_memory<u16>(t, type);
    add_memory<i16>(t, Type::s16);
    for (const Type type : {Type::b32, Type::u32, Type::f32}) add_memory<u32>(t, type);
    add_memory<i32>(t, Type::s32);
    for (const Type type : {Type::b64, Type::u64, Type::s64, Type::f64}) add_memory<u64>(t, type);
    add_atomics<u32, Type::u32, Type::b32>(t), add_atomics<i32, Type::s32>(t), add_atomics<float, Type::f32>(t);
    add_atomics<u64, Type::u64, Type::b64>(t), add_atomics<i64, Type::s64>(t), add_atomics<double, Type::f64>(t);
    t.add("pack", Type::none, &pack, {});
    t.add("unpack", Type::none, &unpack, {});

    const std::initializer_list<Type> four = {Type::b32, Type::b32, Type::b32, Type::b32, Type::b32};
    t.add("shfl.sync.up.b32", Type::b32, &shuffle<Shuffle::up>, four);
    t.add("shfl.sync.down.b32", Type::b32, &shuffle<Shuffle::down>, four);
    t.add("shfl.sync.bfly.b32", Type::b32, &shuffle<Shuffle::bfly>, four);
    t.add("shfl.sync.idx.b32", Type::b32, &shuffle<Shuffle::idx>, four);
    const std::initializer_list<Type> one = {Type::pred, Type::pred, Type::b32};
    t.add("vote.sync.any.pred", Type::pred, &vote<[](u32 b, u32) { return b != 0; }, u8>, one);
    t.add("vote.sync.all.pred", Type::pred, &vote<[](u32 b, u32 all) { return b == all; }, u8>, one);
    t.add("vote.sync.uni.pred", Type::pred, &vote<[](u32 b, u32 all) { return b == 0 || b == all; }, u8>, one);
    t.add("vote.sync.ballot.b32", Type::b32, &vote<[](u32 b, u32) { return b; }, u32>, {Type::b32, Type::pred, Type::b32});
    t.add("match.any.sync.b32", Type::b32, &match_any, {Type::b32, Type::b32, Type::b32});
    const auto put = [&](const char* name, Handler run) { t.add(name, Type::b32, run, {Type::b32, Type::b32, Type::b32}); };
    put("redux.sync.add.u32", &reduce<[](u32 a, u32 b) { return a + b; }, u32>);
    put("redux.sync.add.s32", &reduce<[](u32 a, u32 b) { return a + b; }, u32>);
    put("redux.sync.min.u32", &reduce<[](u32 a, u32 b) { return a < b ? a : b; }, u32>);
    put("redux.sync.min.s32", &reduce<[](i32 a, i32 b) { return a < b ? a : b; }, i32>);
    put("redux.sync.max.u32", &reduce<[](u32 a, u32 b) { return b < a ? a : b; }, u32>);
    put("redux.sync.max.s32", &reduce<[](i32 a, i32 b) { return b < a ? a : b; }, i32>);
    put("redux.sync.and.b32", &reduce<[](u32 a, u32 b) { return a & b; }, u32>);
    put("redux.sync.or.b32", &reduce<[](u32 a, u32 b) { return a | b; }, u32>);
    put("redux.sync.xor.b32", &reduce<[](u32 a, u32 b) { return a ^ b; }, u32>);
    t.add("bar.warp.sync", Type::none, &nothing, {Type::none, Type::b32});
    t.add("activemask.b32", Type::b32, &active_mask, {Type::b32});
    t.add("trap", Type::none, &trap, {});
}

}  // namespace catena_machine::MACHINE_ISA
