// Kernels written by hand: control flow, functions, and the text around instructions.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "kernel.hpp"

namespace {

using namespace machine_test;

TEST_CASE("predicated instructions") {
    CHECK(run(kernel(R"(
    setp.lt.u32 %p0, %t, 5;
    mov.u32 %r0, 1;
    @%p0 mov.u32 %r0, 2;
    @!%p0 add.u32 %r0, %r0, 10;
)")) == each(32, [](u32 i) { return i < 5 ? 2 : 11; }));
    // A predicate that an instruction both needs and writes.
    CHECK(run(kernel(R"(
    setp.lt.u32 %p0, %t, 20;
    @%p0 setp.lt.u32 %p0, %t, 10;
    selp.u32 %r0, 1, 0, %p0;
)")) == each(32, [](u32 i) { return i < 10 ? 1 : 0; }));
    // Memory accesses of lanes whose predicate is false do not happen.
    CHECK(run(kernel(R"(
    setp.eq.u32 %p0, %t, 3;
    mov.u64 %q0, 1;
    @%p0 mov.u64 %q0, %own;
    mov.u32 %r1, 77;
    @%p0 st.global.u32 [%q0], %r1;
    mov.u32 %r0, 5;
    @%p0 ld.global.u32 %r0, [%q0];
)")) == each(32, [](u32 i) { return i == 3 ? 77 : 5; }));
}

TEST_CASE("divergent branches join again") {
    CHECK(run(kernel(R"(
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra $even;
    mul.lo.u32 %r2, %t, 3;
    bra $join;
$even:
    add.u32 %r2, %t, 100;
$join:
    // All lanes are here again.
    vote.sync.ballot.b32 %r3, %p0, -1;
    popc.b32 %r3, %r3;
    mad.lo.u32 %r0, %r3, 1000, %r2;
)")) == each(32, [](u32 i) { return 16000 + (i % 2 == 0 ? i + 100 : i * 3); }));
    // Three ways, with a branch inside of a branch.
    CHECK(run(kernel(R"(
    setp.lt.u32 %p0, %t, 10;
    setp.lt.u32 %p1, %t, 20;
    @!%p1 bra $L3;
    @!%p0 bra $L2;
    mov.u32 %r0, 1;
    bra.uni $L4;
$L2:
    mov.u32 %r0, 2;
    bra.uni $L4;
$L3:
    mov.u32 %r0, 3;
$L4:
    vote.sync.all.pred %p2, %p1, -1;
    vote.sync.any.pred %p3, %p0, -1;
    @%p2 add.u32 %r0, %r0, 100;
    @%p3 add.u32 %r0, %r0, 1000;
)")) == each(32, [](u32 i) {
              return 1000 + (i < 10 ? 1 : i < 20 ? 2 : 3);
          }));
}

TEST_CASE("loops whose lanes leave them at different times") {
    const auto nested = kernel(R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
$outer:
    setp.ge.u32 %p0, %r1, %t;
    @%p0 bra $end;
    mov.u32 %r2, 0;
$inner:
    rem.u32 %r3, %r1, 3;
    setp.ge.u32 %p1, %r2, %r3;
    @%p1 bra $next;
    add.u32 %r0, %r0, %r2;
    add.u32 %r0, %r0, 1;
    add.u32 %r2, %r2, 1;
    bra.uni $inner;
$next:
    add.u32 %r1, %r1, 1;
    bra.uni $outer;
$end:
    activemask.b32 %r4;
    popc.b32 %r4, %r4;
    mad.lo.u32 %r0, %r4, 10000, %r0;
)");
    const auto expected = [](u32 i) {
        u32 sum = 0;
        for (u32 k = 0; k < i; ++k)
            for (u32 j = 0; j < k % 3; ++j) sum += j + 1;
        return sum;
    };
    auto got = run(nested, {.block = {96}});
    for (auto& value : got) value %= 10000;  // which lanes are active is the device's choice
    CHECK(got == each(96, expected));
    // break and continue: the sum of odd numbers up to the first multiple of 7 that is not below tid.
    CHECK(run(kernel(R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
$loop:
    add.u32 %r1, %r1, 1;
    rem.u32 %r2, %r1, 7;
    setp.eq.u32 %p0, %r2, 0;
    setp.ge.and.u32 %p0, %r1, %t, %p0;
    @%p0 bra $done;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $loop;
    add.u32 %r0, %r0, %r1;
    bra $loop;
$done:
    bar.warp.sync -1;
)")) == each(32, [](u32 i) {
              u32 sum = 0;
              for (u32 k = 1; k % 7 != 0 || k < i; ++k) sum += k % 2 != 0 ? k : 0;
              return sum;
          }));
    // The Collatz sequence.
    CHECK(run(kernel(R"(
    add.u32 %r1, %t, 1;
    mov.u32 %r0, 0;
    bra.uni $test;
$step:
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 1;
    @%p1 bra $odd;
    shr.u32 %r1, %r1, 1;
    bra.uni $count;
$odd:
    mad.lo.u32 %r1, %r1, 3, 1;
$count:
    add.u32 %r0, %r0, 1;
$test:
    setp.ne.u32 %p0, %r1, 1;
    @%p0 bra $step;
)",
                     ""),
              {.block = {64}}) == each(64, [](u32 i) {
              u32 steps = 0;
              for (u32 k = i + 1; k != 1; k = k % 2 != 0 ? 3 * k + 1 : k / 2) ++steps;
              return steps;
          }));
}

TEST_CASE("threads that end early") {
    const auto odd_ends = kernel(R"(
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p0, %r1, 1;
    @%p0 ret;
    vote.sync.ballot.b32 %r0, 1, 0x55555555;
)");
    CHECK(run(odd_ends) == each(32, [](u32 i) { return i % 2 != 0 ? unwritten : 0x55555555; }));
    CHECK(run(kernel(R"(
    setp.lt.u32 %p0, %t, 8;
    @!%p0 bra $rest;
    mov.u32 %r0, 1;
    st.global.u32 [%own], %r0;
    exit;
$rest:
    setp.lt.u32 %p1, %t, 16;
    @%p1 exit;
    mov.u32 %r0, 2;
)")) == each(32, [](u32 i) { return i < 8    ? 1
                                    : i < 16 ? unwritten
                                             : 2; }));
    // Threads of the last warp that do not exist.
    CHECK(run(kernel("activemask.b32 %r0;"), {.block = {40}}) ==
          each(40, [](u32 i) { return i < 32 ? 0xffffffff : 0xff; }));
}

TEST_CASE("blocks of text with their own registers and labels") {
    const std::string twice = R"(
    {
        .reg .pred %again;
        .reg .b32 %x;
        mov.u32 %x, %r0;
    $L_loop:
        add.u32 %x, %x, 3;
        setp.lt.u32 %again, %x, 20;
        @%again bra $L_loop;
        mov.u32 %r0, %x;
    }
)";
    CHECK(run(kernel("mov.u32 %r0, %t;" + twice + "sub.u32 %r0, %r0, 15;" + twice)) ==
          each(32, [](u32 i) {
              for (int k = 0; k < 2; ++k) {
                  do i += 3;
                  while (i < 20);
                  if (k == 0) i -= 15;
              }
              return i;
          }));
    // A name that hides an outer one.
    CHECK(run(kernel(R"(
    mov.u32 %r0, 7;
    {
        .reg .b32 %r<3>;
        mov.u32 %r0, 8;
        { .reg .b32 %r0; mov.u32 %r0, 9; }
        st.global.u32 [%out+128], %r0;
    }
)"),
              {}, 4)[32] == 8);
}

TEST_CASE("text that compilers write around instructions") {
    const std::string ptx = "//\n// Generated by a compiler\n//\n" + header + R"(
.extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);
.visible .entry a(.param .u64 a_param_0) /* a
comment */
.reqntid 32, 1, 1
.maxnreg 64
{
    .reg .pred 	%p<2>;
    .reg .b32 	%r<4>;
    .reg .b64 	%rd<4>;
    .loc	1 3 5
    ld.param.u64 	%rd1, [a_param_0];  // %rd1: a's memory
    .pragma "nounroll";
    mov.u32 	%r1, %tid.x;
    { mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; }
    .loc	1 4 5, function_name $L__info_string0, inlined_at 1 3 5
    st.global.u32 	[%rd3], %r1;
$L__BB0_1:
    ret;
                                        // -- End function
}
.entry b(.param .u64 b_param_0) { ret; }
	.file	1 "/source/kernel.cu"
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90,78,0
	}
)";
    assemble(ptx);
    const machine::Module module(ptx);
    auto names = module.names();
    std::sort(names.begin(), names.end());
    REQUIRE(names.size() == 2);
    CHECK(names[0] + names[1] == "ab");
    Buffer out(Values(32, 0));
    const auto fault = launch(*module.find("a"), {}, {&out});
    CHECK_MESSAGE(fault.error == 0, fault.text);
    CHECK(out.get<u32>() == each(32, [](u32 i) { return i; }));
    CHECK(launch(*module.find("b"), {}, {&out}).error == 0);
}

TEST_CASE("blocks on several threads, and launches at the same time") {
    const auto ptx = kernel(R"(
    .shared .align 4 .b8 values[128];
    mov.u32 %r1, values;
    mad.lo.u32 %r1, %t, 4, %r1;
    st.shared.u32 [%r1], %r30;
    bar.sync 0;
    ld.shared.u32 %r0, [%r1];
)");
    for (const int threads : {1, 2, 8}) {
        CHECK(run(ptx, {.grid = {100}, .threads = threads, .reversed = threads == 2}) ==
              each(3200, [](u32 i) { return i; }));
    }
}

TEST_CASE("functions") {
    const std::string functions = R"(
.func (.param .b32 func_retval0) square
(
    .param .b32 square_param_0
)
;
.func (.param .b32 func_retval0) twice_squared(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [x];
    {
    .param .b32 param0;
    st.param.b32 [param0+0], %r1;
    .param .b32 retval0;
    call.uni (retval0), square, (param0);
    ld.param.b32 %r2, [retval0+0];
    }
    shl.b32 %r3, %r2, 1;
    st.param.b32 [func_retval0+0], %r3;
    ret;
}
.func (.param .b32 func_retval0) square(.param .b32 square_param_0)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [square_param_0];
    mul.lo.s32 %r2, %r1, %r1;
    st.param.b32 [func_retval0+0], %r2;
    ret;
}
.func store_sum(.param .b64 to, .param .b32 a, .param .b32 b)
{
    .reg .b32 %r<4>;
    .reg .b64 %q<2>;
    ld.param.u64 %q0, [to];
    ld.param.u32 %r0, [a];
    ld.param.u32 %r1, [b];
    add.u32 %r2, %r0, %r1;
    st.u32 [%q0], %r2;
    ret;
}
.func (.param .align 8 .b8 func_retval0[16]) swap(.param .align 8 .b8 pair[16])
{
    .reg .b64 %q<2>;
    ld.param.u64 %q0, [pair];
    ld.param.u64 %q1, [pair+8];
    st.param.b64 [func_retval0+0], %q1;
    st.param.b64 [func_retval0+8], %q0;
    ret;
}
.func (.param .b64 func_retval0) mixed(.param .b32 a, .param .b64 b, .param .b32 c)
{
    .reg .f32 %f<2>;
    .reg .f64 %d<4>;
    .reg .b32 %r<2>;
    ld.param.f32 %f0, [a];
    ld.param.f64 %d0, [b];
    ld.param.s8 %r0, [c];
    cvt.f64.f32 %d1, %f0;
    cvt.rn.f64.s32 %d2, %r0;
    fma.rn.f64 %d3, %d0, %d1, %d2;
    st.param.f64 [func_retval0], %d3;
    ret;
}
.func (.param .b32 func_retval0) early(.param .b32 x)
{
    .reg .b32 %r<3>;
    .reg .pred %p;
    ld.param.u32 %r0, [x];
    setp.lt.u32 %p, %r0, 8;
    @!%p bra $large;
    mov.u32 %r1, 1;
    st.param.b32 [func_retval0], %r1;
    ret;
$large:
    mov.u32 %r1, 2;
    st.param.b32 [func_retval0], %r1;
    ret;
}
.func (.param .b32 func_retval0) sum_of_stack(.param .b32 x)
{
    .local .align 4 .b8 stack[16];
    .reg .b32 %r<6>;
    .reg .b64 %q<4>;
    mov.u64 %q0, stack;
    ld.param.u32 %r0, [x];
    st.local.u32 [%q0], %r0;
    add.u32 %r1, %r0, 1;
    st.local.u32 [stack+12], %r1;
    ld.local.u32 %r2, [%q0+12];
    ld.local.u32 %r3, [stack];
    add.u32 %r4, %r2, %r3;
    st.param.b32 [func_retval0], %r4;
    ret;
}
)";
    const auto call = [](const std::string& name, const std::string& argument) {
        return "{\n.param .b32 param0;\nst.param.b32 [param0+0], " + argument +
               ";\n.param .b32 retval0;\ncall.uni (retval0),\n" + name +
               ",\n(\nparam0\n)\n;\nld.param.b32 %r0, [retval0+0];\n}\n";
    };
    CHECK(run(kernel(call("square", "%t"), functions)) == each(32, [](u32 i) { return i * i; }));
    CHECK(run(kernel(call("square", "%t") + "add.u32 %r1, %r0, 1;" + call("square", "%r1"),
                     functions)) == each(32, [](u32 i) { return (i * i + 1) * (i * i + 1); }));
    CHECK(run(kernel(call("twice_squared", "%t"), functions)) ==
          each(32, [](u32 i) { return 2 * i * i; }));
    CHECK(run(kernel(call("early", "%t") + "bar.warp.sync -1;", functions)) ==
          each(32, [](u32 i) { return i < 8 ? 1 : 2; }));
    CHECK(run(kernel(call("sum_of_stack", "%t"), functions)) ==
          each(32, [](u32 i) { return 2 * i + 1; }));
    // A call in divergent code, and one in a loop.
    CHECK(run(kernel("mov.u32 %r0, 5; setp.lt.u32 %p0, %t, 7; @!%p0 bra $over;" +
                         call("square", "%t") + "$over: bar.warp.sync -1;",
                     functions)) == each(32, [](u32 i) { return i < 7 ? i * i : 5; }));
    CHECK(run(kernel("mov.u32 %r5, 0; mov.u32 %r6, 0;\n$again:" + call("square", "%r5") +
                         "add.u32 %r6, %r6, %r0; add.u32 %r5, %r5, 1; setp.le.u32 %p0, %r5, %t;\n"
                         "@%p0 bra $again; mov.u32 %r0, %r6;",
                     functions)) == each(32, [](u32 i) { return i * (i + 1) * (2 * i + 1) / 6; }));
    CHECK(run(kernel(R"(
    cvta.global.u64 %q0, %own;
    {
    .param .b64 param0;
    st.param.b64 [param0], %q0;
    .param .b32 param1;
    st.param.b32 [param1], %t;
    .param .b32 param2;
    st.param.b32 [param2], 1000;
    call.uni store_sum, (param0, param1, param2);
    }
    ret;
)",
                     functions)) == each(32, [](u32 i) { return 1000 + i; }));
    CHECK(run(kernel(R"(
    mov.b64 %q0, 5;
    cvt.u64.u32 %q1, %t;
    {
    .param .align 8 .b8 param0[16];
    st.param.v2.b64 [param0], {%q0, %q1};
    .param .align 8 .b8 retval0[16];
    call.uni (retval0), swap, (param0);
    ld.param.b64 %q2, [retval0];
    ld.param.b64 %q3, [retval0+8];
    }
    cvt.u32.u64 %r1, %q2;
    cvt.u32.u64 %r2, %q3;
    mad.lo.u32 %r0, %r2, 100, %r1;
)",
                     functions)) == each(32, [](u32 i) { return 500 + i; }));
    CHECK(run(kernel(R"(
    mov.f32 %f0, 0f3FC00000;
    cvt.rn.f64.u32 %d0, %t;
    mov.u32 %r1, 0xfe;
    {
    .param .b32 param0;
    st.param.f32 [param0], %f0;
    .param .b64 param1;
    st.param.f64 [param1], %d0;
    .param .b32 param2;
    st.param.b32 [param2], %r1;
    .param .b64 retval0;
    call.uni (retval0), mixed, (param0, param1, param2);
    ld.param.f64 %d1, [retval0];
    }
    add.f64 %d1, %d1, %d1;
    cvt.rzi.s32.f64 %r0, %d1;
)",
                     functions)) == each(32, [](u32 i) { return 3 * i - 4; }));
}

}  // namespace
