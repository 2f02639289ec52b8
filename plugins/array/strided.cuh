// Elements moved between a dense array and places of another one that strides say, on CUDA.
#pragma once

#include <catena/plugin/cuda/index.hpp>
#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>

namespace catena::plugins {

using namespace catena::plugin;

enum class Direction { gather, scatter };  // into the dense array, out of it
using StridedWalk = cuda::Walk<std::uint32_t, 1>;

template <class T>
struct Strided {
    StridedWalk walk;  // over the dense array; its operand is the other one
    const T* from;
    T* to;
    std::uint32_t units;
    std::uint32_t scatters;
    std::uint32_t packed;
    std::uint32_t add;
};

// A thread takes a pack where both sides allow it. Else it takes as many elements, each beside that
// of the next thread, so that their loads are on their way together.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    strided_kernel(const __grid_constant__ Strided<T> p) {
    using C = cuda::Compute<T>;
    constexpr int w = cuda::pack_width<T>();
    const auto move = [&](const auto& unit, std::int64_t& from, std::int64_t& to) {
        from = p.scatters ? unit.first : unit.at[0];
        to = p.scatters ? unit.at[0] : unit.first;
    };
    C v[w];
    if (p.packed) {
        for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < p.units;
             u += gridDim.x * cuda::block) {
            const auto unit = p.walk.locate(u);
            std::int64_t from, to;
            move(unit, from, to);
            cuda::load<w>(p.from + from, unit.count == w, unit.count, v);
            cuda::store(p.to + to, unit.count == w, unit.count, p.add != 0, v);
        }
        return;
    }
    for (std::uint32_t u = blockIdx.x * cuda::block * w + threadIdx.x; u < p.units;
         u += gridDim.x * cuda::block * w) {
        std::int64_t to[w];
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) {
            if (u + j * cuda::block >= p.units) continue;
            std::int64_t from;
            move(p.walk.locate(u + j * cuda::block), from, to[j]);
            v[j] = cuda::load_as<C>(p.from[from]);
        }
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) {
            if (u + j * cuda::block >= p.units) continue;
            T& y = p.to[to[j]];
            y = p.add ? cuda::stored_sum(y, v[j]) : cuda::store_as<T>(v[j]);
        }
    }
}

// Whether packs of `width` elements lie side by side in both arrays.
inline bool strides_allow(const StridedWalk& walk, int width) {
    const int last = walk.n_axes - 1;
    if (last < 0 || walk.stride[last][0] != 1) return false;
    for (int d = 0; d < last; ++d)
        if (walk.stride[d][0] % width != 0) return false;
    return last == 0 || walk.extent[last] % width == 0;  // a single run may have a tail
}

// The elements of a dense array of `shape` come from, or go to, places of another one: strides[d] is
// how far apart they are there along axis d, in elements. No extent is 0.
template <class T>
void move_strided(const cuda::Queue& queue, Direction direction, Shape shape,
                  const std::int64_t (*strides)[1], const T* from, T* to, bool add) {
    constexpr int w = cuda::pack_width<T>();
    StridedWalk walk;
    walk.build_strided(shape, strides, w);
    const bool packed =
        strides_allow(walk, w) && cuda::is_aligned<T, w>(from) && cuda::is_aligned<T, w>(to);
    if (!packed) walk.build_strided(shape, strides, 1);
    walk.for_each_part([&](const StridedWalk& part, std::int64_t first, const auto& at) {
        const bool scatters = direction == Direction::scatter;
        const Strided<T> p = {.walk = part,
                              .from = from + (scatters ? first : at[0]),
                              .to = to + (scatters ? at[0] : first),
                              .units = static_cast<std::uint32_t>(part.units()),
                              .scatters = scatters,
                              .packed = packed,
                              .add = add};
        queue.launch(&strided_kernel<T>, queue.grid(packed ? p.units : (p.units + w - 1) / w),
                     cuda::block, p);
    });
}

}  // namespace catena::plugins
