// Axes in another order, on CUDA: through tiles in shared memory where the axis that is contiguous in
// x is another than y's, so that both sides are read and written in runs.
#pragma once

#include "strided.cuh"
#include "transpose.hpp"

namespace catena::plugins {

// Elements of a tile, several for each thread, and its room: a row has a word or so more than it
// needs, so that columns lie in different banks.
template <class T>
inline constexpr int tile_area = static_cast<int>(std::max<std::size_t>(1024, 4096 / sizeof(T)));
template <class T>
inline constexpr int tile_gap = static_cast<int>(std::max<std::size_t>(1, 4 / sizeof(T)));
template <class T>
inline constexpr int tile_room = 2 * tile_area<T>;

// Tiles have 2^long_bits elements along y's last axis ("long"), and 2^tall_bits along the axis that is
// contiguous in x ("tall").
template <class T>
struct Tiles {
    // Over tiles, and where each begins: in x, in y, along both axes.
    cuda::Walk<std::uint64_t, 4> walk;
    const T* x;
    T* y;
    std::int64_t count;
    std::int64_t length, height;  // of the axes
    std::int64_t x_step;          // from one element to the next along the long axis
    std::int64_t y_step;          // along the tall one
    std::int32_t long_bits, tall_bits;
    std::int32_t add, reserved;
};

template <class T>
__global__ void __launch_bounds__(cuda::block) tile_kernel(const __grid_constant__ Tiles<T> p) {
    constexpr int turns = tile_area<T> / cuda::block;
    // Rows of two, the shortest, take twice their room at most.
    static_assert(2 + tile_gap<T> <= 4);
    __shared__ T tile[tile_room<T>];
    const int pitch = (1 << p.tall_bits) + tile_gap<T>;
    for (std::int64_t n = blockIdx.x; n < p.count; n += gridDim.x) {
        std::int64_t at[4];
        p.walk.locate(static_cast<std::uint64_t>(n), at);
        const std::int64_t length = p.length - at[2];  // of what is left
        const std::int64_t height = p.height - at[3];
        T v[turns];
        CATENA_UNROLL
        for (int i = 0; i < turns; ++i) {
            const int e = i * cuda::block + static_cast<int>(threadIdx.x);
            const int along = e >> p.tall_bits;
            const int down = e & ((1 << p.tall_bits) - 1);
            if (along < length && down < height) v[i] = p.x[at[0] + along * p.x_step + down];
        }
        __syncthreads();  // the tile before has been read
        CATENA_UNROLL
        for (int i = 0; i < turns; ++i) {
            const int e = i * cuda::block + static_cast<int>(threadIdx.x);
            const int along = e >> p.tall_bits;
            const int down = e & ((1 << p.tall_bits) - 1);
            if (along < length && down < height) tile[along * pitch + down] = v[i];
        }
        __syncthreads();
        CATENA_UNROLL
        for (int i = 0; i < turns; ++i) {
            const int e = i * cuda::block + static_cast<int>(threadIdx.x);
            const int down = e >> p.long_bits;
            const int along = e & ((1 << p.long_bits) - 1);
            if (along >= length || down >= height) continue;
            const T x = tile[along * pitch + down];
            T& y = p.y[at[1] + down * p.y_step + along];
            y = p.add ? cuda::stored_sum(y, cuda::load_as<cuda::Compute<T>>(x)) : x;
        }
    }
}

// y = x, whose strides are given in the order of y's axes. No extent is 0.
template <class T>
void permute_on_device(const cuda::Queue& queue, Shape shape, const std::int64_t (*strides)[1],
                       const T* x, T* y, bool add) {
    StridedWalk axes;  // those of y, merged where they are neighbours in x, too
    axes.build_strided(shape, strides, 1);
    const int last = axes.n_axes - 1;
    int fast = last;
    for (int d = 0; d < last; ++d)
        if (axes.stride[d][0] < axes.stride[fast][0]) fast = d;
    constexpr std::int64_t least = 256;  // of a tile: else most of its threads had nothing to do
    if (fast == last || axes.extent[fast] * axes.extent[last] < least)
        return move_strided(queue, Direction::gather, shape, strides, x, y, add);

    std::int64_t steps[CATENA_MAX_NDIM];  // of y
    steps[last] = 1;
    for (int d = last; d-- > 0;) steps[d] = steps[d + 1] * axes.extent[d + 1];
    const auto bits = [](std::int64_t extent, int most) {
        return std::min(most,
                        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(extent - 1))));
    };
    constexpr int area = std::bit_width(unsigned{tile_area<T>}) - 1;
    constexpr int side = 5;
    const int half = bits(axes.extent[fast], side);
    const int long_bits = bits(axes.extent[last], area - half);
    const int tall_bits = bits(axes.extent[fast], area - long_bits);

    std::int64_t extents[CATENA_MAX_NDIM];
    std::int64_t starts[CATENA_MAX_NDIM][4] = {};
    for (int d = 0; d <= last; ++d) {
        const int shift = d == last ? long_bits : d == fast ? tall_bits : 0;
        const std::int64_t side_of = std::int64_t{1} << shift;
        extents[d] = (axes.extent[d] + side_of - 1) >> shift;
        starts[d][0] = axes.stride[d][0] * side_of;
        starts[d][1] = steps[d] * side_of;
    }
    starts[last][2] = std::int64_t{1} << long_bits;
    starts[fast][3] = std::int64_t{1} << tall_bits;
    const Shape tiles(extents, static_cast<std::size_t>(last + 1));
    Tiles<T> p = {.walk = {},
                  .x = x,
                  .y = y,
                  .count = size_of(tiles),
                  .length = axes.extent[last],
                  .height = axes.extent[fast],
                  .x_step = axes.stride[last][0],
                  .y_step = steps[fast],
                  .long_bits = long_bits,
                  .tall_bits = tall_bits,
                  .add = add,
                  .reserved = 0};
    p.walk.build_strided(tiles, starts, 1);
    queue.launch(&tile_kernel<T>, queue.grid(p.count * cuda::block), cuda::block, p);
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Transpose> {
    template <class T>
    static void forward(const auto& call) {
        permute(call, call.template x<T>(0), call.template y<T>(0), false);
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        if (const auto gy = call.template gy<T>(0)) permute(call, gy, gx, true);
        else if (!call.adds(0)) call.zero(gx);
    }

private:
    // y's axis d is x's axis axes[d]; the other way round if inverted.
    template <class T>
    static void permute(const auto& call, Tensor<const T> x, Tensor<T> y, bool inverted) {
        const std::size_t n = y.ndim();
        const Ints axes = call.template attr<"axes">();
        std::int64_t strides[CATENA_MAX_NDIM][1];
        for (std::size_t d = 0; d < n; ++d) {
            const std::size_t from = axes.empty() ? n - 1 - d : axis_index(axes[d], n);
            if (inverted) strides[from][0] = x.count(d + 1, n);
            else strides[d][0] = x.count(from + 1, n);
        }
        if (y.size() > 0)
            catena::plugins::permute_on_device(call.queue(), y.shape, strides, x.data, y.data,
                                               call.adds(0));
    }
};
