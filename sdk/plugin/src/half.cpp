// Conversions between halves and float32 for each instruction set.
#include "catena/plugin/half.hpp"

#if defined(CATENA_X86)
#include <immintrin.h>
#endif

namespace catena::plugin {

namespace detail {

template <class Half>
struct HalfLoops {
    CATENA_KERNEL static void run(const Half* from, float* to, std::int64_t n) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
    }
    CATENA_KERNEL static void run(const float* from, Half* to, std::int64_t n) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = to_half<Half>(from[i]);
    }
};

}  // namespace detail

template <Isa isa, class From, class To>
void convert_halves(const From* from, To* to, std::int64_t n) {
    using Half = std::conditional_t<std::is_same_v<From, float>, To, From>;
    Target<isa>::template call<detail::HalfLoops<Half>, const From*, To*, std::int64_t>(from, to,
                                                                                        n);
}

#if defined(CATENA_X86)
template <>
CATENA_TARGET_V3 void convert_halves<Isa::x86_64_v3>(const Float16* from, float* to,
                                                     std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    for (; i < n; ++i) to[i] = to_float(from[i]);
}
template <>
CATENA_TARGET_V3 void convert_halves<Isa::x86_64_v3>(const float* from, Float16* to,
                                                     std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; ++i) to[i] = to_float16(from[i]);
}
template <>
CATENA_TARGET_V4 void convert_halves<Isa::x86_64_v4>(const Float16* from, float* to,
                                                     std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 16) {
        const auto mask = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
        _mm512_mask_storeu_ps(
            to + i, mask, _mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, from + i)));
    }
}
template <>
CATENA_TARGET_V4 void convert_halves<Isa::x86_64_v4>(const float* from, Float16* to,
                                                     std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 16) {
        const auto mask = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
        _mm256_mask_storeu_epi16(to + i, mask,
                                 _mm512_maskz_cvtps_ph(mask, _mm512_maskz_loadu_ps(mask, from + i),
                                                       _MM_FROUND_TO_NEAREST_INT));
    }
}
#endif

#define CATENA_CONVERT(isa)                                                        \
    template void convert_halves<Isa::isa>(const Float16*, float*, std::int64_t);  \
    template void convert_halves<Isa::isa>(const BFloat16*, float*, std::int64_t); \
    template void convert_halves<Isa::isa>(const float*, Float16*, std::int64_t);  \
    template void convert_halves<Isa::isa>(const float*, BFloat16*, std::int64_t);
CATENA_CONVERT(baseline)
#if defined(CATENA_X86)
CATENA_CONVERT(x86_64_v3)
CATENA_CONVERT(x86_64_v4)
#endif

}  // namespace catena::plugin
