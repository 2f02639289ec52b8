// What stops a kernel: each error, and a text that names the kernel, the instruction and the thread.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "../checks.hpp"
#include "launch.hpp"

namespace {

using namespace machine_test;
using Values = std::vector<std::uint32_t>;
using Texts = std::vector<std::string>;

constexpr int none = 0, illegal_address = 700, misaligned = 716, failure = 719;

// A kernel `culprit` of two buffers, %a and %b; %t is the number of the thread in its block, %p5 is true
// in thread 5.
std::string kernel(const std::string& body, const std::string& before = "") {
    return header + before + R"(
.visible .entry culprit(.param .u64 p0, .param .u64 p1)
{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %q<16>;
    .reg .f32 %f<8>;
    .reg .b64 %a, %b;
    .reg .b32 %t;
    ld.param.u64 %a, [p0];
    ld.param.u64 %b, [p1];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p5, %t, 5;
)" + body + R"(
    ret;
}
)";
}

void check(const machine::Fault& fault, int error, const Texts& parts) {
    CHECK_MESSAGE(fault.error == error, fault.text);
    CHECK(fault.text.empty() == (error == none));
    for (const auto& part : parts) {
        CHECK_MESSAGE(fault.text.find(part) != std::string::npos,
                      "expected '" << part << "' in: " << fault.text);
    }
}

// Runs the kernel, whose buffers have 16 words, and compares the error. The text must name the kernel,
// `instruction` and `thread`.
void refused(int error, const std::string& body, const std::string& instruction,
             const std::string& thread = "(5, 0, 0)", const Setup& setup = {},
             const std::string& before = "") {
    CAPTURE(body);
    Buffer a(Values(16, 1)), b(Values(16, 1));
    const auto fault = launch(kernel(body, before), "culprit", setup, {&a, &b});
    check(fault, error, {"culprit", instruction, "thread " + thread});
}
void accepted(const std::string& body, const Setup& setup = {}, const std::string& before = "") {
    CAPTURE(body);
    Buffer a(Values(16, 1)), b(Values(16, 1));
    check(launch(kernel(body, before), "culprit", setup, {&a, &b}), none, {});
}

TEST_CASE("memory that nobody has written") {
    // The second buffer is written but for some bytes.
    const auto read = [](const std::string& instruction, std::size_t unwritten, int error) {
        CAPTURE(instruction);
        CAPTURE(unwritten);
        Buffer a(Values(16, 1)), b(Values(16, 1));
        b.states()[unwritten] = machine::Byte::unwritten;
        const auto fault = launch(kernel("@%p5 " + instruction + ";"), "culprit", {}, {&a, &b});
        if (error == none) {
            check(fault, none, {});
        } else {
            check(fault, error, {"culprit", instruction, "thread (5, 0, 0)"});
        }
    };
    read("ld.global.u32 %r1, [%b+4]", 4, failure);
    read("ld.global.u32 %r1, [%b+4]", 7, failure);
    read("ld.global.u32 %r1, [%b+4]", 8, none);
    read("ld.global.u32 %r1, [%b+4]", 3, none);
    read("ld.global.u8 %r1, [%b+3]", 3, failure);
    read("ld.global.u64 %q1, [%b+8]", 15, failure);
    read("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%b+16]", 31, failure);
    read("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%b+16]", 32, none);
    read("ld.global.nc.f32 %f1, [%b]", 2, failure);
    read("ld.u32 %r1, [%b]", 2, failure);
    read("atom.global.add.u32 %r1, [%b], 1", 2, failure);
    read("red.global.add.u32 [%b], 1", 2, failure);
    read("atom.global.cas.b32 %r1, [%b], 1, 2", 2, failure);
    // A store writes exactly its bytes.
    Buffer a = Buffer::unwritten(16), b(Values(1, 1));
    check(
        launch(
            kernel(
                "@!%p5 ret; mov.u32 %r1, 1; st.global.u16 [%a+2], %r1; st.global.u8 [%a+8], %r1;"),
            "culprit", {}, {&a, &b}),
        none, {});
    for (std::size_t i = 0; i < 16; ++i) {
        CHECK(a.states()[i] ==
              (i == 2 || i == 3 || i == 8 ? machine::Byte::written : machine::Byte::unwritten));
    }
    const std::string shared = ".shared .align 4 .b8 memory[256];\n";
    refused(failure, shared + "@%p5 ld.shared.u32 %r1, [memory+20];",
            "ld.shared.u32 %r1, [memory+20]");
    refused(failure,
            shared + "@%p5 st.shared.u16 [memory+20], %t;\n@%p5 ld.shared.u32 %r1, [memory+20];",
            "ld.shared.u32 %r1, [memory+20]");
    accepted(shared + "@%p5 st.shared.u32 [memory+20], %t;\n@%p5 ld.shared.u32 %r1, [memory+20];");
    refused(failure, shared + "@%p5 atom.shared.add.u32 %r1, [memory], 1;",
            "atom.shared.add.u32 %r1, [memory], 1");
    refused(failure, "@%p5 ld.shared.u32 %r1, [all+8];", "ld.shared.u32 %r1, [all+8]", "(5, 0, 0)",
            {.dynamic_shared_bytes = 64}, ".extern .shared .align 4 .b8 all[];\n");
    const std::string local = ".local .align 4 .b8 memory[16];\n";
    refused(failure, local + "@!%p5 st.local.u32 [memory], %t;\n ld.local.u32 %r1, [memory];",
            "ld.local.u32 %r1, [memory]");
    accepted(local + "st.local.u32 [memory], %t;\n ld.local.u32 %r1, [memory];");
    // Local memory of the block before, or of another thread, is not that of this one.
    for (const std::string writers : {"setp.eq.u32 %p1, %r2, 0;", "setp.ne.u32 %p1, %t, 5;"})
        refused(failure,
                local + "mov.u32 %r2, %ctaid.x; " + writers +
                    "\n@%p1 st.local.u32 [memory], %t;\n ld.local.u32 %r1, [memory];",
                "ld.local.u32 %r1, [memory]", "(", {.grid = {2}});
    // Shared memory of the block before is not that of this one.
    refused(failure,
            shared +
                "mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0;\n"
                "@%p1 bra $read;\n@%p5 st.shared.u32 [memory], %t;\nret;\n$read:\n@%p5 "
                "ld.shared.u32 %r1, [memory];",
            "block (1, 0, 0)", "(5, 0, 0)", {.grid = {2}});
}

TEST_CASE("addresses that are not the kernel's") {
    refused(illegal_address, "@%p5 ld.global.u32 %r1, [%a+64];", "ld.global.u32 %r1, [%a+64]");
    refused(illegal_address, "@%p5 ld.global.u8 %r1, [%a+-1];", "ld.global.u8 %r1, [%a+-1]");
    refused(illegal_address, "@%p5 st.global.u32 [%a+64], %t;", "st.global.u32 [%a+64], %t");
    refused(illegal_address, "@%p5 st.global.v4.u32 [%a+64], {%t, %t, %t, %t};",
            "st.global.v4.u32 [%a+64]");
    refused(illegal_address, "@%p5 red.global.add.u32 [%a+64], 1;",
            "red.global.add.u32 [%a+64], 1");
    refused(illegal_address, "mov.u64 %q1, 0;\n@%p5 ld.global.u32 %r1, [%q1];",
            "ld.global.u32 %r1, [%q1]");
    refused(illegal_address, "mov.u64 %q1, 16;\n@%p5 ld.u32 %r1, [%q1];", "ld.u32 %r1, [%q1]");
    // Each thread at its own address: the first one that leaves the buffer is named.
    refused(illegal_address, "mad.wide.u32 %q1, %t, 4, %a;\n ld.global.u32 %r1, [%q1];",
            "ld.global.u32 %r1, [%q1]", "(16, 0, 0)");
    const std::string shared = ".shared .align 4 .b8 memory[32];\n";
    refused(illegal_address, shared + "@%p5 st.shared.u32 [memory+32], %t;",
            "st.shared.u32 [memory+32], %t");
    refused(illegal_address, shared + "mov.u32 %r1, memory;\n@%p5 st.shared.u32 [%r1+-4], %t;",
            "st.shared.u32 [%r1+-4], %t");
    refused(illegal_address, shared + "cvta.shared.u64 %q1, memory;\n@%p5 st.u32 [%q1+32], %t;",
            "st.u32 [%q1+32], %t");
    refused(illegal_address, "@%p5 st.shared.u32 [all+64], %t;", "st.shared.u32 [all+64], %t",
            "(5, 0, 0)", {.dynamic_shared_bytes = 64}, ".extern .shared .align 4 .b8 all[];\n");
    accepted("@%p5 st.shared.u32 [all+60], %t;", {.dynamic_shared_bytes = 64},
             ".extern .shared .align 4 .b8 all[];\n");
    const std::string local = ".local .align 4 .b8 memory[32];\n";
    refused(illegal_address, local + "@%p5 st.local.u32 [memory+32], %t;",
            "st.local.u32 [memory+32], %t");
    // An access that begins in a buffer and ends behind it.
    Buffer a(Values(3, 1)), b(Values(1, 1));
    auto fault = launch(kernel("@%p5 ld.global.u64 %q1, [%a+8];"), "culprit", {}, {&a, &b});
    check(fault, illegal_address, {"culprit", "ld.global.u64 %q1, [%a+8]", "thread (5, 0, 0)"});
    // Memory that was freed.
    b.states()[1] = machine::Byte::free;
    for (const std::string instruction :
         {"ld.global.u32 %r1, [%b]", "st.global.u32 [%b], %t", "ld.global.u8 %r1, [%b+1]",
          "atom.global.add.u32 %r1, [%b], 1"}) {
        fault = launch(kernel("@%p5 " + instruction + ";"), "culprit", {}, {&a, &b});
        check(fault, illegal_address, {"culprit", instruction, "thread (5, 0, 0)"});
    }
    check(launch(kernel("@%p5 ld.global.u8 %r1, [%b+2];"), "culprit", {}, {&a, &b}), none, {});
    // The place of a thread in a block of three dimensions.
    refused(illegal_address,
            "mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; setp.eq.u32 %p0, %t, 1; setp.eq.and.u32 "
            "%p0, %r1, 1, %p0;\n"
            "setp.eq.and.u32 %p0, %r2, 3, %p0;\n@%p0 ld.global.u32 %r1, [%a+64];",
            "ld.global.u32 %r1, [%a+64]", "(1, 1, 3)", {.block = {4, 3, 6}});
}

TEST_CASE("addresses of another space") {
    const std::string memory =
        ".shared .align 4 .b8 s[64]; .local .align 4 .b8 l[64]; mov.u32 %r2, s; @%p5 st.shared.u32 "
        "[s], 1;\n@%p5 st.local.u32 [l], 1; cvta.shared.u64 %q1, s; mov.u64 %q2, l; "
        "cvta.local.u64 %q2, %q2;\n";
    const auto wrong = [&](const std::string& instruction, const std::string& space) {
        CAPTURE(instruction);
        Buffer a(Values(16, 1)), b(Values(16, 1));
        const auto fault =
            launch(kernel(memory + "@%p5 " + instruction + ";"), "culprit", {}, {&a, &b});
        check(fault, illegal_address,
              {"culprit", instruction, "thread (5, 0, 0)", "an address of " + space});
    };
    wrong("ld.global.u32 %r1, [%q1]", "shared memory");
    wrong("st.global.u32 [%q1], %t", "shared memory");
    wrong("atom.global.add.u32 %r1, [%q1], 1", "shared memory");
    wrong("red.global.add.u32 [%q1], 1", "shared memory");
    wrong("ld.global.u32 %r1, [%q2]", "local memory");
    wrong("st.global.u32 [%q2], %t", "local memory");
    wrong("atom.global.add.u32 %r1, [%q2], 1", "local memory");
    wrong("ld.shared.u32 %r1, [%q1]", "shared memory");
    wrong("st.shared.u32 [%q1], %t", "shared memory");
    wrong("ld.shared.u32 %r1, [%q2]", "local memory");
    wrong("ld.shared.u32 %r1, [%a]", "global memory");
    wrong("st.shared.u32 [%a], %t", "global memory");
    wrong("atom.shared.add.u32 %r1, [%a], 1", "global memory");
    wrong("ld.local.u32 %r1, [%q1]", "shared memory");
    wrong("st.local.u32 [%a], %t", "global memory");
    for (const std::string right :
         {"ld.u32 %r1, [%q1]", "ld.u32 %r1, [%q2]", "ld.local.u32 %r1, [%q2]",
          "ld.shared.u32 %r1, [%r2]", "ld.u32 %r1, [%a]", "atom.add.u32 %r1, [%q1], 1"})
        accepted(memory + "@%p5 " + right + ";");
}

TEST_CASE("variables of modules") {
    const std::string before =
        ".global .align 1 .b8 byte;\n.global .align 4 .u32 words[4];\n.global .u32 next;\n";
    refused(illegal_address, "@%p5 ld.global.u32 %r1, [words+16];", "ld.global.u32 %r1, [words+16]",
            "(5, 0, 0)", {}, before);
    refused(illegal_address, "@%p5 st.global.u32 [words+-4], %t;", "st.global.u32 [words+-4], %t",
            "(5, 0, 0)", {}, before);
    refused(illegal_address, "@%p5 ld.global.u8 %r1, [byte+1];", "ld.global.u8 %r1, [byte+1]",
            "(5, 0, 0)", {}, before);
    accepted("@%p5 ld.global.u32 %r1, [words+12]; @%p5 st.global.u8 [byte], %r1;", {}, before);
    // Races between lanes, and between blocks.
    refused(failure, "st.global.u32 [words], %t;", "st.global.u32 [words], %t", "(1, 0, 0)", {},
            before);
    refused(failure, "mov.u32 %r1, %ctaid.x; @%p5 st.global.u8 [byte], %r1;",
            "st.global.u8 [byte], %r1", "(5, 0, 0)", {.grid = {2}}, before);
    accepted("red.global.add.u32 [words+4], %t; ld.global.u32 %r1, [words+8];", {.grid = {2}},
             before);
    accepted("@%p5 st.global.u32 [next], %t; bar.sync 0; ld.global.u32 %r1, [next];",
             {.block = {64}}, before);
}

TEST_CASE("addresses that are not aligned") {
    refused(misaligned, "@%p5 ld.global.u32 %r1, [%a+2];", "ld.global.u32 %r1, [%a+2]");
    refused(misaligned, "@%p5 ld.global.u16 %r1, [%a+1];", "ld.global.u16 %r1, [%a+1]");
    refused(misaligned, "@%p5 ld.global.u64 %q1, [%a+4];", "ld.global.u64 %q1, [%a+4]");
    refused(misaligned, "@%p5 ld.global.v2.u32 {%r1, %r2}, [%a+4];",
            "ld.global.v2.u32 {%r1, %r2}, [%a+4]");
    refused(misaligned,
            "and.b64 %q1, %a, -16;\n@%p5 ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%q1+24];",
            "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%q1+24]");
    refused(misaligned, "@%p5 st.global.u32 [%a+1], %t;", "st.global.u32 [%a+1], %t");
    refused(misaligned, "@%p5 st.global.v2.u32 [%a+4], {%t, %t};",
            "st.global.v2.u32 [%a+4], {%t, %t}");
    refused(misaligned, "@%p5 atom.global.add.u32 %r1, [%a+2], 1;",
            "atom.global.add.u32 %r1, [%a+2], 1");
    refused(misaligned, "@%p5 ld.u32 %r1, [%a+2];", "ld.u32 %r1, [%a+2]");
    const std::string shared = ".shared .align 16 .b8 memory[32];\n";
    refused(misaligned, shared + "@%p5 st.shared.u64 [memory+4], %a;",
            "st.shared.u64 [memory+4], %a");
    const std::string local = ".local .align 16 .b8 memory[32];\n";
    refused(misaligned, local + "@%p5 st.local.u32 [memory+6], %t;", "st.local.u32 [memory+6], %t");
}

TEST_CASE("trap") {
    refused(failure, "@%p5 trap;", "trap");
    refused(failure, "setp.lt.u32 %p0, %t, 40; @%p0 bra $good;\ntrap;\n$good:\n", "trap",
            "(40, 0, 0)", {.block = {64}});
    accepted("setp.gt.u32 %p0, %t, 100;\n@%p0 trap;");
    // A fault of one kernel does not change the next one.
    refused(failure, "@%p5 trap;", "trap", "(5, 0, 0)", {.threads = 2});
    accepted("bar.sync 0;", {.grid = {4}, .block = {64}, .threads = 2});
}

TEST_CASE("barriers that not all threads reach") {
    const auto stopped = [](const std::string& body, const Setup& setup = {.block = {64}}) {
        CAPTURE(body);
        Buffer a(Values(16, 1)), b(Values(16, 1));
        check(launch(kernel(body), "culprit", setup, {&a, &b}), failure,
              {"culprit", "bar.sync 0", "thread ("});
    };
    // The second warp has ended; some lanes have; some lanes go around it.
    stopped("setp.ge.u32 %p0, %t, 32;\n@%p0 ret;\nbar.sync 0;");
    stopped("@%p5 ret;\nbar.sync 0;");
    stopped("@%p5 bra $end;\nbar.sync 0;\n$end:");
    stopped("@%p5 bra $end;\nbar.sync 0;\n$end:", {.block = {64}, .reversed = true});
    stopped("setp.lt.u32 %p0, %t, 16;\n@%p0 bar.sync 0;");
    // Two barriers of divergent lanes.
    stopped("@%p5 bra $other;\nbar.sync 0;\nbra $end;\n$other:\nbar.sync 0;\n$end:");
    // One warp comes once more than the other.
    stopped("bar.sync 0;\nsetp.lt.u32 %p0, %t, 32;\n@!%p0 bra $end;\nbar.sync 0;\n$end:");
    accepted("bar.sync 0;\nbar.sync 0;", {.block = {64}});
}

TEST_CASE("lanes that a mask names, and lanes that come") {
    const auto stopped = [](const std::string& body, const std::string& instruction) {
        refused(failure, body, instruction, "(");
    };
    const std::string shuffle = "shfl.sync.bfly.b32 %r1, %t, 1, 31, -1";
    const std::string vote = "vote.sync.ballot.b32 %r1, %p5, -1";
    const std::string wait = "bar.warp.sync -1";
    for (const auto& instruction : {shuffle, vote, wait}) {
        // A lane has ended; a lane goes around it; a lane waits elsewhere.
        stopped("@%p5 ret;\n" + instruction + ";", instruction);
        stopped("@%p5 bra $end;\n" + instruction + ";\n$end:", instruction);
        stopped("@%p5 bra $other;\n" + instruction + ";\nret;\n$other:\nbar.sync 0;", "culprit");
        accepted(instruction + ";");
    }
    // A lane that comes is not in its own mask.
    stopped("shfl.sync.bfly.b32 %r1, %t, 1, 31, 0x7fffffff;",
            "shfl.sync.bfly.b32 %r1, %t, 1, 31, 0x7fffffff");
    stopped("vote.sync.any.pred %p1, %p5, 0xfffffffe;", "vote.sync.any.pred %p1, %p5, 0xfffffffe");
    // Lanes name each other differently.
    stopped(
        "mov.u32 %r2, -1;\n@%p5 mov.u32 %r2, 0x7fffffff;\nshfl.sync.bfly.b32 %r1, %t, 1, 31, %r2;",
        "shfl.sync.bfly.b32 %r1, %t, 1, 31, %r2");
    // The value of a lane that does not take part.
    stopped("@%p5 ret;\nshfl.sync.bfly.b32 %r1, %t, 2, 31, 0xffffffdf;",
            "shfl.sync.bfly.b32 %r1, %t, 2, 31, 0xffffffdf");
    // A mask of the lanes that are left.
    accepted("@%p5 ret;\nshfl.sync.idx.b32 %r1, %t, %t, 31, 0xffffffdf;");
    accepted("@%p5 bra $end;\nvote.sync.any.pred %p1, %p5, 0xffffffdf;\n$end:\nbar.warp.sync -1;");
}

TEST_CASE("races in shared memory") {
    const std::string shared =
        ".shared .align 4 .b8 memory[256];\nmov.u32 %r1, memory;\nmad.lo.u32 %r2, %t, 4, %r1;\n";
    const std::string store = "st.shared.u32 [%r2], %t;\n";
    const auto race = [&](const std::string& body, const std::string& instruction,
                          unsigned threads = 64) {
        for (const bool reversed : {false, true}) {
            refused(failure, shared + body, instruction, "(",
                    {.block = {threads}, .reversed = reversed});
        }
    };
    const auto fine = [&](const std::string& body, unsigned threads = 64) {
        for (const bool reversed : {false, true}) {
            accepted(shared + body, {.grid = {2}, .block = {threads}, .reversed = reversed});
        }
    };
    const std::string other_warp = "xor.b32 %r3, %r2, 128;\n",
                      other_lane = "xor.b32 %r3, %r2, 4;\n";
    // Writes and reads of two warps.
    race(store + other_warp + "ld.shared.u32 %r4, [%r3];", "memory");
    fine(store + other_warp + "bar.sync 0;\nld.shared.u32 %r4, [%r3];");
    // bar.warp.sync does not order warps.
    race(store + other_warp + "bar.warp.sync -1;\nld.shared.u32 %r4, [%r3];", "memory");
    // A read and then a write.
    race(store + other_warp +
             "bar.sync 0;\nld.shared.u32 %r4, [%r3];\nadd.u32 %r4, %r4, 1000;\nst.shared.u32 "
             "[%r2], %r4;",
         "st.shared.u32 [%r2], %r4");
    fine(store + other_warp +
         "bar.sync 0;\nld.shared.u32 %r4, [%r3];\nbar.sync 0;\nst.shared.u32 [%r2], %r4;");
    // Two writes of different values.
    race("st.shared.u32 [memory], %t;", "st.shared.u32 [memory], %t");
    race(
        "setp.eq.u32 %p0, %t, 5;\nsetp.eq.u32 %p1, %t, 37;\n@%p0 st.shared.u32 [memory], %t;\n@%p1 "
        "st.shared.u32 [memory], %t;",
        "st.shared.u32 [memory], %t");
    // Lanes of one warp.
    race(store + other_lane + "ld.shared.u32 %r4, [%r3];", "ld.shared.u32 %r4, [%r3]", 32);
    fine(store + other_lane + "bar.warp.sync -1;\nld.shared.u32 %r4, [%r3];", 32);
    race(store + other_lane +
             "bar.warp.sync -1;\nld.shared.u32 %r4, [%r3];\nadd.u32 %r4, %r4, 1000;\nst.shared.u32 "
             "[%r2], %r4;",
         "st.shared.u32 [%r2], %r4", 32);
    // Each thread has its own byte of a word; all read one word; one thread does all.
    fine("add.u32 %r3, %r1, %t;\nst.shared.u8 [%r3], %t;\nld.shared.u8 %r4, [%r3];");
    fine("@%p5 st.shared.u32 [memory], %t;\nbar.sync 0;\nld.shared.u32 %r4, [memory];");
    fine(
        "@!%p5 ret;\nst.shared.u32 [memory], %t;\nld.shared.u32 %r4, [memory];\nst.shared.u32 "
        "[memory], %r1;");
    // Atomics of all threads; a plain read needs a barrier.
    const std::string zero = "@%p5 st.shared.u32 [memory], 0;\nbar.sync 0;\n";
    fine(zero + "red.shared.add.u32 [memory], %t;\nbar.sync 0;\nld.shared.u32 %r4, [memory];");
    race(zero + "red.shared.add.u32 [memory], %t;\nld.shared.u32 %r4, [memory];", "[memory]");
    // A thread's atomic does not hide its plain write, nor its second read that of another thread.
    race(
        "setp.eq.u32 %p4, %t, 0;\n@%p4 st.shared.u32 [memory], 0;\nred.shared.add.u32 [memory], 1;",
        "[memory]");
    race(zero +
             "ld.shared.u32 %r4, [memory];\n@%p5 ld.shared.u32 %r4, [memory];\n"
             "@%p5 st.shared.u32 [memory], 7;",
         "st.shared.u32 [memory], 7");
    // A byte that was read before a barrier is not read again by a read of its neighbour.
    fine(zero +
         "@%p5 ld.shared.u8 %r4, [memory];\nbar.sync 0;\n@%p5 ld.shared.u8 %r4, [memory+1];\n"
         "setp.eq.u32 %p4, %t, 1;\n@%p4 st.shared.u8 [memory], 9;");
}

// Two buffers whose accesses are noted.
struct Noted {
    Buffer a, b;
    std::array<std::vector<machine::Touched>, 2> touched;
    Noted() : a(Values(64, 1)), b(Values(64, 1)) {
        for (auto& each : touched) each.resize(64);
        a.touched = touched[0].data();
        b.touched = touched[1].data();
    }
};

TEST_CASE("races in global memory") {
    const auto outcome = [](const std::string& body, const Setup& setup) {
        Noted memory;
        return launch(kernel(body), "culprit", setup, {&memory.a, &memory.b});
    };
    const auto race = [&](const std::string& body, const std::string& instruction,
                          const Setup& setup = {.grid = {2}, .block = {1}}) {
        CAPTURE(body);
        check(outcome(body, setup), failure, {"culprit", instruction, "thread ("});
    };
    const auto fine = [&](const std::string& body,
                          const Setup& setup = {.grid = {2}, .block = {32}}) {
        CAPTURE(body);
        check(outcome(body, setup), none, {});
    };
    const std::string block =
        "mov.u32 %r1, %ctaid.x;\nadd.u32 %r2, %r1, 10;\nsetp.eq.u32 %p0, %r1, 0;\nmad.wide.u32 "
        "%q1, %r1, 4, %a;\n";
    // Between blocks: two writes, a write and a read, in each order.
    race(block + "st.global.u32 [%a], %r2;", "st.global.u32 [%a], %r2");
    race(block + "@%p0 st.global.u32 [%a], %r2;\n@!%p0 ld.global.u32 %r3, [%a];",
         "ld.global.u32 %r3, [%a]");
    race(block + "@%p0 ld.global.u32 %r3, [%a];\n@!%p0 st.global.u32 [%a], %r2;",
         "st.global.u32 [%a], %r2");
    race(block + "@%p0 st.global.u32 [%a], %r2;\n@!%p0 ld.global.u32 %r3, [%a];", "[%a]",
         {.grid = {2}, .block = {1}, .reversed = true});
    race(block + "@%p0 st.global.u32 [%a+4], %r2;\n@!%p0 ld.global.v2.u32 {%r3, %r4}, [%a];",
         "ld.global.v2.u32 {%r3, %r4}, [%a]");
    // A barrier orders only the threads of its block.
    race(block + "@%p0 st.global.u32 [%a], %r2;\nbar.sync 0;\n@!%p0 ld.global.u32 %r3, [%a];",
         "ld.global.u32 %r3, [%a]");
    // Atomics, and an atomic and a plain access.
    fine(
        "red.global.add.u32 [%a], 1;\natom.global.max.u32 %r1, [%a+4], %t;\natom.global.exch.b32 "
        "%r1, [%a+8], %t;");
    race(block + "@%p0 red.global.add.u32 [%a], 1;\n@!%p0 ld.global.u32 %r3, [%a];",
         "ld.global.u32 %r3, [%a]");
    race(block + "@%p0 st.global.u32 [%a], %r2;\n@!%p0 atom.global.add.u32 %r3, [%a], 1;",
         "atom.global.add.u32 %r3, [%a], 1");
    // Words of their own, bytes of their own, reads.
    fine(block + "st.global.u32 [%q1], %r2;\nld.global.u32 %r3, [%q1];\nst.global.u32 [%q1], %r1;",
         {.grid = {2}, .block = {1}});
    const std::string byte =
        "cvt.u64.u32 %q1, %r1;\nadd.u64 %q1, %q1, %a;\nst.global.u8 [%q1], %r1;\n";
    fine("mov.u32 %r1, %ctaid.x;\n" + byte + "ld.global.u8 %r2, [%q1];",
         {.grid = {4}, .block = {1}});
    fine("mov.u32 %r1, %t;\n" + byte + "ld.global.u8 %r2, [%q1];", {.block = {64}});
    fine("ld.global.u32 %r1, [%b];");
    // Blocks on two OS threads, at the same time: each has its own byte of a word.
    for (int round = 0; round < 10; ++round)
        fine("mov.u32 %r1, %ctaid.x; and.b32 %r1, %r1, 63;\n" + byte +
                 "mov.u32 %r3, 0;\n$again:\nst.global.u8 [%q1], %r3;\nld.global.u8 %r2, [%q1];\n"
                 "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 200;\n@%p1 bra $again;",
             {.grid = {64}, .block = {1}, .threads = 2});
    // Within a block.
    const std::string own =
        "mad.wide.u32 %q1, %t, 4, %a;\nxor.b32 %r1, %t, 32;\nmad.wide.u32 %q2, %r1, 4, "
        "%a;\nadd.u32 %r2, %t, 7;\nst.global.u32 [%q1], %r2;\n";
    const Setup two_warps = {.block = {64}};
    race(own + "ld.global.u32 %r3, [%q2];", "[%q2]", two_warps);
    fine(own + "bar.sync 0;\nld.global.u32 %r3, [%q2];", two_warps);
    const std::string lanes = "xor.b32 %r1, %t, 1;\nmad.wide.u32 %q2, %r1, 4, %a;\n";
    race(own + lanes + "ld.global.u32 %r3, [%q2];", "ld.global.u32 %r3, [%q2]", {});
    fine(own + lanes + "bar.warp.sync -1;\nld.global.u32 %r3, [%q2];", {});
}

TEST_CASE("races of launches") {
    // The second launch reads what the first one wrote.
    for (const bool ordered : {true, false}) {
        const machine::Module module(
            kernel("@%p5 ld.global.u32 %r1, [%a];\n@%p5 st.global.u32 [%b], %r1;"));
        Noted memory;
        std::vector<std::byte> arguments(16);
        const std::uint64_t addresses[] = {memory.a.address(), memory.b.address()};
        machine::Launch launch;
        launch.kernel = module.find("culprit");
        launch.block = {32, 1, 1};
        launch.arguments = arguments.data();
        launch.regions = {memory.a.region(), memory.b.region()};
        launch.after = [](const void* user, std::uint32_t number) {
            return number == 7 && *static_cast<const bool*>(user);
        };
        launch.user = &ordered;
        launch.number = 7;
        std::memcpy(arguments.data(), addresses, 16);
        check(machine::run(launch), none, {});
        std::memcpy(arguments.data(), &addresses[1], 8);
        std::memcpy(arguments.data() + 8, &addresses[0], 8);
        launch.number = 8;
        const auto fault = machine::run(launch);
        if (ordered) {
            check(fault, none, {});
        } else {
            check(fault, failure, {"culprit", "ld.global.u32 %r1, [%a]", "thread (5, 0, 0)"});
        }
    }
}

TEST_CASE("a fault names the line of the source") {
    const std::string files = ".file 1 \"/source/file.cu\"\n.file 2 \"/source/other.cuh\"\n";
    const auto text = [&](const std::string& body, const std::string& before = "") {
        Buffer a(Values(16, 1)), b(Values(16, 1));
        const auto ptx = kernel(body, before) + files +
                         ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90,0\n}\n";
        const auto fault = launch(ptx, "culprit", {}, {&a, &b});
        CHECK(fault.error == failure);
        return fault.text;
    };
    const auto names = [](const std::string& message, const std::string& part) {
        CHECK_MESSAGE(message.find(part) != std::string::npos,
                      "expected '" << part << "' in: " << message);
    };
    names(
        text(".loc 1 11 3\nmov.u32 %r1, 1;\n.loc 1 12 5\n@%p5 trap;\n.loc 1 13 5\nmov.u32 %r1, 2;"),
        "file.cu:12");
    names(text(".loc 1 12 5\nmov.u32 %r1, 1;\n@%p5 trap;"), "file.cu:12");
    names(text(".loc 1 30 3\nmov.u32 %r1, 1;\n.loc 2 12 5, function_name $L__info_string0, "
               "inlined_at 1 30 3\n@%p5 trap;"),
          "other.cuh:12");
    // In a function of the module: the function's line, the kernel's name.
    const auto in_function = text(
        ".loc 1 40 1\n{ .param .b32 param0; st.param.b32 [param0], %t; call.uni stop_at_5, "
        "(param0); }",
        ".func stop_at_5(.param .b32 x)\n{\n.reg .b32 %r<2>; .reg .pred %p<2>;\n.loc 2 20 1\n"
        "ld.param.u32 %r0, [x]; setp.eq.u32 %p0, %r0, 5;\n.loc 2 21 1\n@%p0 trap;\nret;\n}\n");
    for (const auto* part : {"culprit", "trap", "other.cuh:21", "thread (5, 0, 0)"})
        names(in_function, part);
    // A mangled name is readable.
    Buffer out(Values(1, 1));
    const auto fault =
        launch(header + ".visible .entry _ZN6catena4fillIfEEvPT_(.param .u64 a) { trap; }",
               "_ZN6catena4fillIfEEvPT_", {}, {&out});
    check(fault, failure, {"catena::fill<float>", "trap", "thread (0, 0, 0)"});
}

}  // namespace
