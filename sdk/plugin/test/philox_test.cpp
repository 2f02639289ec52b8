// Tests Philox4x32-10 against the known answers of its authors' Random123 library.
#include <doctest/doctest.h>

#include <catena/plugin/philox.hpp>

using catena::plugin::philox;
using catena::plugin::Philox4;

namespace {

void check(const Philox4& r, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    CHECK(r.v[0] == a);
    CHECK(r.v[1] == b);
    CHECK(r.v[2] == c);
    CHECK(r.v[3] == d);
}

}  // namespace

TEST_CASE("known answers") {
    check(philox(0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    const std::uint64_t ones = ~std::uint64_t{0};
    check(philox(ones, ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    check(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e), 0xd16cfe09,
          0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST_CASE("a constant expression") {
    static_assert(philox(0, 0).v[0] == 0x6627e8d5);
    CHECK(philox(1, 0).v[0] != philox(0, 0).v[0]);
}

TEST_CASE("many blocks at once are the same blocks") {
    std::uint32_t words[4][catena::plugin::philox_lanes];
    const std::uint64_t counter = 0xffffffe0;  // crosses 32 bits
    philox(0x123456789abcdef0, counter, words);
    for (std::uint64_t j = 0; j < 64; ++j)
        for (int k = 0; k < 4; ++k)
            CHECK(words[k][j] == philox(0x123456789abcdef0, counter + j).v[k]);
}
