// Loops over windows of images, on CUDA: one thread per window, or one per pixel, which reads every
// window that covers it. Each thread writes only its own result and adds in a fixed order.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "windows.hpp"

namespace catena::plugins {

// The plane, row and column of element i of an array (planes, rows, columns).
struct Place {
    CATENA_FN Place(std::int64_t i, std::int64_t rows, std::int64_t columns)
        : plane(i / (rows * columns)), row(i / columns % rows), column(i % columns) {}
    std::int64_t plane, row, column;
};

// Calls body(element, cell) for each cell of a window that lies within the image, row by row.
template <class Body>
__device__ __forceinline__ void for_each_cell(const Windows& w, std::int64_t window,
                                              const Body& body) {
    const Place o(window, w.y.count, w.x.count);
    const std::int64_t corner = o.plane * w.image() + (o.row * w.y.stride - w.y.pad) * w.x.extent +
                                o.column * w.x.stride - w.x.pad;  // may lie outside the image
    for (std::int64_t i = w.y.first(o.row); i < w.y.last(o.row); ++i)
        for (std::int64_t j = w.x.first(o.column); j < w.x.last(o.column); ++j)
            body(corner + i * w.x.extent + j, static_cast<std::uint32_t>(i * w.x.ksize + j));
}

// Windows along a side that cover a pixel: [first, last].
struct Cover {
    CATENA_FN Cover(const Side& side, std::int64_t pixel) : at(pixel + side.pad) {
        last = at / side.stride;
        if (last >= side.count) last = side.count - 1;
        first = at < side.ksize ? 0 : (at - side.ksize) / side.stride + 1;
    }
    std::int64_t at;  // position in the padded image
    std::int64_t first, last;
};
// Calls body(window, cell) for each window that covers a pixel; the pixel is this cell of it.
template <class Body>
__device__ __forceinline__ void for_each_cover(const Windows& w, std::int64_t pixel,
                                               const Body& body) {
    const Place p(pixel, w.y.extent, w.x.extent);
    const Cover rows(w.y, p.row);
    const Cover columns(w.x, p.column);
    for (std::int64_t oy = rows.first; oy <= rows.last; ++oy)
        for (std::int64_t ox = columns.first; ox <= columns.last; ++ox)
            body((p.plane * w.y.count + oy) * w.x.count + ox,
                 static_cast<std::uint32_t>((rows.at - oy * w.y.stride) * w.x.ksize + columns.at -
                                            ox * w.x.stride));
}

}  // namespace catena::plugins
