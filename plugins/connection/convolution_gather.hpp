// Images with filters: y is made tile by tile, from a panel of what all taps see of its places.
#pragma once

#include "convolution_planes.hpp"

namespace catena::plugins {

// y = x with filters, plus bias (may be null), or added to y. There is an image and an output.
template <class T, Isa isa>
class Gather {
public:
    Gather(catena_ctx* ctx, const Convolution& c, void* scratch = nullptr)
        : ctx_(ctx),
          c_(c),
          images_(images_of(c)),
          groups_(ceil_div(c.n, images_)),
          band_(images_ > 1 ? c.oh : band_of(c)),
          bands_(ceil_div(c.oh, band_)),
          shares_(std::clamp(ceil_div(pieces, groups_ * bands_ * 2), std::int64_t{1},
                             ceil_div(c.outputs, 8 * tile_rows))),
          share_(round_up(ceil_div(c.outputs, shares_), tile_rows)),
          depth_(ceil_div(c.taps(), std::max<std::int64_t>(ceil_div(c.taps(), most_depth), 1))),
          tiles_(c.outputs * c.taps() > near_filters ? 4 : 1),
          planes_(c, c.channels, band_),
          blocks_(scratch) {
        weights_ = blocks_.take<T>(round_up(c.outputs, tile_rows) * c.taps());
        taps_ = blocks_.take<std::int64_t>(c.taps());
        Blocks own;
        take(own);
        own_bytes_ = own.bytes();
        own_ = blocks_.take<char>(own_bytes_ * host().slots(ctx));
    }
    std::uint64_t bytes() const { return static_cast<std::uint64_t>(blocks_.bytes()); }

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
            Blocks blocks(own_ + own_bytes_ * slot);
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
                for (std::int64_t q = 0; q < images * pixels; q += tiles_ * columns)
                    tiles(own, q, std::min(q + tiles_ * columns, images * pixels), pixels, o,
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
    static constexpr std::int64_t near_filters = 65536;  // more: several panels share their loading
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
        T* panels;
        T* rest;  // tiles that do not end where rows of y do
        Run* runs;
        std::int64_t* n_runs;
    };
    Own take(Blocks& blocks) const {
        return {blocks.take<T>(images_ * planes_.size + lanes),
                blocks.take<T>(tiles_ * depth_ * columns + lanes),
                blocks.take<T>(tiles_ * share_ * columns), blocks.take<Run>(tiles_ * columns),
                blocks.take<std::int64_t>(tiles_)};
    }

    // Columns [from, to) of a piece, at most tiles_ tiles; outputs [o_from, o_to).
    CATENA_KERNEL void tiles(const Own& own, std::int64_t from, std::int64_t to,
                             std::int64_t pixels, std::int64_t o_from, std::int64_t o_to,
                             const T* bias, T* y, bool add) const {
        const std::int64_t k = c_.taps();
        const std::int64_t n_tiles = ceil_div(to - from, columns);
        for (std::int64_t t = 0; t < n_tiles; ++t)
            own.n_runs[t] =
                planes_.cut(c_, from + t * columns, std::min(columns, to - from - t * columns),
                            pixels, c_.outputs * c_.pixels(), own.runs + t * columns);
        std::int64_t at = 0;
        do {
            const std::int64_t part = std::min(depth_, k - at);
            for (std::int64_t t = 0; t < n_tiles; ++t)
                Tiles<isa>::pack(own.planes, taps_ + at, part, own.runs + t * columns,
                                 own.n_runs[t], own.panels + t * depth_ * columns, columns);
            for (std::int64_t o = o_from; o < o_to; o += tile_rows)
                for (std::int64_t t = 0; t < n_tiles; ++t) {
                    const std::int64_t q = from + t * columns;
                    const std::int64_t n = std::min(columns, to - q);
                    const std::int64_t rows = std::min<std::int64_t>(tile_rows, o_to - o);
                    const bool direct = lies_in_y(q, n, pixels);
                    T* const out = direct ? y + own.runs[t * columns].image + o * c_.pixels()
                                          : own.rest + (t * share_ + o - o_from) * columns;
                    with_tile<Tiles<isa>::most_vectors>(
                        rows, ceil_div(n, lanes), [&](auto r, auto v) CATENA_LAMBDA {
                            Tiles<isa>::template product<T, r(), v()>(
                                weights_ + o * k + at * tile_rows,
                                own.panels + t * depth_ * columns, columns, part, out,
                                direct ? c_.pixels() : columns, rows,
                                bias != nullptr && at == 0 ? bias + o : nullptr,
                                at > 0 || (direct && add));
                        });
                }
            at += depth_;
        } while (at < k);
        for (std::int64_t t = 0; t < n_tiles; ++t) {
            const std::int64_t q = from + t * columns;
            if (lies_in_y(q, std::min(columns, to - q), pixels)) continue;
            for (std::int64_t o = o_from; o < o_to; ++o)
                for (std::int64_t i = 0; i < own.n_runs[t]; ++i) {
                    const Run& run = own.runs[t * columns + i];
                    const T* const row =
                        own.rest + (t * share_ + o - o_from) * columns + run.column;
                    T* const target = y + run.image + o * c_.pixels();
                    for (std::int64_t j = 0; j < run.length; ++j) store(target[j], add, row[j]);
                }
        }
    }
    // Whether n columns from q on are whole vectors of one image.
    static bool lies_in_y(std::int64_t q, std::int64_t n, std::int64_t pixels) {
        return n % lanes == 0 && q % pixels + n <= pixels;
    }

    catena_ctx* ctx_;
    Convolution c_;
    std::int64_t images_;  // in a piece
    std::int64_t groups_;  // of images
    std::int64_t band_;    // rows of places in a piece
    std::int64_t bands_;
    std::int64_t shares_;  // of the outputs, for as many pieces
    std::int64_t share_;
    std::int64_t depth_;  // taps done together
    std::int64_t tiles_;  // done together
    Planes planes_;
    Blocks blocks_;
    T* weights_;
    std::int64_t* taps_;
    char* own_;
    std::int64_t own_bytes_;
};

}  // namespace catena::plugins
