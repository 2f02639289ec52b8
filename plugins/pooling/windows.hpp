// Shared parts of the pooling functions: attributes, the geometry of windows, inference.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr double largest_extent = 1 << 30;
inline constexpr std::int64_t no_pad[] = {0};
inline constexpr Attribute ksize_attr =
    required<Ints>("ksize", "window: one number, or one for each axis").range(1, largest_extent);
inline constexpr Attribute stride_attr =
    attr("stride", Ints{}, "step of the window: one number, or one for each axis; empty: ksize")
        .range(1, largest_extent);
inline constexpr Attribute pad_attr =
    attr("pad", Ints(no_pad), "padding around the image: one number, or one for each axis")
        .range(0, largest_extent);
inline constexpr Attribute cover_all_attr =
    attr("cover_all", true, "also use windows that extend beyond the padded image");
inline constexpr Attribute size_attr = required<Ints>("size", "(height, width) of the image");

// Windows along one side of an image.
struct Side {
    // Returns the number for an axis of one or two numbers, or `otherwise` if there are none.
    static std::int64_t pick(Ints numbers, std::size_t axis, std::int64_t otherwise) {
        return numbers.empty() ? otherwise : numbers[numbers.size() == 1 ? 0 : axis];
    }
    std::int64_t padded() const { return plus(extent, times(2, pad)); }
    // Returns the number of positions of the window; 0 if it does not fit.
    std::int64_t positions(bool cover_all) const {
        const std::int64_t room = plus(padded(), cover_all ? stride - 1 : 0) - ksize;
        return room < 0 ? 0 : plus(room / stride, 1);
    }
    // The cells [first, last) of window o lie within the image.
    CATENA_FN std::int64_t first(std::int64_t o) const {
        const std::int64_t outside = pad - o * stride;
        return outside > 0 ? outside : 0;
    }
    CATENA_FN std::int64_t last(std::int64_t o) const {
        const std::int64_t within = extent + pad - o * stride;
        return within < ksize ? within : ksize;
    }

    std::int64_t extent;
    std::int64_t ksize;
    std::int64_t stride;
    std::int64_t pad;
    std::int64_t count = 0;  // windows
};

// Windows over images of the shape (..., height, width); `planes` is the number of images.
struct Windows {
    Side y;
    Side x;
    std::int64_t planes = 0;

    CATENA_FN std::int64_t image() const { return y.extent * x.extent; }
    CATENA_FN std::int64_t cells() const { return y.ksize * x.ksize; }
    CATENA_FN std::int64_t count() const { return y.count * x.count; }
    std::int64_t work() const { return count() * cells() + image(); }  // for one plane
};

// Returns the geometry for images of this size, from the attributes of a call or an inference.
template <class S>
Windows windows_of(const S& s, std::int64_t height, std::int64_t width) {
    const Ints ksize = s.template attr<"ksize">();
    const Ints stride = s.template attr<"stride">();
    const Ints pad = s.template attr<"pad">();
    const auto side = [&](std::size_t axis, std::int64_t extent) {
        const std::int64_t k = Side::pick(ksize, axis, 1);
        return Side{extent, k, Side::pick(stride, axis, k), Side::pick(pad, axis, 0)};
    };
    return {side(0, height), side(1, width)};
}
// Returns the geometry for a kernel; x is the images' shape, y has one value per window.
template <class C>
Windows windows_of(const C& call, Shape x, Shape y) {
    Windows w = windows_of(call, x[2], x[3]);
    w.planes = x[0] * x[1];
    w.y.count = y[2];
    w.x.count = y[3];
    return w;
}

// Checks the attributes and returns the geometry. Throws if there is no window.
template <class S>
Windows checked_windows(const S& s, std::int64_t height, std::int64_t width, bool cover_all) {
    const auto check = [&](const char* name, Ints numbers, bool optional) {
        s.check(numbers.size() == 1 || numbers.size() == 2 || (optional && numbers.empty()), name,
                "1 or 2 numbers", numbers.size(), CATENA_E_INVALID);
    };
    check("ksize", s.template attr<"ksize">(), false);
    check("stride", s.template attr<"stride">(), true);
    check("pad", s.template attr<"pad">(), false);
    Windows w = windows_of(s, height, width);
    w.y.count = w.y.positions(cover_all);
    w.x.count = w.x.positions(cover_all);
    if (w.y.count < 1 || w.x.count < 1) [[unlikely]] {
        const std::int64_t ksize[] = {w.y.ksize, w.x.ksize};
        const std::int64_t padded[] = {w.y.padded(), w.x.padded()};
        s.check(false, "ksize", "a window within the padded image " + text_of(Shape(padded)),
                Shape(ksize));
    }
    return w;
}
template <class S>
Windows infer_pooling(const S& s, bool cover_all) {
    s.check_ndim(0, 4);
    const Shape x = s.x(0);
    const Windows w = checked_windows(s, x[2], x[3], cover_all);
    s.y(0, {x[0], x[1], w.y.count, w.x.count});
    return w;
}
// Infers the images' shape for functions from windows to images; the size is an attribute.
template <class S>
void infer_images(const S& s, bool cover_all) {
    const Shape gy = s.x(0);
    const Ints size = s.template attr<"size">();
    s.check_ndim(0, 4);
    s.check(size.size() == 2 && size[0] >= 0 && size[1] >= 0, "size", "(height, width)", size,
            CATENA_E_INVALID);
    const Windows w = checked_windows(s, size[0], size[1], cover_all);
    const std::int64_t windows[] = {w.y.count, w.x.count};
    s.check(std::ranges::equal(gy.subspan(2), windows), "gy.shape[2:]", Shape(windows),
            gy.subspan(2));
    s.y(0, {gy[0], gy[1], size[0], size[1]});
}

}  // namespace catena::plugins
