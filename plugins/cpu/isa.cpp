// CPU features. CPUID traps in virtual machines and hosts query per kernel, so the level is cached.
#include <sys/utsname.h>

#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cpu.hpp"

namespace catena_cpu {

#if defined(__x86_64__)
namespace {

struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
};
Registers cpuid(unsigned leaf, unsigned part = 0) {
    Registers r;
    return __get_cpuid_count(leaf, part, &r.a, &r.b, &r.c, &r.d) != 0 ? r : Registers();
}

constexpr bool has(unsigned word, unsigned mask) { return (word & mask) == mask; }

// Returns the registers that the system saves on a context switch, as bits.
unsigned saved_registers() {
    unsigned saved = 0, high = 0;
    if (has(cpuid(1).c, bit_OSXSAVE)) __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    return saved;
}

int detect() {
    const Registers basic = cpuid(1), more = cpuid(7), extended = cpuid(0x80000001u);
    const unsigned saved = saved_registers();  // bits 1, 2 for AVX, 5 .. 7 for AVX-512
    if (!has(basic.c,
             bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) ||
        !has(extended.c, bit_LAHF_LM))
        return 1;
    if (!has(saved, 0x06u) || !has(basic.c, bit_FMA | bit_MOVBE | bit_AVX | bit_F16C) ||
        !has(extended.c, bit_LZCNT) || !has(more.b, bit_BMI | bit_AVX2 | bit_BMI2))
        return 2;
    constexpr unsigned avx512 =
        bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
    return has(saved, 0xe6u) && has(more.b, avx512) ? 4 : 3;
}

}  // namespace

std::string cpu_signature() {
    char text[160];
    const Registers basic = cpuid(1), more = cpuid(7), extended = cpuid(0x80000001u);
    // basic.b is omitted, because it contains the APIC ID of the core that runs this.
    std::snprintf(text, sizeof text, "%x-%x-%x-%x-%x-%x-%x-%x", basic.a, basic.c, basic.d, more.b,
                  more.c, more.d, extended.c, extended.d);
    return text;
}

int isa_level() {
    static const int level = detect();
    return level;
}

bool has_amx_bf16() {
    constexpr unsigned amx_tile = 1u << 24, amx_bf16 = 1u << 22, avx512_bf16 = 1u << 5;
    return isa_level() == 4 && has(cpuid(7).d, amx_tile | amx_bf16) &&
           has(cpuid(7, 1).a, avx512_bf16) && has(saved_registers(), 0x60000u);
}
#else
std::string cpu_signature() {
    utsname system = {};
    uname(&system);
    return std::string(system.machine) + "-" + system.nodename;
}

int isa_level() { return 0; }

bool has_amx_bf16() { return false; }
#endif

bool supports_isa(const char* isa) {
    const char* const* level = isa_levels + 4 - isa_level();
    while (*level != nullptr && std::strcmp(isa, *level) != 0) ++level;
    return *isa == '\0' || *level != nullptr;
}

}  // namespace catena_cpu
