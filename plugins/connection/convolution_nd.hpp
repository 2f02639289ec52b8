// Convolutions along any number of axes, as sums of those of images, and other forms of them.
#pragma once

#include <catena/plugin/windows.hpp>

#include "convolution.hpp"

namespace catena::plugins {

inline Var swapped(const Var& x) {  // axes 1 and 2
    return call<"catena.swapaxes">({x}, {set("axis1", 1), set("axis2", 2)});
}
// From (N, C, D, ...) to (N D, C, ...).
inline Var split_depth(const Var& x) {
    List shape = list_of(x.meta().shape());
    shape[0] *= shape[2];
    shape.erase(shape.begin() + 2);
    return reshape(swapped(x), shape);
}
// From (N D, C, ...) to (N, C, D, ...).
inline Var joined_depth(const Var& x, std::int64_t n, std::int64_t depth) {
    List shape = list_of(x.meta().shape());
    shape[0] = n;
    shape.insert(shape.begin() + 1, depth);
    return swapped(reshape(x, shape));
}
inline Var with_bias(const Var& y, const Var& b) {
    if (b.is_missing()) return y;
    List shape(static_cast<std::size_t>(y.ndim()), 1);
    shape[1] = -1;
    return y + reshape(b, shape);
}

// What a convolution of n axes does along each of them.
struct Steps {
    Steps(const auto& g, std::size_t n)
        : stride(per_axis<"stride">(g, n)),
          pad(per_axis<"pad">(g, n)),
          dilate(per_axis<"dilate">(g, n)),
          groups(g.template attr<"groups">()) {
        g.check_ndim(1, n + 2);
        const Meta w = g.x_meta(1);
        const Shape taps = w.shape().subspan(2);
        g.check(std::ranges::find(taps, 0) == taps.end(), "W.shape[2:]",
                "at least 1 along each axis", taps);
        if (n > 2) check_parts(g, "W.shape[2:]", taps.first(n - 2));
        for (std::size_t d = 0; d < n; ++d) reach.push_back(plus(times(taps[d] - 1, dilate[d]), 1));
    }
    Steps without_first() const {
        Steps steps = *this;
        for (List* list : {&steps.stride, &steps.pad, &steps.dilate, &steps.reach})
            list->erase(list->begin());
        return steps;
    }
    // Those of images of one row.
    Steps with_row() const {
        Steps steps = *this;
        for (List* list : {&steps.stride, &steps.dilate, &steps.reach})
            list->insert(list->begin(), 1);
        steps.pad.insert(steps.pad.begin(), 0);
        return steps;
    }
    // The sum of part(i, the filters' elements i along axis 2).
    static Var sum_of_taps(const Var& W, const auto& part) {
        Var y = part(0, squeeze(slice(W, 2, 0, 1), {2}));
        for (std::int64_t i = 1; i < W.dim(2); ++i)
            y = y + part(i, squeeze(slice(W, 2, i, i + 1), {2}));
        return y;
    }

    List stride, pad, dilate, reach;
    std::int64_t groups;
    bool cover_all = false;
};

inline Var convolved(const Var& x, const Var& W, const Var& b, const Steps& s) {
    const std::size_t n = s.stride.size();
    if (n == 1)
        return squeeze(convolved(expand_dims(x, {2}), expand_dims(W, {2}), b, s.with_row()), {2});
    if (n == 2)
        return call<"catena.convolution_2d">(
            {x, W, b},
            {set("stride", Ints(s.stride)), set("pad", Ints(s.pad)), set("cover_all", s.cover_all),
             set("dilate", Ints(s.dilate)), set("groups", s.groups)});
    const std::int64_t step = s.stride[0];
    const std::int64_t out = filter_positions(x.dim(2), s.reach[0], step, s.pad[0], s.cover_all);
    List widths(2 * (n + 2));
    widths[4] = s.pad[0];
    widths[5] = std::max<std::int64_t>(0, s.reach[0] + step * (out - 1) - s.pad[0] - x.dim(2));
    const Var padded = pad(x, widths);
    return with_bias(
        Steps::sum_of_taps(W,
                           [&](std::int64_t i, const Var& tap) {
                               const Var at = every(padded, 2, i * s.dilate[0], step, out);
                               return joined_depth(convolved(split_depth(at), tap, Var::missing(),
                                                             s.without_first()),
                                                   x.dim(0), out);
                           }),
        b);
}

inline Var deconvolved(const Var& x, const Var& W, const Var& b, const Steps& s, List sizes) {
    const std::size_t n = s.stride.size();
    if (n == 1) {
        sizes.insert(sizes.begin(), 1);
        return squeeze(
            deconvolved(expand_dims(x, {2}), expand_dims(W, {2}), b, s.with_row(), sizes), {2});
    }
    if (n == 2)
        return call<"catena.deconvolution_2d">(
            {x, W, b},
            {set("stride", Ints(s.stride)), set("pad", Ints(s.pad)), set("outsize", Ints(sizes)),
             set("dilate", Ints(s.dilate)), set("groups", s.groups)});
    const std::int64_t depth = x.dim(2), begin = s.pad[0], end = begin + sizes[0];
    const std::int64_t span = depth > 0 ? s.stride[0] * (depth - 1) + 1 : 0;
    sizes.erase(sizes.begin());
    const Var y = Steps::sum_of_taps(W, [&](std::int64_t i, const Var& tap) {
        const Var part =
            joined_depth(deconvolved(split_depth(x), tap, Var::missing(), s.without_first(), sizes),
                         x.dim(0), depth);
        List shape = list_of(part.meta().shape());
        const List from = {0, 0, i * s.dilate[0]}, to = {shape[0], shape[1], from[2] + span};
        shape[2] = std::max(end, s.reach[0] - 1 + span);
        return call<"catena.put_item">(
            {part}, {set("shape", Ints(shape)), set("begin", Ints(from)), set("end", Ints(to)),
                     set("step", Ints(List{1, 1, s.stride[0]}))});
    });
    return with_bias(slice(y, 2, begin, end), b);
}

// n: the number of axes; 0 for any.
template <std::size_t n>
struct ConvolutionAlong {
    static constexpr auto about_as(const char* name, const char* doc) {
        return describe(name, doc,
                        in(Port("x", "(N, C, ...)"), Port("W", "(out, C / groups, ...)"),
                           Port("b", "(out,)").optional()),
                        out(Port("y", "(N, out, ...)")), stride_attr, pad_attr, cover_all_attr,
                        dilate_attr, groups_attr);
    }
    static Var compose(const auto& g) {
        Steps steps(g, image_axes(g, n));
        steps.cover_all = g.template attr<"cover_all">();
        g.check_shape(2, {g.x(1).dim(0)});
        const Meta x = g.x_meta(0);
        for (std::size_t d = 0; d < steps.pad.size(); ++d)
            g.check(filter_positions(x.shape()[d + 2], steps.reach[d], steps.stride[d],
                                     steps.pad[d], steps.cover_all) > 0,
                    "W.shape[2:]", "a filter within the padded image " + text_of(x.shape()),
                    steps.reach);
        return convolved(g.x(0), g.x(1), g.x(2), steps);
    }
};
struct ConvolutionNd : ConvolutionAlong<0> {
    static constexpr auto about =
        about_as("catena.convolution_nd", "y = convolution_2d along any number of axes")
            .example("x=(2,3,5) W=(2,3,3) b=(2,) pad=1")
            .example(
                "x=(1,4,3,4,3) W=(2,2,2,2,2) b=(2,) stride=2 pad=[1,0,1] cover_all=true "
                "groups=2")
            .example("x=(1,2,5,3,3) W=(2,2,2,2,1) dilate=[2,1,2]");
};
struct Convolution1d : ConvolutionAlong<1> {
    static constexpr auto about =
        about_as("catena.convolution_1d", "y = convolution_2d along one axis")
            .example("x=(2,3,5) W=(2,3,3) b=(2,) stride=2");
};
struct Convolution3d : ConvolutionAlong<3> {
    static constexpr auto about =
        about_as("catena.convolution_3d", "y = convolution_2d along three axes")
            .example("x=(1,2,3,3,2) W=(2,2,2,2,1) b=(2,)");
};

template <std::size_t n>
struct DeconvolutionAlong {
    static constexpr auto about_as(const char* name, const char* doc) {
        return describe(
            name, doc,
            in(Port("x", "(N, C, ...)"), Port("W", "(C, out / groups, ...)"),
               Port("b", "(out,)").optional()),
            out(Port("y", "(N, out, ...)")), stride_attr, pad_attr,
            attr("outsize", Ints{},
                 "the extents of y, for which convolution_nd, with or without cover_all, gives "
                 "those of x; empty: the smallest without cover_all")
                .range(0, largest_step),
            dilate_attr, groups_attr);
    }
    static Var compose(const auto& g) {
        const Steps s(g, image_axes(g, n));
        const Meta x = g.x_meta(0);
        g.check_shape(2, {times(g.x(1).dim(1), s.groups)});
        List least;
        for (std::size_t d = 0; d < s.pad.size(); ++d)
            least.push_back(plus(times(s.stride[d], x.shape()[d + 2] - 1), s.reach[d]) -
                            times(2, s.pad[d]));
        const List sizes = per_axis<"outsize">(g, least.size(), least);
        for (std::size_t d = 0; d < sizes.size(); ++d) {
            const auto places = [&](bool cover) {
                return filter_positions(sizes[d], s.reach[d], s.stride[d], s.pad[d], cover);
            };
            const std::int64_t wanted = x.shape()[d + 2];
            g.check(sizes[d] >= 0 && (places(false) == wanted || places(true) == wanted), "outsize",
                    "a size that convolution_nd takes to " + text_of(x.shape().subspan(2)), sizes,
                    CATENA_E_INVALID);
        }
        return deconvolved(g.x(0), g.x(1), g.x(2), s, sizes);
    }
};
struct DeconvolutionNd : DeconvolutionAlong<0> {
    static constexpr auto about =
        about_as("catena.deconvolution_nd", "y = deconvolution_2d along any number of axes")
            .example("x=(2,3,4) W=(3,2,3) outsize=[6]")
            .example("x=(1,4,2,2,2) W=(4,2,2,1,2) b=(4,) stride=2 outsize=[5,4,4] groups=2")
            .example("x=(1,2,2,3,2) W=(2,2,2,1,2) pad=[2,0,2] dilate=[3,1,4]");
};
struct Deconvolution1d : DeconvolutionAlong<1> {
    static constexpr auto about =
        about_as("catena.deconvolution_1d", "y = deconvolution_2d along one axis")
            .example("x=(2,3,4) W=(3,2,3) b=(2,) stride=2 pad=1");
};
struct Deconvolution3d : DeconvolutionAlong<3> {
    static constexpr auto about =
        about_as("catena.deconvolution_3d", "y = deconvolution_2d along three axes")
            .example("x=(1,2,2,2,2) W=(2,3,2,2,2) b=(3,) stride=[2,1,1] pad=[1,0,1]");
};

CATENA_FUNCTIONS(ConvolutionNd, Convolution1d, Convolution3d, DeconvolutionNd, Deconvolution1d,
                 Deconvolution3d);

}  // namespace catena::plugins
