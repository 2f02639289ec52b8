// Memory, atomics, and lanes that work together.
#include "lanes.hpp"
#include "quick.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

template <class M>
void put(Warp& w, const Instruction& in, int lane, const unsigned char* from) {
    for (int k = 0; k < in.count; ++k) {
        M m;
        std::memcpy(&m, from + k * sizeof m, sizeof m);
        unsigned char* const to = w.at<unsigned char>(in.at[k]) + lane * in.wide[0];
        if (in.wide[0] == sizeof m) {
            std::memcpy(to, &m, sizeof m);
        } else {
            const auto wide = static_cast<i64>(m);
            std::memcpy(to, &wide, in.wide[0]);
        }
    }
}
// n: the bytes of an access. A constant for those that are usual, which makes their checks short.
template <class M, std::size_t n>
void load_lanes(Warp& w, const Instruction& in) {
    const Quick quick(w, in);
    M* const plain = in.count == 1 && in.wide[0] == sizeof(M) ? w.at<M>(in.at[0]) : nullptr;
    const unsigned char* from = nullptr;
    u64 last = 0;
    int repeated = 0;
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const u64 address = w.address(in, lane);
        // Lanes often read the same place. The second shows the check that there are several.
        repeated = address == last && from != nullptr ? repeated + 1 : 0;
        if (repeated < 2 || (in.space != Space::global && in.space != Space::shared)) {
            from = quick.find<false>(lane, address, n != 0 ? n : in.bytes);
            if (from == nullptr)
                from = static_cast<const unsigned char*>(w.access(in, lane, address, false));
            last = address;
        }
        if (plain != nullptr) std::memcpy(plain + lane, from, sizeof(M));
        else put<M>(w, in, lane, from);
    }
}
template <class M>
void load(Warp& w, const Instruction& in) {
    const int first = __builtin_ctz(w.active);
    if ((in.at[4] & 1) != 0 && (w.address(in, first) & window_mask) == param_window) {
        // An argument of the kernel: the same for all lanes.
        const Block& b = *w.block;
        const u64 address = w.address(in, first), at = address & ~window_mask;
        const bool quick = (at & (in.bytes - 1)) == 0 && at + in.bytes <= b.code->argument_bytes &&
                           (in.space == Space::param || in.space == Space::generic);
        const void* const from =
            quick ? b.launch->arguments + at : w.access(in, first, address, false);
        for (u32 rest = w.active; rest != 0; rest &= rest - 1)
            put<M>(w, in, __builtin_ctz(rest), static_cast<const unsigned char*>(from));
    } else if (in.bytes == sizeof(M)) {
        load_lanes<M, sizeof(M)>(w, in);
    } else {
        load_lanes<M, 0>(w, in);
    }
}
template <class M, std::size_t n>
void store_lanes(Warp& w, const Instruction& in) {
    const Quick quick(w, in);
    for (u32 rest = w.active; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        alignas(16) unsigned char value[16];
        for (int k = 0; k < in.count; ++k)
            std::memcpy(value + k * sizeof(M), w.at<unsigned char>(in.at[k]) + lane * in.wide[0],
                        sizeof(M));
        const u64 address = w.address(in, lane);
        if (unsigned char* const to = quick.find<true>(lane, address, n != 0 ? n : in.bytes);
            to != nullptr)
            std::memcpy(to, value, n != 0 ? n : in.bytes);
        else w.store(in, lane, address, value);
    }
}
template <class M>
void store(Warp& w, const Instruction& in) {
    if (in.bytes == sizeof(M)) store_lanes<M, sizeof(M)>(w, in);
    else store_lanes<M, 0>(w, in);
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
        while (!__atomic_compare_exchange(place, &old, &wanted, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
        d[lane] = old;
    }
}
// T: the type for computations. The first operand is the memory.
template <class T>
void add_atomics(Table& t, Type type) {
    const auto both = [&](const char* atom, const char* red, Handler run) {
        t.add(atom, type, run, {type, type});
        t.add(red, type, run, {type, type});
    };
    if (is_floating<T> || type == Type::u32 || type == Type::s32 || type == Type::u64)
        both("atom.add.$", "red.add.$",
             &atomic<[](T a, T b, T) { return static_cast<T>(a + b); }, T>);
    if constexpr (!is_floating<T>) {
        if (type <= Type::b64) {
            t.add("atom.exch.$", type, &atomic<[](T, T b, T) { return b; }, T>, {type, type});
            t.add("atom.cas.$", type, &atomic<[](T a, T b, T c) { return a == b ? c : a; }, T>,
                  {type, type, type});
            both("atom.and.$", "red.and.$", &atomic<[](T a, T b, T) { return a & b; }, T>);
            both("atom.or.$", "red.or.$", &atomic<[](T a, T b, T) { return a | b; }, T>);
            both("atom.xor.$", "red.xor.$", &atomic<[](T a, T b, T) { return a ^ b; }, T>);
        } else {
            both("atom.min.$", "red.min.$", &atomic<[](T a, T b, T) { return a < b ? a : b; }, T>);
            both("atom.max.$", "red.max.$", &atomic<[](T a, T b, T) { return b < a ? a : b; }, T>);
        }
        if (type == Type::u32) {
            both("atom.inc.$", "red.inc.$",
                 &atomic<[](T a, T b, T) { return a >= b ? T(0) : a + 1; }, T>);
            both("atom.dec.$", "red.dec.$",
                 &atomic<[](T a, T b, T) { return a == 0 || b < a ? b : a - 1; }, T>);
        }
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
            std::memcpy(to + i * in.wide[1] + k * in.wide[0],
                        w.at<unsigned char>(in.at[k]) + i * in.wide[0], in.wide[0]);
    });
}
void unpack(Warp& w, const Instruction& in) {
    const unsigned char* const from = w.at<unsigned char>(in.at[4]);
    for_lanes(w, [&](int i) {
        for (int k = 0; k < in.count; ++k)
            std::memcpy(w.at<unsigned char>(in.at[k]) + i * in.wide[0],
                        from + i * in.wide[1] + k * in.wide[0], in.wide[0]);
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
        if ((w.active >> from & 1) == 0)
            throw_stopped(lane, "reads a lane that does not take part");
        d[lane] = values[from];
        if (p != nullptr) p[lane] = inside ? 1 : 0;
    }
}
u32 ballot(const Warp& w, const Instruction& in) {
    const u8* const p = w.at<u8>(in.at[2]);
    const u8 flip = (in.target & combine_not) != 0 ? 1 : 0;
    u32 bits = 0;
    for (u32 rest = w.active; rest != 0; rest &= rest - 1)
        bits |= static_cast<u32>(p[__builtin_ctz(rest)] ^ flip) << __builtin_ctz(rest);
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
    for (u32 rest = w.active & (w.active - 1); rest != 0; rest &= rest - 1)
        r = f(r, a[__builtin_ctz(rest)]);
    T* const d = w.at<T>(in.at[0]);
    for_lanes(w, [=](int i) { d[i] = r; });
}
void match_any(Warp& w, const Instruction& in) {
    u32 values[32];
    std::memcpy(values, w.at<u32>(in.at[2]), sizeof values);
    u32* const d = w.at<u32>(in.at[0]);
    for_lanes(w, [&](int i) {
        u32 same = 0;
        for (int k = 0; k < 32; ++k) same |= static_cast<u32>(values[k] == values[i]) << k;
        d[i] = same & w.active;
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

void fill_memory(Table& t) {
    for (const Type type : {Type::b8, Type::u8}) add_memory<u8>(t, type);
    add_memory<i8>(t, Type::s8);
    for (const Type type : {Type::b16, Type::u16}) add_memory<u16>(t, type);
    add_memory<i16>(t, Type::s16);
    for (const Type type : {Type::b32, Type::u32, Type::f32}) add_memory<u32>(t, type);
    add_memory<i32>(t, Type::s32);
    for (const Type type : {Type::b64, Type::u64, Type::s64, Type::f64}) add_memory<u64>(t, type);
    for (const Type type : {Type::b32, Type::u32}) add_atomics<u32>(t, type);
    for (const Type type : {Type::b64, Type::u64}) add_atomics<u64>(t, type);
    add_atomics<i32>(t, Type::s32), add_atomics<i64>(t, Type::s64);
    add_atomics<float>(t, Type::f32), add_atomics<double>(t, Type::f64);
    t.add("pack", Type::none, &pack, {});
    t.add("unpack", Type::none, &unpack, {});

    const std::initializer_list<Type> four = {Type::b32, Type::b32, Type::b32, Type::b32,
                                              Type::b32};
    t.add("shfl.sync.up.b32", Type::b32, &shuffle<Shuffle::up>, four);
    t.add("shfl.sync.down.b32", Type::b32, &shuffle<Shuffle::down>, four);
    t.add("shfl.sync.bfly.b32", Type::b32, &shuffle<Shuffle::bfly>, four);
    t.add("shfl.sync.idx.b32", Type::b32, &shuffle<Shuffle::idx>, four);
    const std::initializer_list<Type> one = {Type::pred, Type::pred, Type::b32};
    t.add("vote.sync.any.pred", Type::pred, &vote<[](u32 b, u32) { return b != 0; }, u8>, one);
    t.add("vote.sync.all.pred", Type::pred, &vote<[](u32 b, u32 all) { return b == all; }, u8>,
          one);
    t.add("vote.sync.uni.pred", Type::pred,
          &vote<[](u32 b, u32 all) { return b == 0 || b == all; }, u8>, one);
    t.add("vote.sync.ballot.b32", Type::b32, &vote<[](u32 b, u32) { return b; }, u32>,
          {Type::b32, Type::pred, Type::b32});
    t.add("match.any.sync.b32", Type::b32, &match_any, {Type::b32, Type::b32, Type::b32});
    const auto put = [&](const char* name, Handler run) {
        t.add(name, Type::b32, run, {Type::b32, Type::b32, Type::b32});
    };
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

void fill(Table& table) {
    fill_integers(table);
    fill_floats(table);
    fill_comparisons(table);
    fill_conversions(table);
    fill_memory(table);
}

}  // namespace catena_machine::MACHINE_ISA
