// Copies between a dense array and elements of another array at given strides, on CUDA.
// Permutations of axes are such copies.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "transpose.hpp"

namespace catena::plugins {

enum class Direction { gather, scatter };  // to the dense array, from the dense array

template <class T>
struct Strided {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t at = walk.locate(i);
        cuda::store(to[scatters ? at : i], add != 0,
                    cuda::load_as<cuda::Compute<T>>(from[scatters ? i : at]));
    }
    cuda::Walk<1> walk;  // from indices of the dense array to offsets in the other
    const T* from;
    T* to;
    std::int32_t scatters, add;
};

// A transposition in tiles of 32 x 32 elements: reads adjacent elements along the axis `across`, and
// writes adjacent elements along the last axis of `to`.
template <class T>
struct Tiles {
    cuda::Walk<2> others;        // the other axes: offsets in from and to
    cuda::Divider tiles, lines;  // numbers of tiles along the last axis, and along `across`
    std::int64_t last, across;   // extents
    std::int64_t from_step;      // of the last axis in from
    std::int64_t to_step;        // of `across` in to
    const T* from;
    T* to;
    std::int64_t add;
};
inline constexpr int tile_side = 32;
template <class T>
__global__ void __launch_bounds__(cuda::block) tile_kernel(const __grid_constant__ Tiles<T> p) {
    __shared__ T tile[tile_side][tile_side + 1];  // a column more, so that columns use all banks
    constexpr int rows = cuda::block / tile_side;
    const int column = static_cast<int>(threadIdx.x) % tile_side;
    const int first = static_cast<int>(threadIdx.x) / tile_side;
    const std::uint64_t line = p.tiles.quotient(blockIdx.x), other = p.lines.quotient(line);
    const auto j = static_cast<std::int64_t>(blockIdx.x - line * p.tiles.divisor()) * tile_side;
    const auto i = static_cast<std::int64_t>(line - other * p.lines.divisor()) * tile_side;
    std::int64_t at[2];
    p.others.locate(static_cast<std::int64_t>(other), at);
    for (int row = first; row < tile_side; row += rows)
        if (i + column < p.across && j + row < p.last)
            tile[row][column] = p.from[at[0] + i + column + (j + row) * p.from_step];
    __syncthreads();
    for (int row = first; row < tile_side; row += rows)
        if (i + row < p.across && j + column < p.last)
            cuda::store(p.to[at[1] + (i + row) * p.to_step + j + column], p.add != 0,
                        cuda::load_as<cuda::Compute<T>>(tile[column][row]));
}
// Copies by tiles if walk, from indices of `to` to offsets in `from`, has a suitable axis. Returns
// whether it did.
template <class T>
bool move_tiles(const cuda::Queue& queue, const cuda::Walk<1>& walk, const T* from, T* to,
                bool add) {
    constexpr std::int64_t least = tile_side / 2;  // of shorter axes, tiles would be mostly empty
    const int last = walk.n_axes - 1;
    const auto extent = [&](int d) { return static_cast<std::int64_t>(walk.extent[d].divisor()); };
    int across = 0;
    while (across < last && walk.stride[across][0] != 1) ++across;
    if (across >= last || extent(across) < least || extent(last) < least) return false;
    Tiles<T> p = {
        .last = extent(last), .across = extent(across), .from = from, .to = to, .add = add};
    p.from_step = walk.stride[last][0];
    std::int64_t shape[CATENA_MAX_NDIM] = {1}, strides[CATENA_MAX_NDIM][2] = {};
    std::size_t n = static_cast<std::size_t>(last - 1), free = n;
    std::int64_t step = 1;
    for (int d = last; d >= 0; step *= extent(d), --d) {
        if (d == across) p.to_step = step;
        if (d == across || d == last) continue;
        shape[--free] = extent(d);
        strides[free][0] = walk.stride[d][0];
        strides[free][1] = step;
    }
    p.others.build_strided(Shape(shape, n), strides);
    const std::int64_t tiles = (p.last + tile_side - 1) / tile_side;
    const std::int64_t lines = (p.across + tile_side - 1) / tile_side;
    p.tiles = cuda::Divider(static_cast<std::uint64_t>(tiles));
    p.lines = cuda::Divider(static_cast<std::uint64_t>(lines));
    queue.launch(&tile_kernel<T>, dim3(static_cast<unsigned>(tiles * lines * p.others.size)),
                 cuda::block, p);
    return true;
}

// Copies or adds elements between a dense array of `shape` and another array, where strides[d] is
// the distance between neighbours along axis d, in elements. No extent may be 0.
template <class T>
void move_strided(const cuda::Queue& queue, Direction direction, Shape shape,
                  const std::int64_t* strides, const T* from, T* to, bool add) {
    Strided<T> p = {{}, from, to, direction == Direction::scatter, add};
    std::int64_t of_operand[CATENA_MAX_NDIM][1];
    for (std::size_t d = 0; d < shape.size(); ++d) of_operand[d][0] = strides[d];
    p.walk.build_strided(shape, of_operand);
    if (direction == Direction::gather && move_tiles(queue, p.walk, from, to, add)) return;
    cuda::each(queue, p.walk.size, p);
}

template <class F, class T>
void permute(const cuda::Call<F>& call, Tensor<const T> x, Tensor<T> y, bool inverted, bool add) {
    std::int64_t strides[CATENA_MAX_NDIM];
    permuted_strides(call, x, inverted, strides);
    if (y.size() > 0)
        move_strided(call.queue(), Direction::gather, y.shape, strides, x.data, y.data, add);
}

}  // namespace catena::plugins
