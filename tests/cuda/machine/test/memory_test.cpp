// Kernels written by hand: memory of each space, and what is declared in it.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "kernel.hpp"

namespace {

using namespace machine_test;

// Instructions that store a value and load it again, for each type, in a space with the address in `at`.
std::string round_trip(const std::string& space, const std::string& at) {
    struct Access {
        const char *store, *load;
    };
    // What each load leaves in a register of 32 or 64 bits goes to the output.
    const Access accesses[] = {
        {"st{}.u8 [{@}], %r1;", "ld{}.u8 %r0, [{@}];"},
        {"st{}.u8 [{@}+1], %r1;", "ld{}.s8 %r0, [{@}+1];"},
        {"st{}.b8 [{@}+2], %r1;", "ld{}.b8 %r0, [{@}+2];"},
        {"st{}.u16 [{@}+2], %r1;", "ld{}.u16 %r0, [{@}+2];"},
        {"st{}.u16 [{@}+4], %r1;", "ld{}.s16 %r0, [{@}+4];"},
        {"st{}.u32 [{@}+4], %r1;", "ld{}.s32 %r0, [{@}+4];"},
        {"st{}.b32 [{@}+8], %r1;", "ld{}.b32 %r0, [{@}+8];"},
    };
    std::string code = "mov.u32 %r1, 0x1234a5f7;\n";
    int place = 0;
    const auto add = [&](std::string text) {
        for (std::size_t i; (i = text.find("{}")) != std::string::npos;) text.replace(i, 2, space);
        for (std::size_t i; (i = text.find("{@}")) != std::string::npos;) text.replace(i, 3, at);
        code += text + "\n";
    };
    const auto result = [&](const char* name, int bytes) {
        code += "st.global.b" + std::to_string(8 * bytes) + " [%out+" +
                std::to_string(8 * place++) + "], " + name + ";\n";
    };
    for (const auto& [store, load] : accesses) {
        add(store);
        add(load);
        result("%r0", 4);
    }
    add("st{}.s8 [{@}], %r1; ld{}.s8 %h0, [{@}]; cvt.s32.s16 %r0, %h0;");
    result("%r0", 4);
    add("ld{}.u8 %h0, [{@}]; cvt.u32.u16 %r0, %h0;");
    result("%r0", 4);
    add("ld{}.s8 %q1, [{@}];");
    result("%q1", 8);
    add("mov.b64 %q1, 0x9123456789abcdef; st{}.u64 [{@}+8], %q1; ld{}.b64 %q2, [{@}+8];");
    result("%q2", 8);
    add("ld{}.s32 %q2, [{@}+8];");
    result("%q2", 8);
    add("ld{}.u32 %q2, [{@}+8];");
    result("%q2", 8);
    add("st{}.u16 [{@}+6], %q1; ld{}.u16 %q2, [{@}+6];");
    result("%q2", 8);
    add("mov.f32 %f0, 0f3FC00000; st{}.f32 [{@}+4], %f0; ld{}.f32 %f1, [{@}+4];");
    result("%f1", 4);
    add("mov.f64 %d0, 0d3FF8000000000000; st{}.f64 [{@}+8], %d0; ld{}.f64 %d1, [{@}+8];");
    result("%d1", 8);
    add("mov.b32 %r2, 2; mov.b32 %r3, 3; mov.b32 %r4, 4;");
    add("st{}.v2.u32 [{@}+8], {%r2, %r3}; ld{}.v2.u32 {%r5, %r6}, [{@}+8]; mad.lo.u32 %r0, %r5, "
        "10, %r6;");
    result("%r0", 4);
    add("st{}.v4.u32 [{@}], {%r1, %r2, %r3, %r4}; ld{}.v4.b32 {%r5, %r6, %r7, %r8}, [{@}];");
    add("mad.lo.u32 %r6, %r6, 10, %r7; mad.lo.u32 %r0, %r6, 10, %r8; xor.b32 %r0, %r0, %r5;");
    result("%r0", 4);
    add("st{}.v2.f32 [{@}], {%f0, %f0}; ld{}.v2.f32 {%f2, %f3}, [{@}]; add.f32 %f2, %f2, %f3;");
    result("%f2", 4);
    add("st{}.v4.f32 [{@}], {%f0, %f2, %f0, %f0}; ld{}.v4.f32 {%f4, %f5, %f6, %f7}, [{@}]; sub.f32 "
        "%f5, %f5, %f7;");
    result("%f5", 4);
    add("st{}.v2.u64 [{@}], {%q1, %q2}; ld{}.v2.u64 {%q3, %q4}, [{@}]; sub.u64 %q3, %q3, %q4;");
    result("%q3", 8);
    add("st{}.v2.f64 [{@}], {%d0, %d0}; ld{}.v2.f64 {%d2, %d3}, [{@}]; add.f64 %d2, %d2, %d3;");
    result("%d2", 8);
    add("st{}.v4.u8 [{@}], {%r1, %r2, %r3, %r4}; ld{}.u32 %r0, [{@}];");
    result("%r0", 4);
    add("ld{}.v4.u8 {%h0, %h1, %h2, %h3}, [{@}]; mov.b32 %r0, {%h0, %h3};");
    result("%r0", 4);
    add("ld{}.v2.s8 {%h0, %h1}, [{@}]; mov.b32 %r0, {%h0, %h1};");
    result("%r0", 4);
    add("ld{}.v2.u16 {%h0, %h1}, [{@}]; mov.b32 %r0, {%h1, %h0};");
    result("%r0", 4);
    add("st{}.v4.u16 [{@}], {%h0, %h1, %h0, %h1}; ld{}.v4.b16 {%h2, %h3, %h4, %h5}, [{@}]; mov.b32 "
        "%r0, {%h5, %h2};");
    result("%r0", 4);
    return code + "ret;\n";
}

const std::vector<u64> round_trip_results = {0xf7,
                                             0xfffffff7,
                                             0xf7,
                                             0xa5f7,
                                             0xffffa5f7,
                                             0x1234a5f7,
                                             0x1234a5f7,
                                             0xfffffff7,
                                             0xf7,
                                             0xfffffffffffffff7,
                                             0x9123456789abcdef,
                                             0xffffffff89abcdef,
                                             0x89abcdef,
                                             0xcdef,
                                             0x3fc00000,
                                             0x3ff8000000000000,
                                             23,
                                             0x1234a5f7 ^ 234,
                                             0x40400000,
                                             0x3fc00000,
                                             0x9123456789abcdef - 0xcdef,
                                             0x4008000000000000,
                                             0x040302f7,
                                             0x000400f7,
                                             0x0002fff7,
                                             0x02f70403,
                                             0x02f70403};

TEST_CASE("loads and stores of all types in all spaces") {
    const std::string shared = ".shared .align 16 .b8 memory[16];\n";
    const std::string local = ".local .align 16 .b8 memory[16];\n";
    const std::vector<std::pair<std::string, std::string>> ways = {
        {"global", round_trip(".global", "%in")},
        {"shared", shared + round_trip(".shared", "memory")},
        {"shared by address", shared + "mov.u64 %q0, memory;" + round_trip(".shared", "%q0")},
        {"shared by address of 32 bits",
         shared + "mov.u32 %r20, memory;" + round_trip(".shared", "%r20")},
        {"local", local + round_trip(".local", "memory")},
        {"local by address", local + "mov.u64 %q0, memory;" + round_trip(".local", "%q0")},
        {"generic, global", "cvta.global.u64 %q0, %in;" + round_trip("", "%q0")},
        {"generic, shared",
         shared + "mov.u64 %q0, memory; cvta.shared.u64 %q0, %q0;" + round_trip("", "%q0")},
        {"generic, local",
         local + "mov.u64 %q0, memory; cvta.local.u64 %q0, %q0;" + round_trip("", "%q0")},
        {"to shared", shared + "cvta.shared.u64 %q0, memory; cvta.to.shared.u64 %q0, %q0;" +
                          round_trip(".shared", "%q0")},
        {"to local", local + "cvta.local.u64 %q0, memory; cvta.to.local.u64 %q0, %q0;" +
                         round_trip(".local", "%q0")},
        {"to shared, 32 bits",
         shared +
             "cvta.shared.u64 %q0, memory; cvta.to.shared.u64 %q0, %q0; cvt.u32.u64 %r20, %q0;" +
             round_trip(".shared", "%r20")},
        {"volatile", round_trip(".volatile.global", "%in")},
        {"volatile shared", shared + round_trip(".volatile.shared", "memory")},
    };
    for (const auto& way : ways) {
        const auto& name = way.first;
        CAPTURE(name);
        Buffer out(std::vector<u64>(round_trip_results.size(), 0)), in(std::vector<u64>(2, 0));
        const auto fault = launch(kernel(way.second), "k", {.block = {1}}, {&out, &in});
        CHECK_MESSAGE(fault.error == 0, fault.text);
        CHECK(out.get<u64>() == round_trip_results);
    }
}

TEST_CASE("other loads and stores of global memory") {
    Values in = {1, 2, 3, 4, 0x40490fdb, 0xffff8081};
    CHECK(run(kernel(R"(
    ld.global.nc.u32 %r0, [%in];
    ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%in];
    add.u32 %r0, %r0, %r4;
    ld.global.nc.v2.u32 {%r1, %r2}, [%in+8];
    add.u32 %r0, %r0, %r2;
    ld.global.nc.f32 %f0, [%in+16];
    ld.global.nc.u8 %h0, [%in+21];
    cvt.u32.u16 %r3, %h0;
    mad.lo.u32 %r0, %r3, 100, %r0;
    ld.volatile.global.u32 %r3, [%in+4];
    add.u32 %r0, %r0, %r3;
    ld.relaxed.gpu.global.u32 %r3, [%in+4];
    add.u32 %r0, %r0, %r3;
    ld.acquire.gpu.global.u32 %r3, [%in+4];
    add.u32 %r0, %r0, %r3;
    st.release.gpu.global.u32 [%own], %r3;
    st.relaxed.sys.global.u32 [%own], %r3;
    ld.global.cg.u32 %r3, [%in+8];
    ld.global.L1::no_allocate.u32 %r3, [%in+8];
    add.u32 %r0, %r0, %r3;
    st.global.cs.u32 [%own], %r3;
)"),
              {.block = {1}}, in)[0] == 1 + 4 + 4 + 12800 + 6 + 3);
    CHECK(run(kernel(R"(
    membar.cta;
    membar.gl;
    membar.sys;
    fence.acq_rel.gpu;
    fence.sc.sys;
    fence.acq_rel.cta;
    mov.u32 %r0, 1;
)"))[0] == 1);
    // An element that is not needed, of registers that are wider than the elements.
    CHECK(run(kernel("ld.global.v2.u16 {_, %r0}, [%in+4]; ld.global.v2.u16 {%r1, _}, [%in+8]; "
                     "mad.lo.u32 %r0, %r1, 10, %r0;"),
              {.block = {1}}, in)[0] == 30);
    // A negative offset, and an offset of a register that a variable follows.
    CHECK(run(kernel("add.u64 %q0, %in, 8; ld.global.u32 %r0, [%q0+-4];"), {.block = {1}}, in)[0] ==
          2);
}

TEST_CASE("parameters of kernels") {
    const std::string ptx = header + R"(
.visible .entry many(
    .param .u8 a,
    .param .u16 b,
    .param .u32 c,
    .param .u64 .ptr .global .align 4 d,
    .param .f32 e,
    .param .f64 f,
    .param .align 8 .b8 g[24],
    .param .s8 h
)
.maxntid 128, 2, 1
.minnctapersm 1
{
    .reg .b16 %h<4>;
    .reg .b32 %r<12>;
    .reg .b64 %q<4>;
    .reg .f32 %f<4>;
    .reg .f64 %d<4>;
    ld.param.u64 %q0, [d];
    ld.param.u8 %r0, [a];
    ld.param.u16 %h0, [b];
    cvt.u32.u16 %r1, %h0;
    ld.param.u32 %r2, [c];
    ld.param.f32 %f0, [e];
    ld.param.f64 %d0, [f];
    ld.param.v2.u32 {%r3, %r4}, [g];
    ld.param.u8 %r5, [g+9];
    ld.param.s8 %r6, [h];
    ld.param.f64 %d1, [g+16];
    add.f64 %d0, %d0, %d1;
    cvt.rn.f32.f64 %f1, %d0;
    st.global.u32 [%q0], %r0;
    st.global.u32 [%q0+4], %r1;
    st.global.u32 [%q0+8], %r2;
    st.global.f32 [%q0+12], %f0;
    st.global.f32 [%q0+16], %f1;
    st.global.v2.u32 [%q0+24], {%r3, %r4};
    st.global.u32 [%q0+20], %r5;
    st.global.u32 [%q0+32], %r6;
    // The address of a parameter.
    mov.b64 %q1, g;
    add.s64 %q2, %q1, 4;
    ld.param.u32 %r7, [%q2];
    st.global.u32 [%q0+36], %r7;
    ret;
}
)";
    assemble(ptx);
    const machine::Module module(ptx);
    REQUIRE(module.names().size() == 1);
    CHECK(module.names()[0] == "many");
    CHECK(module.find("other") == nullptr);
    const auto* const many = module.find("many");
    REQUIRE(many != nullptr);
    CHECK(many->name() == "many");
    CHECK(many->maximum_threads() == 256);
    CHECK(many->shared_bytes() == 0);
    const std::vector<std::vector<std::size_t>> places = {{0, 1, 1},   {2, 2, 2},  {4, 4, 4},
                                                          {8, 8, 8},   {16, 4, 4}, {24, 8, 8},
                                                          {32, 24, 8}, {56, 1, 1}};
    REQUIRE(many->parameters().size() == places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        const auto& p = many->parameters()[i];
        CHECK(std::vector<std::size_t>{p.offset, p.bytes, p.alignment} == places[i]);
    }
    CHECK(many->argument_bytes() == 57);
    struct {
        std::uint8_t a = 250;
        std::uint16_t b = 65000;
        u32 c = 0x80000001;
        u64 d = 0;
        float e = 1.5;
        double f = 2.25;
        u32 g0 = 11, g1 = 12;
        std::uint8_t bytes[8] = {1, 200, 3};
        double g2 = 0.5;
        signed char h = -2;
    } arguments;
    Buffer out(Values(10, 0));
    arguments.d = out.address();
    machine::Launch launch;
    launch.kernel = many;
    launch.arguments = reinterpret_cast<const std::byte*>(&arguments);
    launch.regions = {out.region()};
    const auto fault = machine::run(launch);
    CHECK_MESSAGE(fault.error == 0, fault.text);
    CHECK(out.get<u32>() == Values{250, 65000, 0x80000001, std::bit_cast<u32>(1.5f),
                                   std::bit_cast<u32>(2.75f), 200, 11, 12, u32(-2), 12});
}

TEST_CASE("shared memory") {
    // Each thread reads what the thread across the block wrote; two arrays do not overlap.
    const std::string body = R"(
    .shared .align 4 .b8 first[512];
    .shared .align 8 .b8 bytes[3];
    .shared .align 16 .f32 second[128];
    mov.u32 %r1, first;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    mov.u64 %q1, second;
    mad.wide.u32 %q2, %t, 4, %q1;
    mul.lo.u32 %r3, %t, 1000;
    st.shared.u32 [%q2], %r3;
    bar.sync 0;
    mov.u32 %r4, 127;
    sub.u32 %r4, %r4, %t;
    mad.lo.u32 %r2, %r4, 4, %r1;
    ld.shared.u32 %r5, [%r2];
    mad.wide.u32 %q2, %r4, 4, %q1;
    ld.shared.u32 %r6, [%q2];
    add.u32 %r0, %r5, %r6;
)";
    for (const bool reversed : {false, true}) {
        CHECK(
            run(kernel(body), {.grid = {3}, .block = {128}, .threads = 2, .reversed = reversed}) ==
            each(384, [](u32 i) { return 1001 * (127 - i % 128); }));
    }
    const machine::Module module(kernel(body));
    CHECK(module.find("k")->shared_bytes() >= 512 + 3 + 512);
    // Dynamic memory, whose size the launch names; it does not overlap with the other.
    const std::string dynamic =
        ".extern .shared .align 16 .b8 all[];\n.shared .align 4 .b8 fixed[64];\n";
    CHECK(run(kernel(R"(
    shl.b32 %r1, %t, 2;
    mov.u32 %r2, all;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %t;
    mov.u32 %r3, fixed;
    add.u32 %r3, %r3, %r1;
    mov.u32 %r4, 5;
    st.shared.u32 [%r3], %r4;
    bar.sync 0;
    xor.b32 %r1, %r1, 4;
    mov.u64 %q0, all;
    cvt.u64.u32 %q1, %r1;
    add.s64 %q0, %q0, %q1;
    ld.shared.u32 %r5, [%q0];
    ld.shared.u32 %r6, [fixed+60];
    mov.u32 %r7, %dynamic_smem_size;
    mad.lo.u32 %r0, %r7, 1000, %r5;
    mad.lo.u32 %r0, %r6, 100, %r0;
)",
                     dynamic),
              {.block = {16}, .dynamic_shared_bytes = 64}) ==
          each(16, [](u32 i) { return 64500 + (i ^ 1); }));
}

TEST_CASE("variables of a module") {
    const std::string before = R"(
.const .align 4 .u32 table[6] = {10, 20, 30, 40};
.const .align 8 .f64 half = 0d3FE0000000000000;
.visible .const .align 4 .b8 words[8] = {1, 0, 0, 0, 255, 255, 255, 255};
.visible .global .align 4 .u32 counter = 5;
.global .align 4 .f32 real = 0f3FC00000;
.global .align 4 .u32 zero;
.global .align 1 .b8 name[6] = {104, 101, 108, 108, 111};
.global .align 4 .s32 negative[4] = {-1, -2, -3};
)";
    Values in = {0};
    CHECK(run(kernel(R"(
    mov.u64 %q0, table;
    mad.wide.u32 %q1, %t, 4, %q0;
    ld.const.u32 %r0, [%q1];
)",
                     before),
              {.block = {6}}, in) == Values{10, 20, 30, 40, 0, 0});
    CHECK(run(kernel(R"(
    ld.const.f64 %d0, [half];
    cvt.rn.f32.f64 %f0, %d0;
    st.global.f32 [%out], %f0;
    ld.const.s32 %r1, [words+4];
    st.global.u32 [%out+4], %r1;
    ld.global.u32 %r1, [counter];
    st.global.u32 [%out+8], %r1;
    ld.global.f32 %f1, [real];
    st.global.f32 [%out+12], %f1;
    ld.global.u32 %r1, [zero];
    st.global.u32 [%out+16], %r1;
    ld.global.u8 %r1, [name+4];
    st.global.u32 [%out+20], %r1;
    ld.global.u32 %r1, [negative+8];
    st.global.u32 [%out+24], %r1;
    ld.global.u8 %r1, [name+5];
    st.global.u32 [%out+28], %r1;
    mov.u64 %q0, words;
    cvta.const.u64 %q0, %q0;
    ld.u8 %r1, [%q0+5];
    st.global.u32 [%out+32], %r1;
    ret;
)",
                     before),
              {.block = {1}}, in, 32) == Values{std::bit_cast<u32>(0.5f), 0xffffffff, 5,
                                                std::bit_cast<u32>(1.5f), 0, 'o', u32(-3), 0, 255});
    // A variable keeps its value from launch to launch; another module has its own.
    const auto counting = kernel(R"(
    ld.global.u32 %r0, [counter];
    add.u32 %r1, %r0, 1;
    st.global.u32 [counter], %r1;
)",
                                 before);
    const machine::Module module(counting), other(counting);
    const auto count = [](const machine::Module& m) {
        Buffer out(Values{0}), none(Values{0});
        const auto fault = launch(*m.find("k"), {.block = {1}}, {&out, &none});
        CHECK_MESSAGE(fault.error == 0, fault.text);
        return out.get<u32>()[0];
    };
    CHECK(count(module) == 5);
    CHECK(count(module) == 6);
    CHECK(count(other) == 5);
    CHECK(count(module) == 7);
}

TEST_CASE("local memory of each thread") {
    CHECK(run(kernel(R"(
    .local .align 4 .b8 stack[32];
    .reg .b64 %SP, %SPL;
    mov.u64 %SPL, stack;
    cvta.local.u64 %SP, %SPL;
    mov.u32 %r1, 0;
$fill:
    mad.wide.u32 %q1, %r1, 4, %SPL;
    mad.lo.u32 %r2, %t, 10, %r1;
    st.local.u32 [%q1], %r2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 8;
    @%p0 bra $fill;
    bar.sync 0;
    and.b32 %r3, %t, 7;
    mul.wide.u32 %q2, %r3, 4;
    add.s64 %q3, %SP, %q2;
    ld.u32 %r0, [%q3];
)"),
              {.block = {64}}) == each(64, [](u32 i) { return 10 * i + i % 8; }));
}

}  // namespace
