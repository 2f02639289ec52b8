// Comparisons, selections and moves.
#include "lanes.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

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
            return combine == combine_and   ? v & z
                   : combine == combine_or  ? v | z
                   : combine == combine_xor ? v ^ z
                                            : v;
        };
        d[i] = with(x);
        if (other != nullptr) other[i] = with(y);
    }
}
template <class T>
void add_comparisons(Table& t, Type type = type_of<T>) {
    const auto put = [&](const char* name, Handler run) {
        t.add(name, type, run, {Type::pred, type, type});
    };
    // lo, ls, hi and hs are names of comparisons of unsigned integers.
    const auto order = [&](const char* name, const char* of_unsigned, Handler run) {
        if (type > Type::b64) put(name, run);
        if (type >= Type::u8 && type <= Type::u64) put(of_unsigned, run);
    };
    put("setp.eq.$", &compare<[](T a, T b) { return a == b; }, T>);
    order("setp.lt.$", "setp.lo.$", &compare<[](T a, T b) { return a < b; }, T>);
    order("setp.le.$", "setp.ls.$", &compare<[](T a, T b) { return a <= b; }, T>);
    order("setp.gt.$", "setp.hi.$", &compare<[](T a, T b) { return b < a; }, T>);
    order("setp.ge.$", "setp.hs.$", &compare<[](T a, T b) { return a >= b; }, T>);
    if constexpr (!is_floating<T>) {
        put("setp.ne.$", &compare<[](T a, T b) { return a != b; }, T>);
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
void add_moves(Table& t, Type type) {
    constexpr auto select = [](T a, T b, u8 p) { return p != 0 ? a : b; };
    t.add("selp.$", type, &Each<select>::run, {type, type, type, Type::pred});
    add<[](T a) { return a; }>(t, "mov.$", type);
}

}  // namespace

void fill_comparisons(Table& t) {
    add_comparisons<i16>(t), add_comparisons<u16>(t), add_comparisons<i32>(t),
        add_comparisons<u32>(t);
    add_comparisons<i64>(t), add_comparisons<u64>(t), add_comparisons<float>(t),
        add_comparisons<double>(t);
    add_comparisons<u16>(t, Type::b16), add_comparisons<u32>(t, Type::b32),
        add_comparisons<u64>(t, Type::b64);
    for (const Type type : {Type::b16, Type::u16, Type::s16}) add_moves<u16>(t, type);
    for (const Type type : {Type::b32, Type::u32, Type::s32, Type::f32}) add_moves<u32>(t, type);
    for (const Type type : {Type::b64, Type::u64, Type::s64, Type::f64}) add_moves<u64>(t, type);
    add_moves<u8>(t, Type::pred);
    add<[](u64 a) { return a | shared_window; }>(t, "cvta.shared.u64");
    add<[](u64 a) { return a & ~window_mask; }>(t, "cvta.to.shared.u64");
}

}  // namespace catena_machine::MACHINE_ISA
