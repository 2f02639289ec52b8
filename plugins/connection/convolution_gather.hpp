// Images with filters: y is made tile by tile, from a panel of what all taps see of its places.
#pragma once

#include "convolution_planes.hpp"

namespace catena::plugins {

// y = x with filters, plus bias (may be null), or added to y. There is an image and an output.
template <class T, Isa isa>
class Gather : public ConvolutionProduct {
public:
    Gather(catena_ctx* ctx, const Convolution& c, void* scratch = nullptr)
        : ConvolutionProduct(ctx, c, scratch),
          images_(images_of(c)),
          groups_(ceil_div(c.n, images_)),
          band_(images_ > 1 ? c.oh : band_of(c)),
          bands_(ceil_div(c.oh, band_)),
          shares_(std::clamp(ceil_div(pieces, groups_ * bands_ * 2), std::int64_t{1},
                             ceil_div(c.outputs, 8 * tile_rows))),
          share_(round_up(ceil_div(c.outputs, shares_), tile_rows)),
          depth_(ceil_div(c.taps(), std::max<std::int64_t>(ceil_div(c.taps(), most_depth), 1))),
          planes_(c, c.channels, band_) {
        weights_ = blocks_.take<T>(round_up(c.outputs, tile_rows) * c.taps());
        taps_ = blocks_.take<std::int64_t>(c.taps());
        take_for_workers([&](Blocks& own) { take(own); });
    }

    CATENA_KERNEL void run(const T* x, const Filters<T>& filters, const T* bias, T* y,
                           bool add) const {
        const Convolution& c = c_;
        const std::int64_t k = c.taps();
        const std::int64_t area = c.kh * c.kw;
        for (std::int64_t i = 0; i < k; ++i)
            taps_[i] = planes_.tap(c, i / area, i % area / c.kw, i % c.kw);
        auto pack = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t p = begin; p < end; ++p) {
                T* to = weights_ + p * k * tile_rows;
                const std::int64_t rows =
                    std::min<std::int64_t>(tile_rows, c.outputs - p * tile_rows);
                for (std::int64_t channel = 0; channel < c.channels; ++channel)
                    for (std::int64_t t = 0; t < area; ++t, to += tile_rows)
                        for (std::int64_t r = 0; r < tile_rows; ++r)
                            to[r] = r < rows ? filters(p * tile_rows + r, channel, t) : T(0);
            }
        };
        parallel<isa>(ctx_, ceil_div(c.outputs, tile_rows), k * tile_rows, pack);
        auto work = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
            Blocks blocks = blocks_of(slot);
            const Own own = take(blocks);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t n = i / (bands_ * shares_) * images_;
                const std::int64_t first = i / shares_ % bands_ * band_;
                const std::int64_t o = i % shares_ * share_;
                const std::int64_t images = std::min(images_, c.n - n);
                const std::int64_t pixels = std::min(band_, c.oh - first) * c.ow;
                for (std::int64_t m = 0; m < images; ++m)
                    planes_.fill(c, x + (n + m) * c.image(), 0, c.channels, first,
                                 own.planes + m * planes_.size);
                T* const out = y + n * c.outputs * c.pixels() + first * c.ow;
                for (std::int64_t q = 0; q < images * pixels; q += columns)
                    tile(own, q, std::min(columns, images * pixels - q), pixels, o,
                         std::min(o + share_, c.outputs), bias, out, add);
            }
        };
        parallel<isa>(ctx_, groups_ * bands_ * shares_,
                      c.n * c.pixels() * k * c.outputs / (8 * groups_ * bands_ * shares_) + 1,
                      work);
    }

private:
    static constexpr std::int64_t lanes = Tiles<isa>::template lanes<T>;
    static constexpr std::int64_t columns = lanes * Tiles<isa>::most_vectors;
    // Taps at a time: their panel stays in the first cache.
    static constexpr std::int64_t most_depth = (isa == Isa::x86_64_v4 ? 640 : 1280) / sizeof(T);
    static constexpr std::int64_t band_cache = 512 << 10;  // bytes of planes at a time
    static constexpr std::int64_t image_cache = 2 << 20;
    static constexpr std::int64_t pieces = 16;

    // Small images are done together.
    static std::int64_t images_of(const Convolution& c) {
        const std::int64_t bytes =
            Planes(c, c.channels, c.oh).size * static_cast<std::int64_t>(sizeof(T));
        const std::int64_t wanted = ceil_div(4 * columns, c.pixels());
        const std::int64_t fits =
            std::max<std::int64_t>(image_cache / std::max<std::int64_t>(bytes, 1), 1);
        const std::int64_t images = std::clamp<std::int64_t>(std::min(wanted, fits), 1, c.n);
        return ceil_div(c.n, ceil_div(c.n, images));
    }
    // Rows of large ones: their planes stay in the second cache, there are pieces for all threads,
    // and the last tile is not most of a band.
    static std::int64_t band_of(const Convolution& c) {
        const std::int64_t row = Planes(c, c.channels, 2).size - Planes(c, c.channels, 1).size;
        const std::int64_t fits =
            band_cache / std::max<std::int64_t>(row * static_cast<std::int64_t>(sizeof(T)), 1);
        const std::int64_t shared = ceil_div(c.oh * c.n, pieces);
        const std::int64_t least = ceil_div(4 * columns, c.ow);
        const std::int64_t band =
            std::clamp<std::int64_t>(std::max(std::min(fits, shared), least), 1, c.oh);
        return ceil_div(c.oh, ceil_div(c.oh, band));
    }

    // What a worker has for itself.
    struct Own {
        T* planes;
        T* panel;
        T* rest;  // a tile that does not end where y does
        Run* runs;
    };
    Own take(Blocks& blocks) const {
        return {blocks.take<T>(images_ * planes_.size + lanes),
                blocks.take<T>(depth_ * columns + lanes), blocks.take<T>(share_ * columns),
                blocks.take<Run>(columns)};
    }

    // Columns q .. q + n of a piece whose bands have `pixels` places; outputs [from, to).
    CATENA_KERNEL void tile(const Own& own, std::int64_t q, std::int64_t n, std::int64_t pixels,
                            std::int64_t from, std::int64_t to, const T* bias, T* y,
                            bool add) const {
        const std::int64_t image_step = c_.outputs * c_.pixels();
        const std::int64_t n_runs = planes_.cut(c_, q, n, pixels, image_step, own.runs);
        // Whole vectors of one image go straight to y.
        const bool direct = n % lanes == 0 && q % pixels + n <= pixels;
        T* const out = direct ? y + own.runs[0].image + from * c_.pixels() : own.rest;
        const std::int64_t ld = direct ? c_.pixels() : columns;
        const std::int64_t k = c_.taps();
        std::int64_t at = 0;
        do {
            const std::int64_t part = std::min(depth_, k - at);
            Tiles<isa>::pack(own.planes, taps_ + at, part, own.runs, n_runs, own.panel, columns);
            for (std::int64_t o = from; o < to; o += tile_rows) {
                const std::int64_t rows = std::min<std::int64_t>(tile_rows, to - o);
                const T* const start = bias != nullptr && at == 0 ? bias + o : nullptr;
                with_tile<Tiles<isa>::most_vectors>(
                    rows, ceil_div(n, lanes), [&](auto r, auto v) CATENA_LAMBDA {
                        Tiles<isa>::template product<T, r(), v()>(
                            weights_ + o * k + at * tile_rows, own.panel, columns, part,
                            out + (o - from) * ld, ld, rows, start, at > 0 || (direct && add));
                    });
            }
            at += part;
        } while (at < k);
        if (direct) return;
        for (std::int64_t o = from; o < to; ++o)
            for (const Run* run = own.runs; run != own.runs + n_runs; ++run) {
                const T* const row = own.rest + (o - from) * columns + run->column;
                T* const target = y + run->image + o * c_.pixels();
                for (std::int64_t j = 0; j < run->length; ++j) store(target[j], add, row[j]);
            }
    }

    std::int64_t images_;  // in a piece
    std::int64_t groups_;  // of images
    std::int64_t band_;    // rows of places in a piece
    std::int64_t bands_;
    std::int64_t shares_;  // of the outputs, for as many pieces
    std::int64_t share_;
    std::int64_t depth_;  // taps done together
    Planes planes_;
    T* weights_;
    std::int64_t* taps_;
};

}  // namespace catena::plugins
