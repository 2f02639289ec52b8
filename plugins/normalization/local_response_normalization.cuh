// Normalisation by the neighbouring channels, on CUDA: a thread for a pixel, which runs along its
// channels. Sums are never what is left of larger ones: a NaN or a huge value does not leave its
// window.
#pragma once

#include <catena/plugin/cuda/index.hpp>
#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>

#include "local_response_normalization.hpp"

namespace catena::plugins {

// The pixels of (N, C, rest), and how many of the channels a thread takes.
struct PixelRuns {
    PixelRuns(Shape x, std::int64_t n)
        : images(x[0]), channels(x[1]), rest(size_of(x.subspan(2))), reach(n / 2) {
        constexpr std::int64_t enough = 1 << 17;  // threads
        constexpr std::int64_t least = 16;        // channels, beside those of the neighbours
        const std::int64_t pixels = images * rest;
        chunk = channels;
        if (pixels == 0 || !is_near()) return;
        const std::int64_t chunks = std::clamp<std::int64_t>(
            enough / pixels, 1, std::max<std::int64_t>(channels / least, 1));
        chunk = std::max<std::int64_t>((channels + chunks - 1) / chunks, 1);
    }
    // Windows that fit in registers. Others are of a few sums in scratch, whatever their size is.
    bool is_near() const { return reach == near; }
    std::int64_t size() const { return images * channels * rest; }
    // Bytes of so many arrays in scratch.
    template <class T>
    std::uint64_t bytes(std::int64_t arrays) const {
        return is_near() ? 0 : static_cast<std::uint64_t>(arrays * size()) * sizeof(T);
    }
    template <class... P, class... A>
    void launch(const auto& call, void (*kernel)(P...), const A&... arguments) const {
        if (size() == 0) return;
        cuda::for_each_box(images, (channels + chunk - 1) / chunk, rest, [&](const cuda::Box& box) {
            call.launch_for(box.places, kernel, *this, box, arguments...);
        });
    }
    static constexpr int near = 2;

    std::int64_t images, channels, rest;
    std::int64_t reach;  // channels on either side
    std::int64_t chunk;
};

// A rule gives what is summed, and what comes of a value and the sum around it.
template <class C>
struct PlainSum {
    static __device__ __forceinline__ C term(C v) { return v; }
    __device__ __forceinline__ C value(C, C sum) const { return sum; }
    std::int64_t reserved = 0;
};
template <class C>
struct Response {
    static __device__ __forceinline__ C term(C v) { return v * v; }
    __device__ __forceinline__ C unit(C sum) const { return k + alpha * sum; }
    __device__ __forceinline__ C power(C unit) const {
        return quick != 0 ? ThreeQuarters()(unit, beta) : AnyPower()(unit, beta);
    }
    __device__ __forceinline__ C value(C v, C sum) const { return v * power(unit(sum)); }
    C k, alpha, beta, slope;
    std::int64_t quick;
};

// The values of a window, of zeros beyond the channels.
template <class C, int reach>
struct Ring {
    __device__ __forceinline__ void push(C next) {
        CATENA_UNROLL
        for (int k = 0; k < 2 * reach; ++k) v[k] = v[k + 1];
        v[2 * reach] = next;
    }
    template <class Term>
    __device__ __forceinline__ C sum(const Term& term) const {
        C total = term(v[0]);
        CATENA_UNROLL
        for (int k = 1; k < 2 * reach + 1; ++k) total += term(v[k]);
        return total;
    }
    C v[2 * reach + 1] = {};
};
template <class C, class T>
__device__ __forceinline__ C channel_or_zero(const PixelRuns& g, const T* pixel, std::int64_t c) {
    return c >= 0 && c < g.channels ? cuda::load_as<C>(pixel[c * g.rest]) : C(0);
}
template <class T, class C>
__device__ __forceinline__ void put_channel(T* to, bool add, C value) {
    *to = add ? cuda::stored_sum(*to, value) : cuda::store_as<T>(value);
}

// y = what the rule makes of each window of x, or added to y.
template <class Rule, class T>
__global__ void __launch_bounds__(cuda::block)
    near_channels_kernel(const PixelRuns g, const cuda::Box box, const Rule rule, const T* x, T* y,
                         bool add) {
    using C = cuda::Compute<T>;
    constexpr int reach = PixelRuns::near;
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto place = box.locate(u);
        const std::int64_t at = place.plane * g.channels * g.rest + place.column;
        const std::int64_t begin = place.row * g.chunk;
        const std::int64_t end = begin + g.chunk < g.channels ? begin + g.chunk : g.channels;
        Ring<C, reach> ring;
        CATENA_UNROLL
        for (int k = -reach; k < reach; ++k) ring.push(channel_or_zero<C>(g, x + at, begin + k));
        for (std::int64_t c = begin; c < end; ++c) {
            ring.push(channel_or_zero<C>(g, x + at, c + reach));
            const C sum = ring.sum(&Rule::term);
            put_channel(y + at + c * g.rest, add, rule.value(ring.v[reach], sum));
        }
    }
}
// gx = gy unit^-beta - slope x (sum of x gy unit^(-beta - 1) over the neighbours).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    near_response_gradient_kernel(const PixelRuns g, const cuda::Box box,
                                  const Response<cuda::Compute<T>> rule, const T* x, const T* gy,
                                  T* gx, bool add) {
    using C = cuda::Compute<T>;
    using Rule = Response<C>;
    constexpr int reach = PixelRuns::near;
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto place = box.locate(u);
        const std::int64_t at = place.plane * g.channels * g.rest + place.column;
        const std::int64_t begin = place.row * g.chunk;
        const std::int64_t end = begin + g.chunk < g.channels ? begin + g.chunk : g.channels;
        // Around channel d: x, and what all but the last `reach` of these give to channel d - reach.
        Ring<C, reach> values;
        Ring<C, reach> inner;
        Ring<C, reach> scaled;
        CATENA_UNROLL
        for (int k = -2 * reach; k < 0; ++k) values.push(channel_or_zero<C>(g, x + at, begin + k));
        for (std::int64_t d = begin - reach; d < end + reach; ++d) {
            values.push(channel_or_zero<C>(g, x + at, d + reach));
            C of_d = 0;
            C inner_of_d = 0;
            if (d >= 0 && d < g.channels) {
                const C unit = rule.unit(values.sum(&Rule::term));
                of_d = cuda::load_as<C>(gy[at + d * g.rest]) * rule.power(unit);
                inner_of_d = values.v[reach] * of_d / unit;
            }
            scaled.push(of_d);
            inner.push(inner_of_d);
            const std::int64_t c = d - reach;
            if (c < begin) continue;
            const C sum = inner.sum(&PlainSum<C>::term);
            put_channel(gx + at + c * g.rest, add,
                        scaled.v[reach] - rule.slope * values.v[0] * sum);
        }
    }
}

// Windows of any size, with two additions for each: channels are cut into blocks as long as a window,
// which is the end of one block and the beginning of the next. The ends' sums are in scratch.
template <class C>
struct BlockSums {
    __device__ __forceinline__ BlockSums(const PixelRuns& g, C* scratch)
        : length(2 * g.reach + 1), ends(scratch) {}

    // The sums of f(channel) to the end of its block, of all channels.
    template <class F>
    __device__ __forceinline__ void prepare(const PixelRuns& g, const F& f) {
        std::int64_t place = (g.channels - 1) % length;
        C sum = 0;
        for (std::int64_t c = g.channels - 1; c >= 0; --c) {
            sum += f(c);
            ends[c * g.rest] = sum;
            if (place-- > 0) continue;
            place = length - 1;
            sum = 0;
        }
        last = g.reach - 1;
        begun = 0;
        for (std::int64_t c = 0; c < g.reach && c < g.channels; ++c) begun += f(c);
    }
    // The sum around channel c; of all channels, one after the other.
    template <class F>
    __device__ __forceinline__ C next(const PixelRuns& g, std::int64_t c, const F& f) {
        if (++last == length) last = 0, begun = 0;
        if (c + g.reach < g.channels) begun += f(c + g.reach);
        const bool whole = last == length - 1;  // or cut off at channel 0
        return whole || c <= g.reach ? begun : ends[(c - g.reach) * g.rest] + begun;
    }

    std::int64_t length;
    C* ends;
    C begun = 0;            // the sum from the beginning of the block
    std::int64_t last = 0;  // the window's last channel, in its block
};

template <class Rule, class T>
__global__ void __launch_bounds__(cuda::block)
    far_channels_kernel(const PixelRuns g, const cuda::Box box, const Rule rule, const T* x, T* y,
                        bool add, cuda::Compute<T>* ends) {
    using C = cuda::Compute<T>;
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto place = box.locate(u);
        const std::int64_t at = place.plane * g.channels * g.rest + place.column;
        const auto value = [&](std::int64_t c) { return cuda::load_as<C>(x[at + c * g.rest]); };
        const auto term = [&](std::int64_t c) { return Rule::term(value(c)); };
        BlockSums<C> sums(g, ends + at);
        sums.prepare(g, term);
        for (std::int64_t c = 0; c < g.channels; ++c)
            put_channel(y + at + c * g.rest, add, rule.value(value(c), sums.next(g, c, term)));
    }
}
// scaled, inner: as above, of all channels.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    far_response_gradient_kernel(const PixelRuns g, const cuda::Box box,
                                 const Response<cuda::Compute<T>> rule, const T* x, const T* gy,
                                 T* gx, bool add, cuda::Compute<T>* ends, cuda::Compute<T>* scaled,
                                 cuda::Compute<T>* inner) {
    using C = cuda::Compute<T>;
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto place = box.locate(u);
        const std::int64_t at = place.plane * g.channels * g.rest + place.column;
        const auto value = [&](std::int64_t c) { return cuda::load_as<C>(x[at + c * g.rest]); };
        const auto square = [&](std::int64_t c) { return value(c) * value(c); };
        BlockSums<C> squares(g, ends + at);
        squares.prepare(g, square);
        for (std::int64_t c = 0; c < g.channels; ++c) {
            const std::int64_t i = at + c * g.rest;
            const C unit = rule.unit(squares.next(g, c, square));
            const C of_c = cuda::load_as<C>(gy[i]) * rule.power(unit);
            scaled[i] = of_c;
            inner[i] = value(c) * of_c / unit;
        }
        const auto given = [&](std::int64_t c) { return inner[at + c * g.rest]; };
        BlockSums<C> sums(g, ends + at);
        sums.prepare(g, given);
        for (std::int64_t c = 0; c < g.channels; ++c) {
            const std::int64_t i = at + c * g.rest;
            put_channel(gx + i, add, scaled[i] - rule.slope * value(c) * sums.next(g, c, given));
        }
    }
}

// y = the rule's values, or added to y; scratch has PixelRuns::bytes(1).
template <class Rule, class T>
void map_windows(const auto& call, const PixelRuns& g, const Rule& rule, const T* x, T* y,
                 bool add) {
    if (g.is_near()) g.launch(call, &near_channels_kernel<Rule, T>, rule, x, y, add);
    else
        g.launch(call, &far_channels_kernel<Rule, T>, rule, x, y, add,
                 call.template scratch<cuda::Compute<T>>());
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ChannelWindowSum> {
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const bool forward = call.raw().phase == CATENA_PHASE_FORWARD;
        plan.scratch_bytes = runs(call, shape_of(forward ? *call.raw().y[0] : *call.raw().gx[0]))
                                 .template bytes<Compute<T>>(1);
    }
    template <class T>
    static void forward(const auto& call) {
        apply(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        if (const auto gy = call.template gy<T>(0)) apply(call, gy, gx);
        else if (!call.adds(0)) call.zero(gx);
    }

private:
    static catena::plugins::PixelRuns runs(const auto& call, Shape shape) {
        return {shape, call.template attr<"n">()};
    }
    template <class T>
    static void apply(const auto& call, Tensor<const T> x, Tensor<T> y) {
        map_windows(call, runs(call, x.shape), catena::plugins::PlainSum<Compute<T>>(), x.data,
                    y.data, call.adds(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::LocalResponseNormalization> {
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = runs<T>(call).template bytes<Compute<T>>(
            call.raw().phase == CATENA_PHASE_FORWARD ? 1 : 3);
    }
    template <class T>
    static void forward(const auto& call) {
        map_windows(call, runs<T>(call), rule<T>(call), call.template x<T>(0).data,
                    call.template y<T>(0).data, call.adds(0));
    }
    template <class T>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        using C = Compute<T>;
        const PixelRuns g = runs<T>(call);
        const T* const x = call.template x<T>(0).data;
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        if (!gy) {
            if (!call.adds(0)) call.zero(gx);
        } else if (g.is_near()) {
            g.launch(call, &near_response_gradient_kernel<T>, rule<T>(call), x, gy.data, gx.data,
                     call.adds(0));
        } else {
            C* const ends = call.template scratch<C>();
            g.launch(call, &far_response_gradient_kernel<T>, rule<T>(call), x, gy.data, gx.data,
                     call.adds(0), ends, ends + g.size(), ends + 2 * g.size());
        }
    }

private:
    template <class T>
    static catena::plugins::PixelRuns runs(const auto& call) {
        return {call.template x<T>(0).shape, call.template attr<"n">()};
    }
    template <class T>
    static catena::plugins::Response<Compute<T>> rule(const auto& call) {
        using C = Compute<T>;
        const double beta = call.template attr<"beta">();
        const auto alpha = static_cast<C>(call.template attr<"alpha">());
        return {static_cast<C>(call.template attr<"k">()), alpha, static_cast<C>(beta),
                C(2) * alpha * static_cast<C>(beta), beta == 0.75};
    }
};
