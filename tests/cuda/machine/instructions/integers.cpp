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
template <class T>
T extract(T a, u32 position, u32 length) {
    const u32 bits = sizeof(T) * 8;
    const u32 at = position & 0xff, n = length & 0xff;
    if (n == 0) return 0;
    const bool sign =
        !is_unsigned<T> && (a >> (at + n - 1 < bits - 1 ? at + n - 1 : bits - 1) & 1) != 0;
    uns<T> value = at < bits ? static_cast<uns<T>>(a) >> at : 0;
    if (n >= bits) {
        if (sign && at > 0) value |= at < bits ? ~(~uns<T>(0) >> at) : ~uns<T>(0);
        return static_cast<T>(value);
    }
    value &= (uns<T>(1) << n) - 1;
    if (at + n > bits && sign)
        value |= at < bits ? ~(~uns<T>(0) >> at) & ((uns<T>(1) << n) - 1) : ~uns<T>(0);
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
void lop3(Warp& w, const Instruction& in) {
    u32* const d = w.at<u32>(in.at[0]);
    const u32 *const a = w.at<u32>(in.at[1]), *const b = w.at<u32>(in.at[2]),
                     *const c = w.at<u32>(in.at[3]);
    const u32 table = *w.at<u32>(in.at[4]);
    for_lanes(w, [=](int i) {
        u32 r = 0;
        for (int k = 0; k < 8; ++k)
            if ((table >> k & 1) != 0)
                r |= ((k & 4) != 0 ? a[i] : ~a[i]) & ((k & 2) != 0 ? b[i] : ~b[i]) &
                     ((k & 1) != 0 ? c[i] : ~c[i]);
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
    const T *const a = w.at<T>(in.at[1]), *const b = w.at<T>(in.at[2]),
                   *const c = w.at<T>(in.at[3]);
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
        add<[](T a, T b, W c) { return sum<W>(static_cast<W>(W(a) * W(b)), c); }, W, T, T, W>(
            t, "mad.wide.$");
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
        t.add("add.cc.$", type_of<T>, &add_with_carry<U, Carry::out, false>,
              {type_of<T>, type_of<T>, type_of<T>});
        t.add("addc.$", type_of<T>, &add_with_carry<U, Carry::in, false>,
              {type_of<T>, type_of<T>, type_of<T>});
        t.add("addc.cc.$", type_of<T>, &add_with_carry<U, Carry::both, false>,
              {type_of<T>, type_of<T>, type_of<T>});
        t.add("sub.cc.$", type_of<T>, &add_with_carry<U, Carry::out, true>,
              {type_of<T>, type_of<T>, type_of<T>});
        t.add("subc.$", type_of<T>, &add_with_carry<U, Carry::in, true>,
              {type_of<T>, type_of<T>, type_of<T>});
        t.add("subc.cc.$", type_of<T>, &add_with_carry<U, Carry::both, true>,
              {type_of<T>, type_of<T>, type_of<T>});
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
    name("shl.$", &binary<[](T a, u32 n) { return shift_left(a, n); }, T, T, u32>,
         {T_, T_, Type::u32});
    name("shr.$", &binary<[](T a, u32 n) { return shift_right(a, n); }, T, T, u32>,
         {T_, T_, Type::u32});
    name("not.$", &unary<[](T a) { return static_cast<T>(~a); }, T, T>, {T_, T_});
    name("cnot.$", &unary<[](T a) { return static_cast<T>(a == 0 ? 1 : 0); }, T, T>, {T_, T_});
    if constexpr (sizeof(T) >= 4) {
        name("popc.$", &unary<[](T a) { return static_cast<u32>(std::popcount(a)); }, u32, T>,
             {Type::u32, T_});
        name("clz.$", &unary<[](T a) { return static_cast<u32>(std::countl_zero(a)); }, u32, T>,
             {Type::u32, T_});
        name("brev.$",
             &unary<[](T a) {
                 T r = 0;
                 for (unsigned i = 0; i < sizeof(T) * 8; ++i)
                     r |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
                 return r;
             },
                    T, T>,
             {T_, T_});
        name("bfi.$", &insert<T>, {T_, T_, T_, Type::u32, Type::u32});
    }
}

}  // namespace

void fill_integers(Table& t) {
    add_integer<i16>(t), add_integer<u16>(t), add_integer<i32>(t), add_integer<u32>(t);
    add_integer<i64>(t), add_integer<u64>(t);
    add_bits<u16>(t, Type::b16), add_bits<u32>(t, Type::b32), add_bits<u64>(t, Type::b64);
    t.add("and.pred", Type::pred,
          &binary<[](u8 a, u8 b) { return static_cast<u8>(a & b); }, u8, u8, u8>,
          {Type::pred, Type::pred, Type::pred});
    t.add("or.pred", Type::pred,
          &binary<[](u8 a, u8 b) { return static_cast<u8>(a | b); }, u8, u8, u8>,
          {Type::pred, Type::pred, Type::pred});
    t.add("xor.pred", Type::pred,
          &binary<[](u8 a, u8 b) { return static_cast<u8>(a ^ b); }, u8, u8, u8>,
          {Type::pred, Type::pred, Type::pred});
    t.add("not.pred", Type::pred, &unary<[](u8 a) { return static_cast<u8>(a ^ 1); }, u8, u8>,
          {Type::pred, Type::pred});
    t.add("prmt.b32", Type::b32, &ternary<&permute<0>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.f4e", Type::b32, &ternary<&permute<1>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.b4e", Type::b32, &ternary<&permute<2>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.rc8", Type::b32, &ternary<&permute<3>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.ecl", Type::b32, &ternary<&permute<4>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.ecr", Type::b32, &ternary<&permute<5>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("prmt.b32.rc16", Type::b32, &ternary<&permute<6>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::b32});
    t.add("shf.l.clamp.b32", Type::b32, &ternary<&funnel<true, true>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("shf.l.wrap.b32", Type::b32, &ternary<&funnel<true, false>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("shf.r.clamp.b32", Type::b32, &ternary<&funnel<false, true>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("shf.r.wrap.b32", Type::b32, &ternary<&funnel<false, false>, u32, u32, u32, u32>,
          {Type::b32, Type::b32, Type::b32, Type::u32});
    t.add("lop3.b32", Type::b32, &lop3, {Type::b32, Type::b32, Type::b32, Type::b32, Type::b32});
}

}  // namespace catena_machine::MACHINE_ISA
