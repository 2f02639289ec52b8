// The three products behind convolutions: images with filters, its adjoint, images with images.
#pragma once

#include <catena/plugin/reduce.hpp>

#include "convolution_correlate.hpp"
#include "convolution_gather.hpp"
#include "convolution_spread.hpp"

namespace catena::plugins {

// Whether the adjoint of c is best done as a convolution of gy with turned filters: adjoint_of(c).
// With a stride, or much more of x than of y, it would mostly multiply zeros.
inline bool gathers_back(const Convolution& c) {
    return c.stride.y == 1 && c.stride.x == 1 && c.pad.y < c.kh && c.pad.x < c.kw &&
           5 * c.height * c.width <= 6 * c.pixels();
}
inline Convolution adjoint_of(const Convolution& c) {
    return {.n = c.n,
            .channels = c.outputs,
            .height = c.oh,
            .width = c.ow,
            .outputs = c.channels,
            .oh = c.height,
            .ow = c.width,
            .kh = c.kh,
            .kw = c.kw,
            .stride = {1, 1},
            .pad = {c.kh - 1 - c.pad.y, c.kw - 1 - c.pad.x}};
}

// Scratch of a product, enough for each instruction set.
template <class T, template <class, Isa> class Product, Isa... isa>
std::uint64_t scratch_of(catena_ctx* ctx, const Convolution& c, IsaList<isa...>) {
    return std::max({Product<T, isa>(ctx, c).bytes()...});
}

// The arrays of a convolution: x, W and y of convolution_2d.
struct ConvolutionArrays {
    enum Array { images, filters, places };
};

// Functions that compute one of these arrays, `result`, from the two others, which are the inputs.
// Each gradient is such a function as well. Images and places may get a bias, a third input.
template <ConvolutionArrays::Array first, ConvolutionArrays::Array second,
          ConvolutionArrays::Array result>
struct ConvolutionFunction : ConvolutionArrays {
    static constexpr auto retain_x = ports(0, 1);
    static constexpr bool has_bias = result != filters;

    static void compose_gradient(const auto& g, bool cover_all) {
        std::array<Var, 3> of;
        of[first] = g.x(0), of[second] = g.x(1), of[result] = g.gy(0);
        const auto stride = g.same("stride"), pad = g.same("pad");
        const auto cover = set("cover_all", cover_all);
        const Array inputs[] = {first, second};
        for (std::size_t i = 0; i < 2; ++i) {
            if (!g.wants(i)) continue;
            const Shape size = g.x_shape(i).subspan(2);
            if (inputs[i] == images)
                g.gx(i, call<"catena.deconvolution_2d">({of[places], of[filters]},
                                                        {stride, pad, set("outsize", size)}));
            else if (inputs[i] == places)
                g.gx(i, call<"catena.convolution_2d">({of[images], of[filters]},
                                                      {stride, pad, cover}));
            else
                g.gx(i, call<"catena.convolution_2d_grad_w">(
                            {of[images], of[places]}, {set("ksize", size), stride, pad, cover}));
        }
        if constexpr (has_bias)
            if (g.wants(2)) g.gx(2, sum(g.gy(0), {0, 2, 3}, false));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const bool forward = call.raw().phase == CATENA_PHASE_FORWARD;
        const Convolution c = sizes(call);
        const auto need = [&](bool wanted, Array array) {
            if (wanted)
                plan.scratch_bytes = std::max(plan.scratch_bytes, scratch<T>(call, c, array));
        };
        need(forward, result);
        need(!forward && call.wants(0), first);
        need(!forward && call.wants(1), second);
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const T* bias = nullptr;
        if constexpr (has_bias) bias = call.template x<T>(2).data;
        compute<result>(call, inputs<T>(call), bias, call.template y<T>(0).data, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        Arrays<T> of = inputs<T>(call);
        const auto gy = call.template gy<T>(0);
        const T* const no_bias = nullptr;
        of[result] = gy.data;
        if (const auto gx = call.template gx<T>(0))
            compute<first>(call, of, no_bias, gx.data, call.adds(0));
        if (const auto gx = call.template gx<T>(1))
            compute<second>(call, of, no_bias, gx.data, call.adds(1));
        if constexpr (has_bias)
            if (const auto gb = call.template gx<T>(2))
                sum_axes(call, Reduction(gy.shape, [](std::size_t d) { return d != 1; }), gy.data,
                         gb.data, call.adds(2));
    }

private:
    template <class T>
    using Arrays = std::array<const T*, 3>;

    template <class T>
    CATENA_KERNEL static Arrays<T> inputs(const auto& call) {
        Arrays<T> of{};
        of[first] = call.template x<T>(0).data;
        of[second] = call.template x<T>(1).data;
        return of;
    }
    static Convolution sizes(const auto& call) {
        const bool forward = call.raw().phase == CATENA_PHASE_FORWARD;
        Shape of[3];
        of[first] = shape_of(*call.raw().x[0]);
        of[second] = shape_of(*call.raw().x[1]);
        of[result] = shape_of(*(forward ? call.raw().y[0] : call.raw().gy[0]));
        return convolution_of(call, of[images], of[places], of[filters]);
    }
    static bool is_empty(const Convolution& c, Array array) {
        return c.n * (array == images ? 1 : c.outputs) * (array == places ? 1 : c.channels) == 0;
    }
    // to = the array, plus bias (may be null), or added to what is there.
    template <Array array, class T, class Call>
    CATENA_KERNEL static void compute(const Call& call, const Arrays<T>& of, const T* bias, T* to,
                                      bool add) {
        catena_ctx* const ctx = call.context();
        char* const memory = call.template scratch<char>();
        const Convolution c = sizes(call);
        const std::int64_t area = c.kh * c.kw, taps = c.taps();
        const T* const w = of[filters];
        if (is_empty(c, array)) {
            if (array == filters && !add) std::fill_n(to, c.outputs * taps, T(0));
        } else if constexpr (array == filters) {
            Correlate<T, Call::isa>(ctx, c, memory).run(of[images], of[places], to, add);
        } else if constexpr (array == places) {
            Gather<T, Call::isa>(ctx, c, memory).run(of[images], {w, taps, area, 1}, bias, to, add);
        } else if (gathers_back(c)) {
            Gather<T, Call::isa>(ctx, adjoint_of(c), memory)
                .run(of[places], {w + area - 1, area, taps, -1}, bias, to, add);
        } else {
            Spread<T, Call::isa>(ctx, c, memory).run(of[places], {w, taps, area, 1}, bias, to, add);
        }
    }
    template <class T>
    static std::uint64_t scratch(const auto& call, const Convolution& c, Array array) {
        catena_ctx* const ctx = call.context();
        if (is_empty(c, array)) return 0;
        if (array == filters) return scratch_of<T, Correlate>(ctx, c, Isas());
        if (array == places) return scratch_of<T, Gather>(ctx, c, Isas());
        return gathers_back(c) ? scratch_of<T, Gather>(ctx, adjoint_of(c), Isas())
                               : scratch_of<T, Spread>(ctx, c, Isas());
    }
};

}  // namespace catena::plugins
