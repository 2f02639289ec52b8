// Arrays joined along an axis, and parted again, on CUDA: many of them in one launch.
#pragma once

#include <catena/plugin/cuda/index.hpp>
#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>

#include "concat.hpp"

namespace catena::plugins {

// Rows that lie `from_pitch` elements apart, and go where they lie `to_pitch` apart.
template <class T>
struct Piece {
    const T* from;
    T* to;
    std::int64_t from_pitch, to_pitch;
    std::int64_t columns;
    cuda::Divider<std::uint32_t> per_row;  // units in a row: packs, or elements
    std::uint32_t units;
    std::uint32_t first_block;  // of those that work on it
    std::uint32_t packed;
    std::uint32_t add;
    std::uint32_t reserved;
    // Joining: the piece's end along the axis goes to *ends. Parting: it is read there, and the piece
    // begins as far beyond `from`.
    std::int64_t* ends;
    std::int64_t end;     // joining
    std::int64_t extent;  // parting: along the axis
    std::int64_t inner;   // elements of a step along the axis
};
template <class T>
struct Pieces {
    static constexpr int most = 32;  // parameters of a kernel are 4 KiB at most

    std::int32_t n;
    std::int32_t parts;  // what was joined
    Piece<T> piece[most];
};

template <class T>
__global__ void __launch_bounds__(cuda::block)
    piece_kernel(const __grid_constant__ Pieces<T> pieces) {
    using C = cuda::Compute<T>;
    constexpr int w = cuda::pack_width<T>();
    int k = 0;
    for (int above = pieces.n; above - k > 1;) {
        const int middle = (k + above) / 2;
        if (pieces.piece[middle].first_block <= blockIdx.x) k = middle;
        else above = middle;
    }
    const Piece<T>& p = pieces.piece[k];
    const std::uint32_t blocks =
        (k + 1 < pieces.n ? pieces.piece[k + 1].first_block : gridDim.x) - p.first_block;
    const std::uint32_t own = blockIdx.x - p.first_block;
    std::int64_t begin = 0;
    if (pieces.parts) begin = (*p.ends - p.extent) * p.inner;
    else if (own == 0 && threadIdx.x == 0) *p.ends = p.end;
    const T* const x = p.from + begin;
    C v[w];
    if (p.packed) {
        const bool aligned = begin % w == 0;
        for (std::uint32_t u = own * cuda::block + threadIdx.x; u < p.units;
             u += blocks * cuda::block) {
            const std::uint32_t row = p.per_row.quotient(u);
            const std::int64_t column =
                static_cast<std::int64_t>(u - row * p.per_row.divisor()) * w;
            const int count = p.columns - column < w ? static_cast<int>(p.columns - column) : w;
            cuda::load<w>(x + row * p.from_pitch + column, aligned && count == w, count, v);
            cuda::store(p.to + row * p.to_pitch + column, count == w, count, p.add != 0, v);
        }
        return;
    }
    // A thread's elements lie beside those of the next thread.
    for (std::uint32_t u = own * cuda::block * w + threadIdx.x; u < p.units;
         u += blocks * cuda::block * w) {
        T* to[w];
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) {
            const std::uint32_t e = u + j * cuda::block;
            if (e >= p.units) continue;
            const std::uint32_t row = p.per_row.quotient(e);
            const std::uint32_t column = e - row * p.per_row.divisor();
            to[j] = p.to + (row * p.to_pitch + column);
            v[j] = cuda::load_as<C>(x[row * p.from_pitch + column]);
        }
        CATENA_UNROLL
        for (int j = 0; j < w; ++j)
            if (u + j * cuda::block < p.units)
                *to[j] = p.add ? cuda::stored_sum(*to[j], v[j]) : cuda::store_as<T>(v[j]);
    }
}

// Pieces that are launched as soon as there is no room for more, and at the end.
template <class T>
class PieceQueue {
public:
    PieceQueue(const cuda::Queue& queue, bool parts) : queue_(queue) { pieces_.parts = parts; }

    // p: with its pointers, pitches and ends. Units are counted in 32 bits: what has more of them goes
    // in several pieces.
    void add(Piece<T> p, std::int64_t rows, std::int64_t columns) {
        constexpr std::int64_t most = std::int64_t{1} << 30;
        if (rows * columns == 0) return push(p, 0, columns);
        const std::int64_t tall = std::max<std::int64_t>(most / columns, 1);
        for (std::int64_t row = 0; row < rows; row += tall)
            for (std::int64_t column = 0; column < columns; column += most) {
                Piece<T> part = p;
                part.from += row * p.from_pitch + column;
                part.to += row * p.to_pitch + column;
                push(part, std::min(tall, rows - row), std::min(most, columns - column));
            }
    }
    void launch() {
        if (pieces_.n == 0) return;
        queue_.launch(&piece_kernel<T>, dim3(blocks_), cuda::block, pieces_);
        pieces_.n = 0;
        blocks_ = 0;
    }

private:
    void push(Piece<T> p, std::int64_t rows, std::int64_t columns) {
        constexpr int w = cuda::pack_width<T>();
        const bool packed =
            cuda::is_aligned<T, w>(p.from) && cuda::is_aligned<T, w>(p.to) &&
            (rows <= 1 || (columns % w == 0 && p.from_pitch % w == 0 && p.to_pitch % w == 0));
        const std::int64_t per_row = packed ? (columns + w - 1) / w : columns;
        p.columns = columns;
        p.per_row = cuda::Divider<std::uint32_t>(
            static_cast<std::uint32_t>(std::max<std::int64_t>(per_row, 1)));
        p.units = static_cast<std::uint32_t>(rows * per_row);
        p.packed = packed;
        p.first_block = blocks_;
        blocks_ += queue_.grid(packed ? p.units : (p.units + w - 1) / w).x;
        pieces_.piece[pieces_.n++] = p;
        if (pieces_.n == Pieces<T>::most) launch();
    }

    const cuda::Queue& queue_;
    unsigned blocks_ = 0;
    Pieces<T> pieces_ = {};
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Concat> {
    template <class T, class>
    static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        std::int64_t* const ends = call.template y<std::int64_t>(1).data;
        const std::size_t axis = axis_index(call.template attr<"axis">(), y.ndim());
        const std::int64_t inner = y.count(axis + 1, y.ndim());
        catena::plugins::PieceQueue<T> pieces(call.queue(), false);
        std::int64_t end = 0;
        for (std::size_t i = 0; i < call.raw().n_x; ++i) {
            const auto x = call.template x<T>(i);
            catena::plugins::Piece<T> p = {};
            p.from = x.data;
            p.to = y.data + end * inner;
            p.from_pitch = x.dim(axis) * inner;
            p.to_pitch = y.dim(axis) * inner;
            p.add = call.adds(0);
            p.ends = ends + i;
            p.end = end += x.dim(axis);
            pieces.add(p, y.count(0, axis), p.from_pitch);
        }
        pieces.launch();
    }
    // Where the inputs begin is known to the device alone: of those whose gradient nobody wants there
    // is no shape.
    template <class T, class>
    static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        std::int64_t* const ends = call.template y<std::int64_t>(1).data;
        catena::plugins::PieceQueue<T> pieces(call.queue(), true);
        for (std::size_t i = 0; i < call.raw().n_x; ++i) {
            const auto gx = call.template gx<T>(i);
            if (!gx || gx.size() == 0) continue;
            if (!gy) {
                if (!call.adds(i)) call.zero(gx);
                continue;
            }
            const std::size_t axis = axis_index(call.template attr<"axis">(), gx.ndim());
            catena::plugins::Piece<T> p = {};
            p.inner = gx.count(axis + 1, gx.ndim());
            p.extent = gx.dim(axis);
            p.from = gy.data;
            p.to = gx.data;
            p.from_pitch = gy.dim(axis) * p.inner;
            p.to_pitch = gx.dim(axis) * p.inner;
            p.add = call.adds(i);
            p.ends = ends + i;
            pieces.add(p, gx.count(0, axis), p.to_pitch);
        }
        pieces.launch();
    }
};
