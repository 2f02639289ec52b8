// Kernels written by hand: what threads know of each other and do together.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernel.hpp"

namespace {

using namespace machine_test;

TEST_CASE("special registers") {
    // %r0: its value; a block of 4 x 3 x 6 = 72 threads, a grid of 2 x 3 x 2.
    const Setup setup = {.grid = {2, 3, 2}, .block = {4, 3, 6}};
    const std::string number = R"(
    mov.u32 %r1, %tid.y;
    mov.u32 %r2, %tid.z;
    mad.lo.u32 %r2, %r2, 3, %r1;
    mad.lo.u32 %r2, %r2, 4, %t;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ctaid.y;
    mov.u32 %r5, %ctaid.z;
    mad.lo.u32 %r5, %r5, 3, %r4;
    mad.lo.u32 %r5, %r5, 2, %r3;
    mad.lo.u32 %r5, %r5, 72, %r2;
    mad.wide.u32 %own, %r5, 4, %out;
)";
    const std::vector<std::pair<std::string, std::function<u32(u32, u32)>>> registers = {
        {"%tid.x", [](u32, u32 t) { return t % 4; }},
        {"%tid.y", [](u32, u32 t) { return t / 4 % 3; }},
        {"%tid.z", [](u32, u32 t) { return t / 12; }},
        {"%ntid.x", [](u32, u32) { return 4; }},
        {"%ntid.y", [](u32, u32) { return 3; }},
        {"%ntid.z", [](u32, u32) { return 6; }},
        {"%ctaid.x", [](u32 b, u32) { return b % 2; }},
        {"%ctaid.y", [](u32 b, u32) { return b / 2 % 3; }},
        {"%ctaid.z", [](u32 b, u32) { return b / 6; }},
        {"%nctaid.x", [](u32, u32) { return 2; }},
        {"%nctaid.y", [](u32, u32) { return 3; }},
        {"%nctaid.z", [](u32, u32) { return 2; }},
        {"%laneid", [](u32, u32 t) { return t % 32; }},
        {"%warpid", [](u32, u32 t) { return t / 32; }},
        {"%nwarpid", [](u32, u32) { return 3; }},
        {"%lanemask_eq", [](u32, u32 t) { return 1u << t % 32; }},
        {"%lanemask_lt", [](u32, u32 t) { return (1u << t % 32) - 1; }},
        {"%lanemask_le", [](u32, u32 t) { return u32((u64(2) << t % 32) - 1); }},
        {"%lanemask_gt", [](u32, u32 t) { return ~u32((u64(2) << t % 32) - 1); }},
        {"%lanemask_ge", [](u32, u32 t) { return ~((1u << t % 32) - 1); }},
    };
    for (const auto& one : registers) {
        const auto& name = one.first;
        const auto& of = one.second;
        if (name == "%nwarpid") continue;  // may be larger than the number of warps of the block
        CAPTURE(name);
        CHECK(run(kernel(number + "mov.u32 %r0, " + name + ";"), setup) ==
              each(threads_of(setup), [&of](u32 i) { return of(i / 72, i % 72); }));
    }
}

TEST_CASE("barriers") {
    // Each round a thread adds what its neighbour in another warp had.
    const std::string rounds = R"(
    .shared .align 4 .b8 values[512];
    mov.u32 %r1, values;
    mad.lo.u32 %r2, %t, 4, %r1;
    add.u32 %r3, %t, 37;
    and.b32 %r3, %r3, 127;
    mad.lo.u32 %r3, %r3, 4, %r1;
    mov.u32 %r0, %t;
    mov.u32 %r4, 0;
$round:
    st.shared.u32 [%r2], %r0;
    bar.sync 0;
    ld.shared.u32 %r5, [%r3];
    add.u32 %r0, %r0, %r5;
    bar.sync 0;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r4, 10;
    @%p0 bra $round;
)";
    Values expected = each(128, [](u32 i) { return i; });
    for (int k = 0; k < 10; ++k) {
        const auto before = expected;
        for (u32 i = 0; i < 128; ++i) expected[i] += before[(i + 37) % 128];
    }
    for (const bool reversed : {false, true}) {
        CHECK(run(kernel(rounds), {.block = {128}, .reversed = reversed}) == expected);
    }
    // The sum of a block by halves; the barrier is where all threads come, the addition is not.
    const std::string halves = R"(
    .shared .align 4 .b8 values[1024];
    mov.u32 %r1, values;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    mov.u32 %r3, 128;
$halve:
    barrier.sync 0;
    setp.ge.u32 %p0, %t, %r3;
    @%p0 bra $skip;
    mad.lo.u32 %r4, %r3, 4, %r2;
    ld.shared.u32 %r5, [%r4];
    ld.shared.u32 %r6, [%r2];
    add.u32 %r5, %r5, %r6;
    st.shared.u32 [%r2], %r5;
$skip:
    shr.u32 %r3, %r3, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra $halve;
    bar.sync 0;
    ld.shared.u32 %r0, [values];
)";
    CHECK(run(kernel(halves), {.grid = {2}, .block = {256}}) == Values(512, 255 * 128));
    // Lanes of a warp that come to the barrier by different ways.
    CHECK(run(kernel(R"(
    setp.lt.u32 %p0, %t, 5;
    @%p0 bra $small;
    mov.u32 %r0, 1;
    bra $meet;
$small:
    mov.u32 %r0, 2;
$meet:
    bar.sync 0;
)"),
              {.block = {64}}) == each(64, [](u32 i) { return i < 5 ? 2 : 1; }));
    // Values pass from lane to lane after bar.warp.sync.
    CHECK(run(kernel(R"(
    .shared .align 4 .b8 values[128];
    mov.u32 %r1, values;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    bar.warp.sync 0xffffffff;
    xor.b32 %r3, %r2, 4;
    ld.shared.u32 %r0, [%r3];
)")) == each(32, [](u32 i) { return i ^ 1; }));
}

TEST_CASE("shuffles") {
    // Of a warp and of segments: the clamp and the mask are c = (mask << 8) | clamp.
    struct Shuffle {
        const char* mode;
        u32 b, c;
    };
    const Shuffle shuffles[] = {
        {"up", 1, 0},        {"up", 5, 0},        {"up", 0, 0},        {"up", 31, 0},
        {"up", 3, 0x1800},   {"up", 2, 0x1c00},   {"up", 33, 0},       {"down", 1, 0x1f},
        {"down", 16, 0x1f},  {"down", 31, 0x1f},  {"down", 3, 0x181f}, {"down", 1, 0x1e1f},
        {"down", 4, 20},     {"bfly", 1, 0x1f},   {"bfly", 16, 0x1f},  {"bfly", 31, 0x1f},
        {"bfly", 4, 0x181f}, {"bfly", 8, 0x181f}, {"bfly", 1, 10},     {"idx", 0, 0x1f},
        {"idx", 31, 0x1f},   {"idx", 37, 0x1f},   {"idx", 3, 0x181f},  {"idx", 11, 0x181f},
        {"idx", 20, 10},     {"idx", 5, 0x1803},
    };
    for (const auto& shuffle : shuffles) {
        const std::string name = shuffle.mode;
        const u32 b = shuffle.b, c = shuffle.c;
        CAPTURE(name);
        CAPTURE(b);
        CAPTURE(c);
        const auto expected = [&](u32 lane) {
            const int mask = int(c >> 8 & 31), clamp = int(c & 31), value = int(b & 31),
                      me = int(lane);
            const int last = (me & mask) | (clamp & ~mask), first = me & mask;
            int from = 0;
            bool good = false;
            if (name == "up") good = (from = me - value) >= last;
            if (name == "down") good = (from = me + value) <= last;
            if (name == "bfly") good = (from = me ^ value) <= last;
            if (name == "idx") good = (from = first | (value & ~mask & 31)) <= last;
            return u32(good ? from : me) * 7 + 1000 * u32(good);
        };
        const std::string operands = std::to_string(b) + ", " + std::to_string(c) + ", ";
        const auto fixed =
            kernel("mul.lo.u32 %r1, %t, 7; shfl.sync." + name + ".b32 %r0|%p0, %r1, " + operands +
                   "-1; @%p0 add.u32 %r0, %r0, 1000;");
        CHECK(run(fixed) == each(32, expected));
        const auto dynamic =
            kernel("mul.lo.u32 %r1, %t, 7; mov.u32 %r2, " + std::to_string(b) + "; mov.u32 %r3, " +
                   std::to_string(c) + "; mov.b32 %r4, -1; shfl.sync." + name +
                   ".b32 %r0|%p0, %r1, %r2, %r3, %r4; @%p0 add.u32 %r0, %r0, 1000;");
        CHECK(run(dynamic) == each(32, expected));
    }
    // Without the predicate; each lane names its own source.
    CHECK(run(kernel("mul.lo.u32 %r1, %t, 5; shfl.sync.idx.b32 %r0, %t, %r1, 31, -1;")) ==
          each(32, [](u32 i) { return i * 5 % 32; }));
    // The sum of a warp, of floats.
    CHECK(run(kernel(R"(
    cvt.rn.f32.u32 %f0, %t;
    mov.u32 %r1, 16;
$add:
    mov.b32 %r2, %f0;
    shfl.sync.bfly.b32 %r3, %r2, %r1, 31, -1;
    mov.b32 %f1, %r3;
    add.f32 %f0, %f0, %f1;
    shr.u32 %r1, %r1, 1;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra $add;
    mov.b32 %r0, %f0;
)"),
              {.block = {64}}) ==
          each(64, [](u32 i) { return std::bit_cast<u32>(i < 32 ? 496.0f : 1520.0f); }));
    // Half of a warp in each branch, with its own mask.
    CHECK(run(kernel(R"(
    setp.lt.u32 %p0, %t, 16;
    @%p0 bra $low;
    shfl.sync.down.b32 %r0, %t, 1, 31, 0xffff0000;
    bra $end;
$low:
    shfl.sync.up.b32 %r0, %t, 1, 0, 0x0000ffff;
$end:
    bar.warp.sync -1;
)")) == each(32, [](u32 i) { return i < 16    ? (i == 0 ? 0 : i - 1)
                                    : i == 31 ? 31
                                              : i + 1; }));
    // Each half has its own mask; lane 0 leaves the shuffle to meet those that are late for it.
    CHECK(run(kernel(R"(
    and.b32 %r1, %t, 16;
    setp.eq.u32 %p0, %r1, 0;
    selp.b32 %r2, 0x0000ffff, 0xffff0000, %p0;
    setp.ge.u32 %p1, %t, 24;
    mov.u32 %r3, 0;
    @%p1 bra $late;
$shuffle:
    shfl.sync.bfly.b32 %r0, %t, 15, 31, %r2;
    setp.eq.u32 %p2, %t, 0;
    @!%p2 bra $end;
$late:
    bar.warp.sync 0xff000001;
    @%p1 bra $shuffle;
$end:
)")) == each(32, [](u32 i) { return i ^ 15; }));
    // Lanes that come to the same shuffle from different branches wait for each other.
    CHECK(run(kernel(R"(
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p0, %r1, 1;
    mov.u32 %r2, 100;
    @%p0 bra $odd;
    add.u32 %r2, %r2, %t;
$odd:
    shfl.sync.bfly.b32 %r0, %r2, 1, 31, -1;
)")) == each(32, [](u32 i) { return i % 2 == 0 ? 100 : 100 + (i ^ 1); }));
}

TEST_CASE("votes") {
    const auto vote = [](const std::string& mode, const std::string& predicate) {
        return run(kernel("setp.lt.u32 %p0, %t, 40; setp.ne.u32 %p1, %t, 3; vote.sync." + mode +
                          ".pred %p2, " + predicate + ", -1; selp.u32 %r0, 1, 0, %p2;"),
                   {.block = {64}});
    };
    const auto both = [](u32 first, u32 second) {
        return each(64, [=](u32 i) { return i < 32 ? first : second; });
    };
    CHECK(vote("any", "%p0") == both(1, 1));
    CHECK(vote("all", "%p0") == both(1, 0));
    CHECK(vote("uni", "%p0") == both(1, 0));
    CHECK(vote("any", "!%p0") == both(0, 1));
    CHECK(vote("all", "%p1") == both(0, 1));
    CHECK(vote("any", "!%p1") == both(1, 0));
    CHECK(vote("uni", "!%p1") == both(0, 1));
    CHECK(run(kernel("setp.lt.u32 %p0, %t, 40; vote.sync.ballot.b32 %r0, %p0, -1;"),
              {.block = {64}}) == both(0xffffffff, 0xff));
    CHECK(run(kernel("setp.lt.u32 %p0, %t, 40; vote.sync.ballot.b32 %r0, !%p0, -1;"),
              {.block = {64}}) == both(0, 0xffffff00));
    // Among the lanes of a branch.
    CHECK(run(kernel(R"(
    mov.u32 %r0, 0;
    setp.lt.u32 %p0, %t, 8;
    setp.lt.u32 %p1, %t, 4;
    @!%p0 bra $end;
    vote.sync.ballot.b32 %r0, %p1, 0xff;
    activemask.b32 %r1;
$end:
)")) == each(32, [](u32 i) { return i < 8 ? 0xf : 0; }));
    CHECK(run(kernel("and.b32 %r1, %t, 3; match.any.sync.b32 %r0, %r1, -1;")) ==
          each(32, [](u32 i) { return 0x11111111u << i % 4; }));
    CHECK(run(kernel("redux.sync.add.u32 %r0, %t, -1;")) == Values(32, 496));
    CHECK(run(kernel("sub.s32 %r1, %t, 40; redux.sync.max.s32 %r0, %r1, -1;")) ==
          Values(32, u32(-9)));
}

TEST_CASE("atomics") {
    // One thread: the memory before, the operands, the memory after. The result is what was before.
    struct Atomic {
        const char *name, *type;
        u64 before;
        std::vector<const char*> operands;
        u64 after;
    };
    const Atomic atomics[] = {
        {"add", "s32", 5, {"-7"}, 0xfffffffe},
        {"add", "u32", 0xffffffff, {"2"}, 1},
        {"add", "u64", 0xffffffff, {"1"}, 0x100000000},
        {"add", "f32", 0x3fc00000, {"0f40000000"}, 0x40600000},
        {"add", "f64", 0x3ff8000000000000, {"0d4000000000000000"}, 0x400c000000000000},
        {"min", "s32", 5, {"-7"}, 0xfffffff9},
        {"min", "s32", 0xfffffff0, {"3"}, 0xfffffff0},
        {"min", "u32", 5, {"0xffffffff"}, 5},
        {"min", "u64", 0x100000000, {"5"}, 5},
        {"min", "s64", 5, {"-1"}, 0xffffffffffffffff},
        {"max", "s32", 0xffffffff, {"3"}, 3},
        {"max", "u32", 0xffffffff, {"3"}, 0xffffffff},
        {"max", "u32", 3, {"0x80000000"}, 0x80000000},
        {"max", "s64", 0xffffffffffffffff, {"3"}, 3},
        {"max", "u64", 0xffffffffffffffff, {"3"}, 0xffffffffffffffff},
        {"exch", "b32", 1, {"0xdeadbeef"}, 0xdeadbeef},
        {"exch", "b64", 1, {"0x123456789abcdef0"}, 0x123456789abcdef0},
        {"cas", "b32", 7, {"7", "9"}, 9},
        {"cas", "b32", 7, {"8", "9"}, 7},
        {"cas", "b64", 0x700000000, {"0x700000000", "9"}, 9},
        {"cas", "b64", 0x700000000, {"0", "9"}, 0x700000000},
        {"and", "b32", 0xff00ff00, {"0x0ff00ff0"}, 0x0f000f00},
        {"or", "b32", 0xff00ff00, {"0x0ff00ff0"}, 0xfff0fff0},
        {"xor", "b32", 0xff00ff00, {"0x0ff00ff0"}, 0xf0f0f0f0},
        {"inc", "u32", 5, {"7"}, 6},
        {"inc", "u32", 7, {"7"}, 0},
        {"inc", "u32", 9, {"7"}, 0},
        {"dec", "u32", 5, {"7"}, 4},
        {"dec", "u32", 0, {"7"}, 7},
        {"dec", "u32", 9, {"7"}, 7},
    };
    const std::vector<std::pair<std::string, std::string>> ways = {
        {".global", "%in"}, {".relaxed.gpu.global", "%in"}, {"", "%q0"}, {".shared", "cell"}};
    for (const auto& atomic : atomics) {
        const std::string type = atomic.type, name = std::string(atomic.name) + "." + type;
        const bool wide = type.ends_with("64");
        const std::string bits = wide ? "b64" : "b32", result = wide ? "%q1" : "%r1",
                          memory = wide ? "%q2" : "%r2";
        std::string operands;
        for (const auto* operand : atomic.operands) operands += std::string(", ") + operand;
        for (const auto& [space, at] : ways) {
            const auto code = "atom" + space + "." + name;
            CAPTURE(code);
            CAPTURE(operands);
            const auto load = space.find("shared") == std::string::npos ? "global" : "shared";
            std::string body =
                ".shared .align 8 .b8 cell[8]; cvta.global.u64 %q0, %in; ld.global." + bits + " " +
                memory + ", [%in]; st.shared." + bits + " [cell], " + memory + ";\n" + code + " " +
                result + ", [" + at + "]" + operands + ";\nld." + load + "." + bits + " " + memory +
                ", [" + (at == "%q0" ? "%in" : at) + "];\nst.global." + bits + " [%out], " +
                result + "; st.global." + bits + " [%out+8], " + memory + "; ret;";
            Buffer out(std::vector<u64>(2, 0)), in(std::vector<u64>{atomic.before});
            const auto fault = launch(kernel(body), "k", {.block = {1}}, {&out, &in});
            CHECK_MESSAGE(fault.error == 0, fault.text);
            CHECK(out.get<u64>() == std::vector<u64>{atomic.before, atomic.after});
        }
        if (name.starts_with("exch") || name.starts_with("cas")) continue;
        const auto code = "red.global." + name;
        CAPTURE(code);
        Buffer out(std::vector<u64>(2, 0)), in(std::vector<u64>{atomic.before});
        const auto fault =
            launch(kernel(code + " [%in]" + operands + "; ret;"), "k", {.block = {1}}, {&out, &in});
        CHECK_MESSAGE(fault.error == 0, fault.text);
        CHECK(in.get<u64>()[0] == atomic.after);
    }
    // Many threads: each value is returned once.
    for (const int threads : {1, 3}) {
        Values in = {0, 0, 0, 0};
        auto old = run(kernel(R"(
    atom.global.add.u32 %r0, [%in], 1;
    red.global.add.u32 [%in+4], %r0;
    red.global.max.u32 [%in+8], %r0;
    mov.f32 %f0, 0f3F000000;
    red.global.add.f32 [%in+12], %f0;
)"),
                       {.grid = {6}, .block = {96}, .threads = threads}, in);
        std::sort(old.begin(), old.end());
        CHECK(old == each(576, [](u32 i) { return i; }));
        CHECK(in == Values{576, 575 * 288, 575, std::bit_cast<u32>(288.0f)});
    }
    // A lock by compare-and-swap: one lane after the other adds to a plain word.
    Values in = {0, 0};
    run(kernel(R"(
$try:
    atom.global.cas.b32 %r1, [%in], 0, 1;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra $try;
    membar.gl;
    ld.volatile.global.u32 %r2, [%in+4];
    add.u32 %r2, %r2, %t;
    st.volatile.global.u32 [%in+4], %r2;
    membar.gl;
    atom.global.exch.b32 %r1, [%in], 0;
    mov.u32 %r0, 0;
)"),
        {.block = {1}}, in);
    CHECK(in == Values{0, 0});
    // A sum in shared memory, by all warps.
    CHECK(run(kernel(R"(
    .shared .align 4 .b8 sum[4];
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra $ready;
    mov.u32 %r1, 0;
    st.shared.u32 [sum], %r1;
$ready:
    bar.sync 0;
    atom.shared.add.u32 %r1, [sum], %t;
    red.shared.add.u32 [sum], 1;
    bar.sync 0;
    ld.shared.u32 %r0, [sum];
)"),
              {.block = {96}}) == Values(96, 95 * 48 + 96));
}

}  // namespace
