// Reads CPUID once: it traps in virtual machines, and hosts ask for every kernel.
#include "isa.hpp"

#include <sys/utsname.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace catena_cpu {
namespace {

#if defined(__x86_64__)

struct Registers {
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint32_t d = 0;
};

Registers cpuid(uint32_t leaf) {
    Registers r;
    return __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d) != 0 ? r : Registers();
}

// State that the system saves on a context switch: bits 1, 2 for AVX, 5 .. 7 for AVX-512.
uint32_t saved_state(bool osxsave) {
    uint32_t low = 0;
    uint32_t high = 0;
    if (osxsave) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

constexpr bool has(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

template <typename... Bits>
constexpr uint32_t mask(Bits... bits) {
    return ((1u << bits) | ...);
}

int detect() {
    const Registers basic = cpuid(1);
    const Registers more = cpuid(7);
    const Registers extended = cpuid(0x80000001u);
    const uint32_t state = saved_state(has(basic.c, mask(27)));
    // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF.
    if (!has(basic.c, mask(0, 9, 13, 19, 20, 23)) || !has(extended.c, mask(0))) return 1;
    // FMA, MOVBE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2.
    if (!has(state, 0x06u) || !has(basic.c, mask(12, 22, 28, 29)) || !has(extended.c, mask(5)) ||
        !has(more.b, mask(3, 5, 8)))
        return 2;
    // AVX-512 F, DQ, CD, BW, VL.
    return has(state, 0xe6u) && has(more.b, mask(16, 17, 28, 30, 31)) ? 4 : 3;
}

#else

int detect() { return 0; }

#endif

#if defined(__x86_64__)
std::string signature() {
    char text[160];
    const Registers basic = cpuid(1), more = cpuid(7), extended = cpuid(0x80000001u);
    // The low half of basic.b names the processor that happens to run this.
    std::snprintf(text, sizeof text, "%x-%x-%x-%x-%x-%x-%x-%x", basic.a, basic.c, basic.d, more.b,
                  more.c, more.d, extended.c, extended.d);
    return text;
}
#else
std::string signature() {
    utsname system = {};
    uname(&system);
    return std::string(system.machine) + "-" + system.nodename;
}
#endif

}  // namespace

std::string cpu_signature() { return signature(); }

int isa_level() {
    static const int level = detect();
    return level;
}

bool supports_isa(const char* isa) {
    constexpr const char* names[] = {"", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    for (int level = 0; level <= isa_level(); ++level)
        if (std::strcmp(isa, names[level]) == 0) return true;
    return false;
}

}  // namespace catena_cpu
