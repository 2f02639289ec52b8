// What the machine refuses before a kernel runs: text that is not PTX, or that it does not know.
#include <doctest/doctest.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "launch.hpp"

namespace {

using namespace machine_test;

TEST_CASE("text that is not PTX") {
    // The statement is in line 8 of the text.
    const auto message = [](const std::string& statement, bool is_right = false) -> std::string {
        const auto ptx = header +
                         ".visible .entry k(.param .u64 a) {\n.reg .b32 %r<4>; .reg .pred %p<2>; "
                         ".reg .b16 %h<4>; .reg .f32 %f<4>; .reg .b64 %q<4>; .reg .f64 %d<4>; "
                         ".shared .u32 s;\nmov.u32 %r1, 1;\n\n" +
                         statement + "\nret;\n}\n";
        if (is_right) assemble(ptx);
        try {
            const machine::Module module(ptx);
            module.find("k");
        } catch (const std::runtime_error& refused) {
            return refused.what();
        }
        return "accepted";
    };
    std::istringstream texts(R"(
// Names and operands.
frobnicate.u32 %r1, %r2;
add.u33 %r1, %r2, %r3;
add.rn.u32 %r1, %r2, %r3;
mul.u32 %r1, %r2, %r3;
add.u32 %r1, %x, %r3;
add.u32 %r1, %r2;
add.u32 %r1, %r2, %r3, %r3;
@%p7 mov.u32 %r1, 2;
bra $nowhere;
call.uni nothing, ();
ld.global.u32 %r1, [nothing];
mov.u32 %r1, %nothing.x;
setp.lt.pred %p1, %p0, %p1;
// Modifiers.
ld.global.foo.f32 %f1, [%q1];
ld.global.v2.u16 {%r1, %h1}, [%q1];
ld.global.u32 _, [%q1];
st.global.foo.f32 [%q1], %f1;
ld.global.wb.u32 %r1, [%q1];
st.global.nc.u32 [%q1], %r1;
st.global.L2::128B.u32 [%q1], %r1;
ld.release.gpu.global.u32 %r1, [%q1];
ld.global.global.u32 %r1, [%q1];
ld.global.u32.u32 %r1, [%q1];
ld.global.add.u32 %r1, [%q1];
st.const.u32 [%q1], %r1;
ld.global.u32 %r1, [%q1], %r2;
bra.foo L; L:
trap.uni;
exit.uni;
membar.foo;
fence;
bar.sync.aligned 0;
bar.sync;
cvta.foo.u64 %q1, %q2;
cvta.to.u64 %q1, %q2;
cvta.u64 %q1, %q2;
mov.b64 %q1, {%r1, %r2, %r3};
mov.f64 %d1, {%r1, %r2};
vote.sync.any.pred %p1, %p0;
// Literals.
mov.u32 %r1, 12abc;
mov.u32 %r1, 0x;
mov.u32 %r1, 08;
mov.u32 %r1, 0b102;
mov.u32 %r1, 12UU;
mov.f32 %f1, 1.5x;
mov.f32 %f1, 1e;
mov.f32 %f1, 0f3f;
mov.f32 %f1, 0f3f8000000;
mov.f32 %f1, -0f3f800000;
mov.f64 %d1, 0d3ff000000000000;
mov.f32 %f1, 1;
mov.u32 %r1, 1.5;
mov.u32 %r1, 0f3f800000;
// Addresses.
ld.global.u32 %r1, [%q1+foo];
ld.global.u32 %r1, [%q1+4.5];
ld.global.u32 %r1, [%q1+%q2];
ld.global.u32 %r1, [%q1-4];
ld.shared.u32 %r1, [s+%r2];
mov.u64 %q1, s+foo;
// Atomics; those of vectors are PTX, but not known.
atom.global.v2.f32.add {%f0, %f1}, [%q1], {%f2, %f3};
red.global.v2.f32.add [%q1], {%f2, %f3};
atom.global.foo.add.u32 %r1, [%q1], 1;
atom.volatile.global.add.u32 %r1, [%q1], 1;
atom.local.add.u32 %r1, [%q1], 1;
atom.global.min.f32 %f0, [%q1], %f1;
red.global.max.f64 [%q1], %d1;
atom.global.add.s64 %q2, [%q1], 1;
atom.global.exch.u32 %r1, [%q1], 1;
atom.global.cas.u32 %r1, [%q1], 1, 2;
atom.global.and.u32 %r1, [%q1], 1;
atom.global.inc.u64 %q2, [%q1], 1;
red.global.exch.b32 [%q1], 1;
red.acquire.gpu.global.add.u32 [%q1], 1;
atom.global.add.u32 %r1, [%q1];
atom.global.add.u32 %r1, [%q1], 1, 2;
atom.global.cas.b32 %r1, [%q1], 1;
// Comparisons.
setp.lo.s32 %p1, %r1, %r2;
setp.ls.s64 %p1, %q1, %q2;
setp.hi.s16 %p1, %h1, %h2;
setp.hs.s32 %p1, %r1, %r2;
setp.lt.b32 %p1, %r1, %r2;
setp.hi.b64 %p1, %q1, %q2;
setp.eq.u32 %p1, %r1;
setp.eq.u32 %p1, %r1, %r2, %p0;
setp.eq.and.or.u32 %p1, %r1, %r2, %p0;
// Conversions.
cvt.ftz.s32.u32 %r1, %r2;
cvt.rn.ftz.f64.s32 %d1, %r1;
cvt.rzi.ftz.s32.f64 %r1, %d1;
cvt.rn.s32.f32 %r1, %f1;
cvt.s32.f32 %r1, %f1;
cvt.f32.s32 %f1, %r1;
cvt.f32.f64 %f1, %d1;
cvt.rn.f64.f32 %d1, %f1;
cvt.rni.s32.s64 %r1, %q1;
cvt.rn.rz.f32.s32 %f1, %r1;
cvt.f16.f32 %h1, %f1;
add.u32 %r1, %r2, %r3
)");
    for (std::string wrong; std::getline(texts, wrong);) {
        if (wrong.empty() || wrong.starts_with("//")) continue;
        CAPTURE(wrong);
        CHECK_MESSAGE(message(wrong).find("line 8") != std::string::npos, message(wrong));
    }
    for (const std::string right :
         {"mov.u32 %r1, 2;", "ld.weak.global.L1::no_allocate.u32 %r1, [%q1];",
          "ld.global.nc.L2::128B.u32 %r1, [%q1+ 0x10];", "st.global.v2.u32 [%q1+-8], {%r1, %r2};",
          "st.release.cta.shared.u32 [s], 0X1EU;", "atom.global.gpu.add.u32 %r1, [%q1], 1;",
          "setp.hi.u16 %p1, %h1, %h2;", "cvt.rni.ftz.f32.f32 %f1, %f2;", "cvt.f32.bf16 %f1, %h1;",
          "cvta.shared::cta.u64 %q1, %q2;", "mov.f32 %f1, -1.5e2;", "mov.b32 %r1, 0f3f800000;",
          "barrier.cta.sync.aligned 0;"}) {
        CAPTURE(right);
        CHECK(message(right, true) == "accepted");
    }
    CHECK(message("frobnicate.u32 %r1, %r2;").find("frobnicate.u32") != std::string::npos);
    CHECK_THROWS_AS(machine::Module(header + ".visible .entry k(.param .u64 a) {\nret;\n"),
                    std::runtime_error);
    CHECK_THROWS_AS(machine::Module("hello"), std::runtime_error);
    CHECK(machine::Module(header).names().empty());
}

}  // namespace
