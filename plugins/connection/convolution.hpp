// What the functions around convolution share: attributes, sizes, and checks of both.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr std::int64_t default_stride[] = {1};
inline constexpr std::int64_t default_pad[] = {0};
inline constexpr double largest_step = 1 << 30;
inline constexpr Attribute stride_attr =
    attr("stride", Ints(default_stride), "step of the filter: one number, or (y, x)")
        .range(1, largest_step);
inline constexpr Attribute pad_attr =
    attr("pad", Ints(default_pad), "zeros around the image: one number, or (y, x)")
        .range(0, largest_step);

inline constexpr Attribute cover_all_attr =
    attr("cover_all", false,
         "whether to cover all of the padded image, with positions that extend beyond it");

struct Pair {
    std::int64_t y;
    std::int64_t x;
};
// One number for both, or (y, x).
inline Pair pair_of(Ints numbers) { return {numbers[0], numbers[numbers.size() - 1]}; }
inline Pair checked_pair(const auto& s, const char* name, Ints numbers) {
    s.check(numbers.size() == 1 || numbers.size() == 2, name, "1 or 2 numbers", numbers.size(),
            CATENA_E_INVALID);
    return pair_of(numbers);
}

// Positions of a filter of `size` along an image side of `side`; 0 if it does not fit. cover: the
// last one may reach beyond the pad, by less than a stride.
constexpr std::int64_t filter_positions(std::int64_t side, std::int64_t size, std::int64_t stride,
                                        std::int64_t pad, bool cover) {
    const std::int64_t room = plus(plus(side, times(2, pad)), cover ? stride - 1 : 0) - size;
    return room < 0 ? 0 : plus(room / stride, 1);
}
constexpr Pair filter_positions(Pair side, Pair size, Pair stride, Pair pad, bool cover) {
    return {filter_positions(side.y, size.y, stride.y, pad.y, cover),
            filter_positions(side.x, size.x, stride.x, pad.x, cover)};
}

// How far places may reach beyond the padded image.
constexpr Pair beyond_of(Pair stride, bool cover) {
    return cover ? Pair{stride.y - 1, stride.x - 1} : Pair{0, 0};
}

// Sizes of y = convolution of x with W: x (n, channels, height, width), W (outputs, channels, kh, kw),
// y (n, outputs, oh, ow).
struct Convolution {
    std::int64_t n;
    std::int64_t channels, height, width;
    std::int64_t outputs, oh, ow;
    std::int64_t kh, kw;
    Pair stride, pad;

    std::int64_t taps() const { return channels * kh * kw; }
    std::int64_t pixels() const { return oh * ow; }
    std::int64_t image() const { return channels * height * width; }
};

// From x, y and the filter's size; attributes of the call.
inline Convolution convolution_of(const auto& call, Shape x, Shape y, Shape w) {
    return {.n = x[0],
            .channels = x[1],
            .height = x[2],
            .width = x[3],
            .outputs = y[1],
            .oh = y[2],
            .ow = y[3],
            .kh = w[w.size() - 2],
            .kw = w[w.size() - 1],
            .stride = pair_of(call.template attr<"stride">()),
            .pad = pair_of(call.template attr<"pad">())};
}

inline std::string pair_text(Pair p) {
    const std::int64_t shape[] = {p.y, p.x};
    return text_of(Shape(shape));
}
// The filter has to fit into the padded image, and what may lie beyond it.
inline void check_fit(const auto& s, const char* what, Pair filter, Pair side, Pair pad,
                      Pair beyond) {
    if (filter.y < 1 || filter.x < 1) [[unlikely]]
        s.check(false, what, "at least (1, 1)", pair_text(filter));
    const Pair padded = {plus(plus(side.y, times(2, pad.y)), beyond.y),
                         plus(plus(side.x, times(2, pad.x)), beyond.x)};
    if (filter.y > padded.y || filter.x > padded.x) [[unlikely]]
        s.check(false, what, "at most the padded image " + pair_text(padded), pair_text(filter));
}

// Where a filter is placed, by the attributes of a call, which are checked. what: names its size.
inline Pair checked_places(const auto& s, const char* what, Pair filter, Shape x) {
    const Pair stride = checked_pair(s, "stride", s.template attr<"stride">());
    const Pair pad = checked_pair(s, "pad", s.template attr<"pad">());
    const bool cover = s.template attr<"cover_all">();
    check_fit(s, what, filter, {x[2], x[3]}, pad, beyond_of(stride, cover));
    return filter_positions({x[2], x[3]}, filter, stride, pad, cover);
}

}  // namespace catena::plugins
