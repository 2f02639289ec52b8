// What a launch counts: accesses of memory, bank conflicts, barriers, instructions.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "../warp.hpp"
#include "kernel.hpp"

namespace {

using namespace machine_test;

struct Counted {
    machine::Profile profile;
    std::map<std::string, machine::Profile::Count> names;
};
// Counts a body for one warp, without the store of its results. %q2 is an address in the input that a
// sector of 32 bytes begins at.
Counted count(const std::string& body) {
    const std::string ptx = kernel(
        ".shared .align 4 .b8 block[4096];\n"
        "add.s64 %q2, %in, 31; and.b64 %q2, %q2, -32; mov.u32 %r0, %t; mov.u32 %r9, block;\n" +
        body + "ret;\n");
    assemble(ptx);
    const machine::Module module(ptx);
    const machine::Kernel* const k = module.find("k");
    REQUIRE(k != nullptr);
    Buffer out = Buffer::unwritten(4 * 32), in(Values(2048));
    std::vector<machine::Touched> of_out(33), of_in(2049);
    out.touched = of_out.data();
    in.touched = of_in.data();
    Counted counted;
    Setup setup;
    setup.profile = &counted.profile;
    const machine::Fault fault = launch(*k, setup, {&out, &in});
    CHECK_MESSAGE(fault.error == 0, fault.text);
    for (const auto& [name, number] : counted.profile.by_name(*k)) counted.names[name] = number;
    return counted;
}

}  // namespace

TEST_CASE("a profile: sectors, coalesced accesses and different bytes of global memory") {
    struct Case {
        const char* access;
        std::uint64_t sectors, coalesced, read, written;
    };
    const Case cases[] = {
        {"mad.wide.u32 %q1, %t, 4, %q2; ld.global.u32 %r0, [%q1];", 4, 1, 128, 0},
        {"mad.wide.u32 %q1, %t, 4, %q2; ld.global.u32 %r0, [%q1+4];", 5, 1, 128, 0},
        {"mad.wide.u32 %q1, %t, 8, %q2; ld.global.u32 %r0, [%q1];", 8, 0, 128, 0},
        {"mad.wide.u32 %q1, %t, 32, %q2; ld.global.u32 %r0, [%q1];", 32, 0, 128, 0},
        {"ld.global.u32 %r0, [%q2];", 1, 1, 4, 0},
        {"mad.wide.u32 %q1, %t, 16, %q2; ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%q1];", 16, 1, 512,
         0},
        {"mad.wide.u32 %q1, %t, 4, %q2; st.global.u32 [%q1], %t;", 4, 1, 0, 128},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.access));
        const machine::Profile p = count(c.access).profile;
        CHECK(p.accesses == 1);
        CHECK(p.sectors == c.sectors);
        CHECK(p.touched.size() == c.sectors);
        CHECK(p.coalesced == c.coalesced);
        CHECK(p.read == c.read);
        CHECK(p.written == c.written);
    }
    // A block that reads sectors again has them in its cache.
    const machine::Profile twice = count(std::string(cases[0].access) + cases[0].access).profile;
    CHECK(twice.accesses == 2);
    CHECK(twice.sectors == 4);
    CHECK(twice.read == 128);
}

TEST_CASE("a profile: bank conflicts, barriers, lanes of an instruction") {
    const auto store = [](const char* step) {
        return std::string("mad.lo.u32 %r1, %t, ") + step + ", %r9; st.shared.u32 [%r1], %t;";
    };
    CHECK(count(store("4")).profile.conflicts == 0);
    CHECK(count(store("8")).profile.conflicts == 1);
    CHECK(count(store("128")).profile.conflicts == 31);
    CHECK(count("bar.sync 0; bar.sync 0;").profile.barriers == 2);
    const Counted half = count("setp.lt.u32 %p1, %t, 16; @%p1 xor.b32 %r0, %r0, 1;");
    CHECK(half.names.at("xor.b32").warps == 1);
    CHECK(half.names.at("xor.b32").lanes == 16);
    CHECK(half.names.at("setp.lt.u32").lanes == 32);
}
