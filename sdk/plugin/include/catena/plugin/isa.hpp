// Instruction sets: macros that let one formula be compiled, and inlined, for each of them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

// This translation unit has CUDA code for nvcc or, with this macro defined, for another compiler.
#if defined(__CUDACC__) && !defined(CATENA_CUDA)
#define CATENA_CUDA 1
#endif

// Precedes every formula: it is inlined into the loop of each instruction set, usable in constant
// expressions, and callable on a GPU.
#if defined(CATENA_CUDA)
#include <cuda_runtime.h>
#define CATENA_FN __host__ __device__ __forceinline__ constexpr
#else
#define CATENA_FN [[gnu::always_inline]] inline constexpr
#endif
// The same for handwritten kernels, which are not constant expressions, and for lambdas in them:
// `[&](int64_t begin, int64_t end) CATENA_LAMBDA { ... }`.
#define CATENA_KERNEL [[gnu::always_inline]] inline
#define CATENA_LAMBDA __attribute__((always_inline))

// Precedes a loop whose iterations are independent: outputs never overlap inputs.
#if defined(__clang__)
#define CATENA_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define CATENA_LOOP _Pragma("GCC ivdep")
#endif

// Precedes a loop whose arrays should be in registers of a GPU.
#if defined(__CUDACC__)
#define CATENA_UNROLL _Pragma("unroll")
#elif defined(__clang__)
#define CATENA_UNROLL _Pragma("clang loop unroll(enable)")
#else
#define CATENA_UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__x86_64__) && !defined(CATENA_CUDA)
#define CATENA_X86 1
#define CATENA_TARGET_V3 __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,movbe")))
#if defined(__clang__)
#define CATENA_TARGET_V4                                                                         \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,movbe,avx512f,avx512dq,avx512cd," \
                          "avx512bw,avx512vl"),                                                  \
                   min_vector_width(512)))
#else
#define CATENA_TARGET_V4                                                                         \
    __attribute__((target(                                                                       \
        "avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,movbe,avx512f,avx512dq,avx512cd,avx512bw,avx512vl," \
        "prefer-vector-width=512")))
#endif
#endif

namespace catena::plugin {

// The user's choice of the instructions that multiply bfloat16: $CATENA_CPU_BFLOAT16, "" by
// default, "0" for none, or "avx512" for AVX512-BF16 on any processor that has it.
inline std::string_view chosen_bfloat16() {
    const char* const chosen = std::getenv("CATENA_CPU_BFLOAT16");  // NOLINT(concurrency-mt-unsafe)
    return chosen == nullptr ? "" : chosen;
}
// Whether to multiply bfloat16 with `vdpbf16ps`: by default where it multiplies twice as many
// numbers per second as float32 instructions. AMD's does (measured on Zen 4), Intel's does not.
inline bool use_avx512_bf16() {
#if defined(CATENA_X86)
    const std::string_view chosen = chosen_bfloat16();
    return chosen != "0" && __builtin_cpu_supports("avx512bf16") != 0 &&
           (chosen == "avx512" || __builtin_cpu_is("amd") != 0);
#else
    return false;
#endif
}

enum class Isa { baseline, x86_64_v3, x86_64_v4 };

// The name that a backend checks; "" runs everywhere.
constexpr const char* isa_name(Isa isa) {
    return isa == Isa::x86_64_v4 ? "x86-64-v4" : isa == Isa::x86_64_v3 ? "x86-64-v3" : "";
}

// Calls K::run, or a body of parallel(), compiled for an instruction set: functions with the macros
// above are inlined and vectorized for it. range() has the signature that
// catena_host.parallel_for() takes; a body may also take the worker's slot: body(begin, end, slot).
#define CATENA_TARGET_BODY(attribute)                                                       \
    template <class K, class... A>                                                          \
    attribute static void call(A... args) {                                                 \
        K::run(args...);                                                                    \
    }                                                                                       \
    template <class Body>                                                                   \
    attribute static void range(void* body, std::int64_t begin, std::int64_t end,           \
                                std::int32_t slot) {                                        \
        if constexpr (std::is_invocable_v<Body&, std::int64_t, std::int64_t, std::int32_t>) \
            (*static_cast<Body*>(body))(begin, end, slot);                                  \
        else (*static_cast<Body*>(body))(begin, end), static_cast<void>(slot);              \
    }

template <Isa isa>
struct Target {
    CATENA_TARGET_BODY()
};
#if defined(CATENA_X86)
template <>
struct Target<Isa::x86_64_v3> {
    CATENA_TARGET_BODY(CATENA_TARGET_V3)
};
template <>
struct Target<Isa::x86_64_v4> {
    CATENA_TARGET_BODY(CATENA_TARGET_V4)
};
#endif
#undef CATENA_TARGET_BODY

// A list of instruction sets. Isas is the list for which kernels are compiled: all, or the baseline
// and x86-64-vN if a build for one kind of machine defines CATENA_ISA_LEVEL as N.
template <Isa... isa>
struct IsaList {};
#if defined(CATENA_X86) && defined(CATENA_ISA_LEVEL) && CATENA_ISA_LEVEL == 4
using Isas = IsaList<Isa::baseline, Isa::x86_64_v4>;
#elif defined(CATENA_X86) && defined(CATENA_ISA_LEVEL) && CATENA_ISA_LEVEL == 3
using Isas = IsaList<Isa::baseline, Isa::x86_64_v3>;
#elif defined(CATENA_X86) && !defined(CATENA_ISA_LEVEL)
using Isas = IsaList<Isa::baseline, Isa::x86_64_v3, Isa::x86_64_v4>;
#else
using Isas = IsaList<Isa::baseline>;
#endif

}  // namespace catena::plugin
