// Elements of four dtypes, as the emulated kernels read and write them.
#pragma once

#include <catena/plugin/half.hpp>

namespace stand_in {

using catena::plugin::BFloat16;
using catena::plugin::Float16;

inline float load(float x) { return x; }
inline double load(double x) { return x; }
inline float load(Float16 x) { return catena::plugin::to_float(x); }
inline float load(BFloat16 x) { return catena::plugin::to_float(x); }
inline void store(float* place, float x) { *place = x; }
inline void store(double* place, double x) { *place = x; }
inline void store(Float16* place, float x) { *place = catena::plugin::to_float16(x); }
inline void store(BFloat16* place, float x) { *place = catena::plugin::to_bfloat16(x); }

}  // namespace stand_in
