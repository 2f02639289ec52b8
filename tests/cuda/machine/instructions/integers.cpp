// Integer arithmetic, bits and carries.
#include "lanes.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

template <class T>
T shift_left(T x, u32 n) {
    return n < sizeof(T) * 8 ? static_cast<T>(static_cast<uns<T>>(x) << n) : T(0);
}
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
    if (!is_unsigned<T> && b == static_cast<T>(-1))
        return static_cast<T>(uns<T>(0) - static_cast<uns<T>>(a));
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
// Bits beyond the operand are copies of its sign, else 0.
template <class T>
T extract(T a, u32 position, u32 length) {
    const u32 bits = sizeof(T) * 8, n = length & 0xff;
    const u32 unused = n < bits ? bits - n : 0;
    return shift_right(shift_left(shift_right(a, position & 0xff), unused), unused);
}
template <class T>
T insert(T a, T b, u32 position, u32 length) {
    const u32 bits = sizeof(T) * 8, at = position & 0xff, n = length & 0xff;
    if (at >= bits) return b;
    const T mask = (n >= bits ? ~T(0) : (T(1) << n) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}
template <class T>
T reverse(T a) {
    T r = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i) r |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
    return r;
}
template <int mode>
u32 permute(u32 a, u32 b, u32 selector) {
    const u64 all = static_cast<u64>(b) << 32 | a;
    const u32 s = selector & 3;
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
        u32 which = 0;
        if (mode == 0) which = selector >> i * 4 & 0xf;
        if (mode == 1) which = s + i;                  // f4e
        if (mode == 2) which = (s - i) & 7;            // b4e
        if (mode == 3) which = s;                      // rc8
        if (mode == 4) which = i > s ? i : s;          // ecl
        if (mode == 5) which = i < s ? i : s;          // ecr
        if (mode == 6) which = (s & 1) * 2 + (i & 1);  // rc16
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
// Chooses, for each bit, one of the 8 bits of the table.
[[gnu::always_inline]] inline u32 lop3(u32 a, u32 b, u32 c, u32 table) {
    const auto bit = [=](int k) { return 0 - (table >> k & 1); };
    const auto choose = [](u32 by, u32 one, u32 zero) { return (by & one) | (~by & zero); };
    const auto four = [=](int k) {
        return choose(b, choose(c, bit(k + 3), bit(k + 2)), choose(c, bit(k + 1), bit(k)));
    };
    return choose(a, four(4), four(0));
}
// f gives a value of twice the size, to which the carry is added. at[4] is the carry of each lane.
enum class Carry { out, in, both };
template <auto f, class T, Carry carry>
void with_carry(Warp& w, const Instruction& in) {
    T* const d = w.at<T>(in.at[0]);
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]);
    const T* const c = in.at[3] != no_slot ? w.at<T>(in.at[3]) : b;
    u8* const flag = w.at<u8>(in.at[4]);
    for_lanes(w, [=](int i) {
        const wider<T> r = f(a[i], b[i], c[i], carry == Carry::out ? T(0) : T(flag[i]));
        d[i] = static_cast<T>(r);
        if (carry != Carry::in) flag[i] = static_cast<u8>(r >> sizeof(T) * 8 & 1);
    });
}
template <auto f, class T>
void add_carries(Table& t, std::initializer_list<Type> types, const char* out, const char* in,
                 const char* both) {
    const Type type = *types.begin();
    t.add(out, type, &with_carry<f, T, Carry::out>, types);
    t.add(in, type, &with_carry<f, T, Carry::in>, types);
    t.add(both, type, &with_carry<f, T, Carry::both>, types);
}

template <class T>
void add_integer(Table& t) {
    add<sum<T>>(t, "add.$");
    add<difference<T>>(t, "sub.$");
    add<low<T>>(t, "mul.lo.$");
    add<high<T>>(t, "mul.hi.$");
    add<[](T a, T b, T c) { return sum(low(a, b), c); }>(t, "mad.lo.$");
    add<[](T a, T b, T c) { return sum(high(a, b), c); }>(t, "mad.hi.$");
    if constexpr (sizeof(T) < 8) {
        using W = wider<T>;
        add<[](T a, T b) { return static_cast<W>(W(a) * W(b)); }>(t, "mul.wide.$");
        add<[](T a, T b, W c) { return sum(static_cast<W>(W(a) * W(b)), c); }>(t, "mad.wide.$");
    }
    add<divide<T>>(t, "div.$");
    add<remainder<T>>(t, "rem.$");
    add<[](T a, T b) { return a < b ? a : b; }>(t, "min.$");
    add<[](T a, T b) { return b < a ? a : b; }>(t, "max.$");
    add<shift_right<T>>(t, "shr.$");
    if constexpr (!is_unsigned<T>) {
        add<[](T a) { return difference(T(0), a); }>(t, "neg.$");
        add<[](T a) { return a < 0 ? difference(T(0), a) : a; }>(t, "abs.$");
    }
    if constexpr (sizeof(T) >= 4) {
        add<extract<T>>(t, "bfe.$");
        using U = uns<T>;
        using W = wider<U>;
        const Type type = type_of<T>;
        const std::initializer_list<Type> three = {type, type, type},
                                          four = {type, type, type, type};
        add_carries<[](U a, U b, U, U carry) { return W(a) + b + carry; }, U>(
            t, three, "add.cc.$", "addc.$", "addc.cc.$");
        add_carries<[](U a, U b, U, U carry) { return W(a) - b - carry; }, U>(
            t, three, "sub.cc.$", "subc.$", "subc.cc.$");
        add_carries<[](U a, U b, U c, U carry) { return W(low(a, b)) + c + carry; }, U>(
            t, four, "mad.lo.cc.$", "madc.lo.$", "madc.lo.cc.$");
        // The upper half of a product depends on the sign of the type.
        add_carries<[](U a, U b, U c, U carry) {
            return W(static_cast<U>(high(T(a), T(b)))) + c + carry;
        },
                    U>(t, four, "mad.hi.cc.$", "madc.hi.$", "madc.hi.cc.$");
    }
}

template <class T>
void add_bits(Table& t, Type type) {
    add<[](T a, T b) { return static_cast<T>(a & b); }>(t, "and.$", type);
    add<[](T a, T b) { return static_cast<T>(a | b); }>(t, "or.$", type);
    add<[](T a, T b) { return static_cast<T>(a ^ b); }>(t, "xor.$", type);
    if constexpr (sizeof(T) >= 2) {
        add<[](T a) { return static_cast<T>(~a); }>(t, "not.$", type);
        add<[](T a) { return static_cast<T>(a == 0 ? 1 : 0); }>(t, "cnot.$", type);
        add<shift_left<T>>(t, "shl.$", type);
        add<shift_right<T>>(t, "shr.$", type);
    }
    if constexpr (sizeof(T) >= 4) {
        add<[](T a) { return static_cast<u32>(std::popcount(a)); }>(t, "popc.$", type);
        add<[](T a) { return static_cast<u32>(std::countl_zero(a)); }>(t, "clz.$", type);
        add<reverse<T>>(t, "brev.$", type);
        add<insert<T>>(t, "bfi.$", type);
    }
}

}  // namespace

void fill_integers(Table& t) {
    add_integer<i16>(t), add_integer<u16>(t), add_integer<i32>(t), add_integer<u32>(t);
    add_integer<i64>(t), add_integer<u64>(t);
    add_bits<u16>(t, Type::b16), add_bits<u32>(t, Type::b32), add_bits<u64>(t, Type::b64);
    add_bits<u8>(t, Type::pred);
    add<[](u8 a) { return static_cast<u8>(a ^ 1); }>(t, "not.$", Type::pred);
    add<permute<0>>(t, "prmt.$", Type::b32);
    add<permute<1>>(t, "prmt.$.f4e", Type::b32);
    add<permute<2>>(t, "prmt.$.b4e", Type::b32);
    add<permute<3>>(t, "prmt.$.rc8", Type::b32);
    add<permute<4>>(t, "prmt.$.ecl", Type::b32);
    add<permute<5>>(t, "prmt.$.ecr", Type::b32);
    add<permute<6>>(t, "prmt.$.rc16", Type::b32);
    add<funnel<true, true>>(t, "shf.l.clamp.$", Type::b32);
    add<funnel<true, false>>(t, "shf.l.wrap.$", Type::b32);
    add<funnel<false, true>>(t, "shf.r.clamp.$", Type::b32);
    add<funnel<false, false>>(t, "shf.r.wrap.$", Type::b32);
    add<lop3>(t, "lop3.$", Type::b32);
}

}  // namespace catena_machine::MACHINE_ISA
