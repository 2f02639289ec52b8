/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_PHILOX_H
#define CATENA_ABI_PHILOX_H
#include <stdint.h>
#if defined(__cplusplus) && __cplusplus >= 202002L
#define CATENA_PHILOX __attribute__((always_inline)) constexpr
#else
#define CATENA_PHILOX static inline
#endif
CATENA_PHILOX void catena_philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3,
                                       uint32_t k0, uint32_t k1) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * *c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * *c2;
    *c0 = (uint32_t)(p1 >> 32) ^ *c1 ^ k0;
    *c2 = (uint32_t)(p0 >> 32) ^ *c3 ^ k1;
    *c1 = (uint32_t)p1;
    *c3 = (uint32_t)p0;
}
#define CATENA_PHILOX_STEP_0 0x9E3779B9u
#define CATENA_PHILOX_STEP_1 0xBB67AE85u
CATENA_PHILOX void catena_philox(uint64_t key, uint64_t counter, uint64_t upper, uint32_t out[4]) {
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    out[0] = (uint32_t)counter;
    out[1] = (uint32_t)(counter >> 32);
    out[2] = (uint32_t)upper;
    out[3] = (uint32_t)(upper >> 32);
    for (int round = 0; round < 10; ++round) {
        catena_philox_round(&out[0], &out[1], &out[2], &out[3], k0, k1);
        k0 += CATENA_PHILOX_STEP_0;
        k1 += CATENA_PHILOX_STEP_1;
    }
}
#undef CATENA_PHILOX
#endif
