// Channels of (N, C, rest...), on CUDA: several sums of each over all axes but 1, in one pass and in
// an order that depends on the shape alone; and maps with some numbers of each.
#pragma once

#include <catena/plugin/cuda/index.hpp>
#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>

#include "channels.hpp"

namespace catena::plugins {

// Elements that a thread takes at a time, 16 bytes at most.
template <class T>
inline constexpr int channel_width = sizeof(T) == 8 ? 2 : 4;

// Units of `width` elements, and who takes them: a Fold of (N, C, rest) to (C), walked along without
// divisions. In rows the elements of a unit are of one channel, in columns of channels side by side.
struct ChannelWalk {
    ChannelWalk(Shape x, int pack_width)
        : channels(x[1]), plane(size_of(x.subspan(2))), size(x[0] * plane) {
        const std::int64_t shape[] = {x[0], channels, plane};
        const auto summed = [](std::size_t d) { return d != 1; };
        cuda::Fold fold(Shape(shape), summed, pack_width);
        if (fold.inner % pack_width != 0) fold = cuda::Fold(Shape(shape), summed, 1);
        width = fold.width;
        rows = fold.rows;
        lanes = fold.reduced_lanes;
        units = fold.reduced_units;
        splits = fold.splits;
        per_split = fold.per_split;
        blocks = fold.blocks;
        run = rows != 0 ? static_cast<std::int64_t>(fold.packs.divisor()) : 1;
        by_run = cuda::Divider<std::uint64_t>(static_cast<std::uint64_t>(run));
        run_step = fold.reduced.n > 0 ? fold.reduced.stride[0] : 0;
        unit_step = rows != 0 ? width : 0;
        ahead = lanes % run;
        ahead_step = lanes / run * run_step + ahead * unit_step;
    }

    std::int64_t channels;
    std::int64_t plane;  // the step from a channel to the next
    std::int64_t size;   // elements of a channel
    std::int64_t units, splits, per_split;
    std::int64_t blocks;
    std::int64_t run;  // units that follow each other, unit_step apart; runs are run_step apart
    cuda::Divider<std::uint64_t> by_run;
    std::int64_t run_step, unit_step;
    std::int64_t ahead, ahead_step;  // a lane's next unit: along its run, and in elements
    std::int32_t width, rows, lanes;
    std::int32_t reserved = 0;  // no byte is left open
};

// What is summed is said by a rule:
//
//     using Input = Float16;                 // of its tensors
//     using Value = float;                   // what is computed in
//     static constexpr int n_in = 2;         // tensors
//     struct Column;                         // what it needs to know of a channel
//     struct State;                          // sums, of a part of a channel; all zero before the first
//     const Input* in(int k) const;
//     Column column(std::int64_t channel) const;
//     static void take(State&, const Column&, const Value (&x)[b][n_in], Value before, Value weight);
//     static void close(State&, int count);  // after so many elements
//     static State join(const State&, const State&);
//     void finish(std::int64_t channel, const State&) const;
//
// take() gets b elements, after `before` others; weight is b / (before + b).
template <class Rule>
struct ChannelSums {
    Rule rule;
    ChannelWalk walk;
    typename Rule::State* partial;  // of each channel and split; null with one split
    std::int64_t whole;             // units are aligned
};

template <class Rule, int w, int b>
__device__ __forceinline__ void take_units(const ChannelSums<Rule>& p, std::int64_t& at,
                                           std::int64_t& inside, int count,
                                           const typename Rule::Column (&column)[w],
                                           typename Rule::State (&state)[w]) {
    using C = typename Rule::Value;
    const ChannelWalk& walk = p.walk;
    C x[b][Rule::n_in][w];
    CATENA_UNROLL
    for (int i = 0; i < b; ++i) {
        CATENA_UNROLL
        for (int k = 0; k < Rule::n_in; ++k)
            cuda::load<w>(p.rule.in(k) + at, p.whole != 0, w, x[i][k]);
        at += walk.ahead_step;
        inside += walk.ahead;
        if (inside < walk.run) continue;
        inside -= walk.run;
        at += walk.run_step - walk.run * walk.unit_step;
    }
    const auto before = static_cast<C>(count);
    const C weight = static_cast<C>(b) / static_cast<C>(count + b);
    CATENA_UNROLL
    for (int j = 0; j < w; ++j) {
        C own[b][Rule::n_in];
        CATENA_UNROLL
        for (int i = 0; i < b; ++i) {
            CATENA_UNROLL
            for (int k = 0; k < Rule::n_in; ++k) own[i][k] = x[i][k][j];
        }
        Rule::take(state[j], column[j], own, before, weight);
    }
}

template <class Rule, int w>
__global__ void __launch_bounds__(cuda::block)
    channel_sums_kernel(const __grid_constant__ ChannelSums<Rule> p) {
    using State = typename Rule::State;
    __shared__ State shared[w * cuda::block];
    const ChannelWalk& walk = p.walk;
    const bool rows = walk.rows != 0;
    const auto t = static_cast<int>(threadIdx.x);
    const int side = cuda::block / walk.lanes;
    const int lane = rows ? t % walk.lanes : t / side;
    const std::int64_t place =
        (std::int64_t{blockIdx.x} * side + (rows ? t / walk.lanes : t % side)) * (rows ? 1 : w);
    const bool there = place < walk.channels;
    const std::int64_t channel = there ? place : 0;

    typename Rule::Column column[w];
    column[0] = p.rule.column(channel);
    CATENA_UNROLL
    for (int j = 1; j < w; ++j) column[j] = rows ? column[0] : p.rule.column(channel + j);

    const std::int64_t begin = blockIdx.y * walk.per_split;
    const std::int64_t end =
        begin + walk.per_split < walk.units ? begin + walk.per_split : walk.units;
    std::int64_t left = 0;  // units of this lane
    if (there && begin + lane < end) left = (end - begin - lane + walk.lanes - 1) / walk.lanes;
    const auto unit = static_cast<std::uint64_t>(begin + lane);
    const auto index = static_cast<std::int64_t>(walk.by_run.quotient(unit));
    std::int64_t inside = begin + lane - index * walk.run;
    std::int64_t at = channel * walk.plane + index * walk.run_step + inside * walk.unit_step;

    constexpr int batch = 4;  // loads on their way at the same time
    State state[w] = {};
    int count = 0;
    for (; left >= batch; left -= batch, count += batch)
        take_units<Rule, w, batch>(p, at, inside, count, column, state);
    for (; left > 0; --left, ++count) take_units<Rule, w, 1>(p, at, inside, count, column, state);
    CATENA_UNROLL
    for (int j = 0; j < w; ++j) Rule::close(state[j], count);

    // The elements of a unit are one sum in rows, sums side by side in columns.
    const int sums = rows ? 1 : w;
    if (rows) {
        CATENA_UNROLL
        for (int j = 1; j < w; ++j) state[0] = Rule::join(state[0], state[j]);
    }
    CATENA_UNROLL
    for (int j = 0; j < w; ++j)
        if (j < sums) shared[j * cuda::block + t] = state[j];
    const int step = rows ? 1 : side;
    for (int half = walk.lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane >= half) continue;
        for (int j = 0; j < sums; ++j) {
            State& own = shared[j * cuda::block + t];
            own = Rule::join(own, shared[j * cuda::block + t + half * step]);
        }
    }
    if (lane != 0 || !there) return;
    for (int j = 0; j < sums; ++j) {
        const State& sum = shared[j * cuda::block + t];
        if (p.partial == nullptr) p.rule.finish(channel + j, sum);
        else p.partial[(channel + j) * walk.splits + blockIdx.y] = sum;
    }
}

// Joins the parts of each channel: the work of a warp.
template <class Rule>
__global__ void __launch_bounds__(cuda::block)
    channel_parts_kernel(const __grid_constant__ ChannelSums<Rule> p) {
    using State = typename Rule::State;
    constexpr int lanes = 32;
    __shared__ State shared[cuda::block];
    const auto t = static_cast<int>(threadIdx.x);
    const int lane = t % lanes;
    const std::int64_t channel = std::int64_t{blockIdx.x} * (cuda::block / lanes) + t / lanes;
    const bool there = channel < p.walk.channels;
    State own = {};
    for (std::int64_t i = lane; there && i < p.walk.splits; i += lanes)
        own = Rule::join(own, p.partial[channel * p.walk.splits + i]);
    shared[t] = own;
    for (int half = lanes / 2; half > 0; half /= 2) {
        __syncwarp();
        if (lane < half) shared[t] = Rule::join(shared[t], shared[t + half]);
    }
    if (there && lane == 0) p.rule.finish(channel, shared[t]);
}

// Bytes of scratch that sum_channels() takes.
template <class Rule>
std::uint64_t channel_sums_bytes(const ChannelWalk& walk) {
    if (walk.splits == 1) return 0;
    return static_cast<std::uint64_t>(walk.channels * walk.splits) * sizeof(typename Rule::State);
}
// The rule's sums of all channels of a tensor that is not empty.
template <class Rule>
void sum_channels(const auto& call, const ChannelWalk& walk, const Rule& rule, void* scratch) {
    using T = typename Rule::Input;
    constexpr int w = channel_width<T>;
    auto* const partial = static_cast<typename Rule::State*>(scratch);
    ChannelSums<Rule> p = {rule, walk, walk.splits > 1 ? partial : nullptr, 1};
    for (int k = 0; k < Rule::n_in; ++k)
        if (!cuda::is_aligned<T, w>(rule.in(k))) p.whole = 0;
    const dim3 blocks(static_cast<unsigned>(walk.blocks), static_cast<unsigned>(walk.splits));
    if (walk.width == w) call.launch(&channel_sums_kernel<Rule, w>, blocks, cuda::block, p);
    else call.launch(&channel_sums_kernel<Rule, 1>, blocks, cuda::block, p);
    if (walk.splits == 1) return;
    const std::int64_t each = cuda::block / 32;
    call.launch(&channel_parts_kernel<Rule>,
                dim3(static_cast<unsigned>((walk.channels + each - 1) / each)), cuda::block, p);
}

// A map's units lie along an image, whatever its channels are. A thread keeps to its place and goes
// through images: it asks for a channel's numbers once.
struct ChannelMap {
    ChannelMap(Shape x, int width)
        : images(x[0]),
          plane(size_of(x.subspan(2))),
          image(x[1] * plane),
          units((image + width - 1) / width),
          by_plane(static_cast<std::uint64_t>(plane)) {
        constexpr std::int64_t enough = 2048;  // blocks
        while (across < cuda::block && across < units) across *= 2;
        blocks = std::min((units + across - 1) / across, 4 * enough);
        const std::int64_t lanes = cuda::block / across;
        const std::int64_t turns = (images + lanes - 1) / lanes;
        groups = std::clamp<std::int64_t>(enough / blocks, 1, turns);
        per_group = (turns + groups - 1) / groups * lanes;
        groups = (images + per_group - 1) / per_group;
    }
    std::int64_t images, plane, image, units;
    cuda::Divider<std::uint64_t> by_plane;
    std::int64_t across = 1;  // units side by side in a block
    std::int64_t blocks, groups, per_group;
};

// A rule here has Input, Value and n_in, Numbers of(channel) of a channel, and
// map(numbers, x) of an element of each tensor.
template <class Rule>
__global__ void __launch_bounds__(cuda::block)
    channel_map_kernel(const ChannelMap m, const Rule rule, typename Rule::Input* y, bool whole,
                       bool add) {
    using T = typename Rule::Input;
    using C = typename Rule::Value;
    constexpr int w = channel_width<T>;
    constexpr int batch = 2;  // images whose loads are on their way at the same time
    const auto across = static_cast<int>(m.across);
    const int lane = static_cast<int>(threadIdx.x) / across;
    const int lanes = cuda::block / across;
    const std::int64_t begin = blockIdx.y * m.per_group;
    const std::int64_t end = begin + m.per_group < m.images ? begin + m.per_group : m.images;
    for (std::int64_t u = blockIdx.x * m.across + static_cast<int>(threadIdx.x) % across;
         u < m.units; u += gridDim.x * m.across) {
        const std::int64_t first = u * w;
        const int count = m.image - first < w ? static_cast<int>(m.image - first) : w;
        auto channel =
            static_cast<std::int64_t>(m.by_plane.quotient(static_cast<std::uint64_t>(first)));
        std::int64_t inside = first - channel * m.plane;
        typename Rule::Numbers numbers[w];
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) {
            numbers[j] = j == 0 || (inside == 0 && j < count) ? rule.of(channel)
                                                              : numbers[j == 0 ? 0 : j - 1];
            if (++inside == m.plane) inside = 0, ++channel;
        }
        for (std::int64_t i = begin + lane; i < end; i += batch * lanes) {
            C x[batch][Rule::n_in][w];
            CATENA_UNROLL
            for (int b = 0; b < batch; ++b) {
                if (i + b * lanes >= end) continue;
                CATENA_UNROLL
                for (int k = 0; k < Rule::n_in; ++k)
                    cuda::load<w>(rule.in(k) + (i + b * lanes) * m.image + first, whole, count,
                                  x[b][k]);
            }
            CATENA_UNROLL
            for (int b = 0; b < batch; ++b) {
                if (i + b * lanes >= end) continue;
                C to[w];
                CATENA_UNROLL
                for (int j = 0; j < w; ++j) {
                    C from[Rule::n_in];
                    CATENA_UNROLL
                    for (int k = 0; k < Rule::n_in; ++k) from[k] = x[b][k][j];
                    to[j] = Rule::map(numbers[j], from);
                }
                cuda::store(y + (i + b * lanes) * m.image + first, whole, count, add, to);
            }
        }
    }
}
template <class Rule>
void map_channels(const auto& call, Shape shape, const Rule& rule, typename Rule::Input* y,
                  bool add) {
    using T = typename Rule::Input;
    constexpr int w = channel_width<T>;
    if (size_of(shape) == 0) return;
    const ChannelMap m(shape, w);
    bool whole = m.image % w == 0 && cuda::is_aligned<T, w>(y);
    for (int k = 0; k < Rule::n_in; ++k) whole = whole && cuda::is_aligned<T, w>(rule.in(k));
    call.launch(&channel_map_kernel<Rule>,
                dim3(static_cast<unsigned>(m.blocks), static_cast<unsigned>(m.groups)), cuda::block,
                m, rule, y, whole, add);
}

// What maps need of a channel.
template <class C>
struct alignas(16) ChannelNumbers {
    C centre, scale, shift, slope;
};

// y = (x - centre) * scale + shift, with numbers that are there, or by the statistics: centre is the
// mean and shift is beta, or 0 where those are null.
template <class T>
struct ChannelLine {
    using Input = T;
    using Value = cuda::Compute<T>;
    using Numbers = ChannelNumbers<Value>;
    static constexpr int n_in = 1;

    CATENA_FN const T* in(int) const { return x; }
    __device__ __forceinline__ Numbers of(std::int64_t c) const {
        using C = Value;
        if (numbers != nullptr) return numbers[c];
        const C scale = cuda::load_as<C>(gamma[c]) / math::sqrt(var[c] + static_cast<C>(eps));
        return {mean == nullptr ? C(0) : mean[c], scale,
                beta == nullptr ? C(0) : cuda::load_as<C>(beta[c]), C(0)};
    }
    static __device__ __forceinline__ Value map(const Numbers& n, const Value (&v)[1]) {
        return (v[0] - n.centre) * n.scale + n.shift;
    }

    const T* x;
    const Numbers* numbers = nullptr;
    const T* gamma = nullptr;
    const T* beta = nullptr;
    const Value* mean = nullptr;
    const Value* var = nullptr;
    double eps = 0;
};

// Sums of gy and of gy times the normal value, and the gradients of what a channel has one of.
template <class T>
struct ChannelGradients {
    using Input = T;
    using Value = cuda::Compute<T>;
    static constexpr int n_in = 2;
    struct Column {
        Value centre, inverse;
    };
    struct State {
        Value of_gy, of_normal;
    };

    CATENA_FN const T* in(int k) const { return k == 0 ? gy : x; }
    __device__ __forceinline__ Column column(std::int64_t c) const {
        return {mean[c], Value(1) / math::sqrt(var[c] + static_cast<Value>(eps))};
    }
    template <int b>
    static __device__ __forceinline__ void take(State& s, const Column& c,
                                                const Value (&v)[b][n_in], Value, Value) {
        State part = {0, 0};
        CATENA_UNROLL
        for (int i = 0; i < b; ++i) {
            part.of_gy += v[i][0];
            part.of_normal += v[i][0] * ((v[i][1] - c.centre) * c.inverse);
        }
        s = join(s, part);
    }
    static __device__ __forceinline__ void close(State&, int) {}
    static __device__ __forceinline__ State join(const State& a, const State& b) {
        return {a.of_gy + b.of_gy, a.of_normal + b.of_normal};
    }
    __device__ __forceinline__ void finish(std::int64_t c, const State& s) const {
        const double v = static_cast<double>(var[c]) + eps;
        const double inverse = 1 / math::sqrt(v);
        const auto g = cuda::load_as<double>(gamma[c]);
        const auto of_gy = static_cast<double>(s.of_gy);
        const auto of_normal = static_cast<double>(s.of_normal);
        put(ggamma, 1, c, of_normal);
        put(gbeta, 2, c, of_gy);
        put(gmean, 3, c, -of_gy * g * inverse);
        put(gvar, 4, c, -0.5 * of_normal * g / v);
        if (numbers == nullptr) return;
        numbers[c] = {mean[c], static_cast<Value>(g * inverse), static_cast<Value>(of_gy * share),
                      static_cast<Value>(of_normal * share * inverse)};
    }

    const T* gy;
    const T* x;
    const T* gamma;
    const Value* mean;
    const Value* var;
    T* ggamma;  // these are null where not wanted
    T* gbeta;
    Value* gmean;
    Value* gvar;
    ChannelNumbers<Value>* numbers;
    double eps, share;
    std::uint64_t adds;  // set of ports, as bits

private:
    template <class U>
    __device__ __forceinline__ void put(U* to, int port, std::int64_t c, double value) const {
        if (to == nullptr) return;
        to[c] = (adds >> port & 1) != 0 ? cuda::stored_sum(to[c], value) : cuda::store_as<U>(value);
    }
};

// The ports below n that are added to, as bits.
inline std::uint64_t added(const auto& call, std::size_t n) {
    std::uint64_t set = 0;
    for (std::size_t i = 0; i < n; ++i) set |= std::uint64_t{call.adds(i)} << i;
    return set;
}
// A call without gy, or without elements: gradients are zero.
template <class T>
void zero_unless_added(const auto& call, std::size_t i, Tensor<T> gx) {
    if (gx && !call.adds(i)) call.zero(gx);
}

}  // namespace catena::plugins
