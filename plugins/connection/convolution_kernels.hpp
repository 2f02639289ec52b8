// The three products behind convolutions: images with filters, its adjoint, images with images.
//
// All work on planes: copies of a band of an image's rows with the pad around it, apart for each
// phase of the stride, so that what a tap sees of neighbouring places lies side by side.
#pragma once

#include <catena/plugin/reduce.hpp>

#include "convolution_tiles.hpp"

namespace catena::plugins {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

// Blocks of scratch, one after another: counted, or handed out if there is memory.
class Blocks {
public:
    explicit Blocks(void* memory = nullptr) : memory_(static_cast<char*>(memory)) {}
    template <class T>
    T* take(std::int64_t n) {
        T* const block = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
        bytes_ += round_up(n * static_cast<std::int64_t>(sizeof(T)), 64);
        return block;
    }
    std::int64_t bytes() const { return bytes_; }

private:
    char* memory_;
    std::int64_t bytes_ = 0;
};

// Filters as an array with any strides; taps count through (kh, kw).
template <class T>
struct Filters {
    const T* data;
    std::int64_t output, channel, tap;  // strides

    const T& operator()(std::int64_t o, std::int64_t c, std::int64_t t) const {
        return data[o * output + c * channel + t * tap];
    }
};

// Planes of `lines` rows of places; the strides of a tap's offset, and the copy itself.
struct Planes {
    Planes(const Convolution& c, std::int64_t channels, std::int64_t band)
        : phases{std::min(c.stride.y, c.kh), std::min(c.stride.x, c.kw)},
          lines(band + (c.kh - 1) / c.stride.y),
          width(c.ow + (c.kw - 1) / c.stride.x),
          // An odd number of cache lines: planes of one place do not meet in a cache's set.
          plane(round_up(lines * width, 32) + 16),
          size(channels * phases.y * phases.x * plane) {}

    std::int64_t tap(const Convolution& c, std::int64_t channel, std::int64_t ky,
                     std::int64_t kx) const {
        const std::int64_t phase =
            (channel * phases.y + ky % c.stride.y) * phases.x + kx % c.stride.x;
        return phase * plane + ky / c.stride.y * width + kx / c.stride.x;
    }
    // Planes of x's channels [from, to) for the places of rows first, first + 1 ...
    template <class T>
    CATENA_KERNEL void fill(const Convolution& c, const T* x, std::int64_t from, std::int64_t to,
                            std::int64_t first, T* planes) const {
        for (std::int64_t channel = from; channel < to; ++channel)
            for (std::int64_t ry = 0; ry < phases.y; ++ry)
                for (std::int64_t rx = 0; rx < phases.x; ++rx, planes += plane) {
                    // Columns [left, right) of the plane come from the image.
                    const std::int64_t skip = c.pad.x - rx;
                    const std::int64_t left =
                        std::clamp<std::int64_t>(ceil_div(skip, c.stride.x), 0, width);
                    const std::int64_t right =
                        std::clamp<std::int64_t>(ceil_div(c.width + skip, c.stride.x), left, width);
                    for (std::int64_t j = 0; j < lines; ++j) {
                        const std::int64_t row = (first + j) * c.stride.y + ry - c.pad.y;
                        T* const to_row = planes + j * width;
                        if (row < 0 || row >= c.height) {
                            std::fill_n(to_row, width, T(0));
                            continue;
                        }
                        const T* const source = x + (channel * c.height + row) * c.width - skip;
                        for (std::int64_t i = 0; i < left; ++i) to_row[i] = 0;
                        if (c.stride.x == 1) {
                            CATENA_LOOP
                            for (std::int64_t i = left; i < right; ++i) to_row[i] = source[i];
                        } else {
                            for (std::int64_t i = left; i < right; ++i)
                                to_row[i] = source[i * c.stride.x];
                        }
                        for (std::int64_t i = right; i < width; ++i) to_row[i] = 0;
                    }
                }
    }

    Pair phases;
    std::int64_t lines, width;
    std::int64_t plane;
    std::int64_t size;
};

// Rows of places that are done together: their planes stay in the second cache, an image's bands
// are enough for all threads, and no band is so small that its last tile is most of it.
inline std::int64_t band_of(const Convolution& c, std::int64_t bytes, std::int64_t least) {
    constexpr std::int64_t cache = 512 << 10;
    constexpr std::int64_t pieces = 16;
    const std::int64_t row = Planes(c, c.channels, 2).size - Planes(c, c.channels, 1).size;
    const std::int64_t fits = cache / std::max<std::int64_t>(row * bytes, 1);
    const std::int64_t shared = ceil_div(c.oh * std::max<std::int64_t>(c.n, 1), pieces);
    const std::int64_t wanted =
        std::max(std::min(fits, shared), ceil_div(least, std::max<std::int64_t>(c.ow, 1)));
    const std::int64_t bands = ceil_div(c.oh, std::clamp<std::int64_t>(wanted, 1, c.oh));
    return ceil_div(c.oh, bands);
}

// y = x with filters, plus bias (may be null), or added to y.
template <class T, Isa isa>
class Convolve {
public:
    Convolve(catena_ctx* ctx, const Convolution& c, void* scratch = nullptr)
        : ctx_(ctx),
          c_(c),
          band_(band_of(c, sizeof(T), 4 * columns)),
          planes_(c, c.channels, band_),
          blocks_(scratch) {
        const std::int64_t panels = ceil_div(c.outputs, tile_rows);
        weights_ = blocks_.take<T>(panels * c.taps() * tile_rows);
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
        const std::int64_t per_channel = c.kh * c.kw;
        for (std::int64_t i = 0; i < k; ++i)
            taps_[i] = planes_.tap(c, i / per_channel, i % per_channel / c.kw, i % c.kw);
        auto pack = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t p = begin; p < end; ++p)
                for (std::int64_t r = 0; r < tile_rows; ++r) {
                    const std::int64_t o = p * tile_rows + r;
                    T* const to = weights_ + p * k * tile_rows + r;
                    std::int64_t i = 0;
                    for (std::int64_t channel = 0; channel < c.channels; ++channel)
                        for (std::int64_t t = 0; t < per_channel; ++t, ++i)
                            to[i * tile_rows] = o < c.outputs ? filters(o, channel, t) : T(0);
                }
        };
        parallel<isa>(ctx_, ceil_div(c.outputs, tile_rows), k * tile_rows, pack);
        const std::int64_t bands = ceil_div(c.oh, band_);
        auto piece = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
            Blocks blocks(own_ + own_bytes_ * slot);
            const Own own = take(blocks);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t n = i / bands;
                const std::int64_t first = i % bands * band_;
                planes_.fill(c, x + n * c.image(), 0, c.channels, first, own.planes);
                const std::int64_t pixels = std::min(band_, c.oh - first) * c.ow;
                T* const out = y + n * c.outputs * c.pixels() + first * c.ow;
                for (std::int64_t q = 0; q < pixels; q += columns)
                    tile(own, q, std::min(columns, pixels - q), bias, out + q, add);
            }
        };
        parallel<isa>(ctx_, c.n * bands,
                      std::max<std::int64_t>(1, c.pixels() * k * c.outputs / 8 / bands), piece);
    }

private:
    static constexpr std::int64_t lanes = Tiles<isa>::template lanes<T>;
    static constexpr std::int64_t columns = lanes * Tiles<isa>::most_vectors;
    // Taps at a time: their panel stays in the first cache.
    static constexpr std::int64_t depth = isa == Isa::x86_64_v4 ? 128 * 4 / sizeof(T) : 256;

    // What a worker has for itself.
    struct Own {
        T* planes;
        T* panel;
        T* rest;  // a tile that does not end where y does
        Run* runs;
    };
    Own take(Blocks& blocks) const {
        return {blocks.take<T>(planes_.size + lanes), blocks.take<T>(depth * columns + lanes),
                blocks.take<T>(c_.outputs * columns), blocks.take<Run>(columns)};
    }

    // Places q .. q + n of a band.
    CATENA_KERNEL void tile(const Own& own, std::int64_t q, std::int64_t n, const T* bias, T* y,
                            bool add) const {
        const Convolution& c = c_;
        std::int64_t n_runs = 0;
        for (std::int64_t done = 0; done < n;) {
            const std::int64_t row = (q + done) / c.ow;
            const std::int64_t x = (q + done) % c.ow;
            const std::int64_t length = std::min(n - done, c.ow - x);
            own.runs[n_runs++] = {done, row * planes_.width + x, length};
            done += length;
        }
        const bool whole = n % lanes == 0;
        T* const out = whole ? y : own.rest;
        const std::int64_t ld = whole ? c.pixels() : columns;
        const std::int64_t k = c.taps();
        std::int64_t from = 0;
        do {
            const std::int64_t part = std::min(depth, k - from);
            Tiles<isa>::pack(own.planes, taps_ + from, part, own.runs, n_runs, own.panel, columns);
            for (std::int64_t o = 0; o < c.outputs; o += tile_rows) {
                const std::int64_t rows = std::min<std::int64_t>(tile_rows, c.outputs - o);
                with_tile<Tiles<isa>::most_vectors>(
                    rows, ceil_div(n, lanes), [&](auto r, auto v) CATENA_LAMBDA {
                        Tiles<isa>::template product<T, r(), v()>(
                            weights_ + o * k + from * tile_rows, own.panel, columns, part,
                            out + o * ld, ld, rows,
                            bias != nullptr && from == 0 ? bias + o : nullptr,
                            from > 0 || (whole && add));
                    });
            }
            from += depth;
        } while (from < k);
        if (whole) return;
        for (std::int64_t o = 0; o < c.outputs; ++o)
            for (std::int64_t j = 0; j < n; ++j)
                store(y[o * c.pixels() + j], add, own.rest[o * columns + j]);
    }

    catena_ctx* ctx_;
    Convolution c_;
    std::int64_t band_;
    Planes planes_;
    Blocks blocks_;
    T* weights_;
    std::int64_t* taps_;
    char* own_;
    std::int64_t own_bytes_;
};

// gw = for each tap the sum of gy times x at the tap's place, or added to gw. Groups of images and of
// channels have sums of their own, which are added up at the end: as many as the sizes say, not the
// threads.
template <class T, Isa isa>
class Correlate {
public:
    Correlate(catena_ctx* ctx, const Convolution& c, void* scratch = nullptr)
        : ctx_(ctx),
          c_(c),
          outputs_(round_up(c.outputs, lanes)),
          groups_(groups_of(c)),
          channels_(ceil_div(c.channels, std::min(c.channels, ceil_div(pieces, groups_)))),
          parts_(ceil_div(c.channels, channels_)),
          taps_(round_up(channels_ * c.kh * c.kw, tile_rows)),
          band_(std::clamp<std::int64_t>(places / c.ow, 1, c.oh)),
          planes_(c, channels_, band_),
          blocks_(scratch) {
        offsets_ = blocks_.take<std::int64_t>(taps_);
        sums_ = blocks_.take<T>(groups_ * parts_ * taps_ * outputs_);
        Blocks own;
        take(own);
        own_bytes_ = own.bytes();
        own_ = blocks_.take<char>(own_bytes_ * host().slots(ctx));
    }
    std::uint64_t bytes() const { return static_cast<std::uint64_t>(blocks_.bytes()); }

    CATENA_KERNEL void run(const T* x, const T* gy, T* gw, bool add) const {
        const Convolution& c = c_;
        const std::int64_t per_channel = c.kh * c.kw;
        for (std::int64_t i = 0; i < taps_; ++i)
            offsets_[i] = i < channels_ * per_channel
                              ? planes_.tap(c, i / per_channel, i % per_channel / c.kw, i % c.kw)
                              : 0;
        auto piece = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
            Blocks blocks(own_ + own_bytes_ * slot);
            const Own own = take(blocks);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t group = i / parts_;
                sum_group(own, x, gy, c.n * group / groups_, c.n * (group + 1) / groups_,
                          i % parts_ * channels_, sums_ + i * taps_ * outputs_);
            }
        };
        parallel<isa>(ctx_, groups_ * parts_,
                      c.n * c.pixels() * c.taps() * c.outputs / 8 / (groups_ * parts_) + 1, piece);
        const std::int64_t group_step = parts_ * taps_ * outputs_;
        auto gather = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t channel = i / per_channel;
                const T* from = sums_ + ((channel / channels_ * taps_) +
                                         channel % channels_ * per_channel + i % per_channel) *
                                            outputs_;
                for (std::int64_t o = 0; o < c.outputs; ++o) {
                    T sum = from[o];
                    for (std::int64_t g = 1; g < groups_; ++g) sum += from[g * group_step + o];
                    store(gw[o * c.taps() + i], add, sum);
                }
            }
        };
        parallel<isa>(ctx_, c.taps(), c.outputs * groups_, gather);
    }

private:
    static constexpr std::int64_t lanes = Tiles<isa>::template lanes<T>;
    static constexpr std::int64_t columns = lanes * Tiles<isa>::most_vectors;
    static constexpr std::int64_t places = 128;  // at a time: their gy stays in the first cache
    static constexpr std::int64_t pieces = 16;
    static constexpr std::int64_t most_sums = 1 << 21;  // elements

    static std::int64_t groups_of(const Convolution& c) {
        const std::int64_t filters = std::max<std::int64_t>(c.outputs * c.taps(), 1);
        return std::clamp<std::int64_t>(std::min(pieces, most_sums / filters), 1, c.n);
    }

    struct Own {
        T* planes;
        T* panel;  // gy with its channels innermost
    };
    Own take(Blocks& blocks) const {
        return {blocks.take<T>(planes_.size + lanes), blocks.take<T>(band_ * c_.ow * columns)};
    }

    // Images [from, to), channels from `channel` on.
    CATENA_KERNEL void sum_group(const Own& own, const T* x, const T* gy, std::int64_t from,
                                 std::int64_t to, std::int64_t channel, T* sums) const {
        const Convolution& c = c_;
        const std::int64_t last = std::min(channel + channels_, c.channels);
        const std::int64_t taps = (last - channel) * c.kh * c.kw;
        for (std::int64_t n = from; n < to; ++n)
            for (std::int64_t first = 0; first < c.oh; first += band_) {
                planes_.fill(c, x + n * c.image(), channel, last, first, own.planes);
                const std::int64_t lines = std::min(band_, c.oh - first);
                for (std::int64_t o = 0; o < outputs_; o += columns) {
                    const std::int64_t width = std::min(columns, outputs_ - o);
                    turn(gy + n * c.outputs * c.pixels() + first * c.ow, o, width, lines * c.ow,
                         own.panel);
                    for (std::int64_t t = 0; t < taps; t += tile_rows)
                        with_tile<Tiles<isa>::most_vectors>(
                            taps - t, width / lanes, [&](auto r, auto v) CATENA_LAMBDA {
                                Tiles<isa>::template correlate<T, r(), v()>(
                                    own.planes, offsets_ + t, lines, c.ow, planes_.width, own.panel,
                                    sums + t * outputs_ + o, outputs_, n > from || first > 0);
                            });
                }
            }
    }
    // panel[place][0 .. width) = channels [o, o + width) of gy's places, 0 beyond the last.
    CATENA_KERNEL void turn(const T* gy, std::int64_t o, std::int64_t width, std::int64_t n,
                            T* panel) const {
        for (std::int64_t j = 0; j < width; ++j) {
            const T* const from = gy + (o + j) * c_.pixels();
            if (o + j < c_.outputs)
                for (std::int64_t p = 0; p < n; ++p) panel[p * width + j] = from[p];
            else
                for (std::int64_t p = 0; p < n; ++p) panel[p * width + j] = 0;
        }
    }

    catena_ctx* ctx_;
    Convolution c_;
    std::int64_t outputs_;   // rounded up to whole vectors
    std::int64_t groups_;    // of images
    std::int64_t channels_;  // in a part
    std::int64_t parts_;     // of channels
    std::int64_t taps_;      // of a part, rounded up to whole tiles
    std::int64_t band_;
    Planes planes_;
    Blocks blocks_;
    std::int64_t* offsets_;
    T* sums_;
    char* own_;
    std::int64_t own_bytes_;
};

// Taps of a filter that lie within the image: those of rows (or columns) [from, to).
struct Inside {
    Inside(std::int64_t place, std::int64_t stride, std::int64_t pad, std::int64_t size,
           std::int64_t side)
        : first(place * stride - pad),
          from(std::max<std::int64_t>(0, -first)),
          to(std::min(size, side - first)) {}
    std::int64_t first;
    std::int64_t from;
    std::int64_t to;
};

// gx = the adjoint of convolve(), plus bias for each channel (may be null), or added to gx.
template <class T>
CATENA_KERNEL void scatter(const auto& call, const Convolution& c, const T* gy, const T* w,
                           const T* bias, T* gx, bool add) {
    call.parallel(
        c.n * c.channels, c.pixels() * c.outputs * c.kh * c.kw,
        [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t n = i / c.channels;
                const std::int64_t ch = i % c.channels;
                T* const image = gx + i * c.height * c.width;
                for (std::int64_t j = 0; j < c.height * c.width; ++j)
                    store(image[j], add, bias != nullptr ? bias[ch] : T(0));
                for (std::int64_t o = 0; o < c.outputs; ++o)
                    for (std::int64_t p = 0; p < c.pixels(); ++p) {
                        const Inside rows(p / c.ow, c.stride.y, c.pad.y, c.kh, c.height);
                        const Inside columns(p % c.ow, c.stride.x, c.pad.x, c.kw, c.width);
                        const T g = gy[(n * c.outputs + o) * c.pixels() + p];
                        for (std::int64_t ky = rows.from; ky < rows.to; ++ky)
                            for (std::int64_t kx = columns.from; kx < columns.to; ++kx)
                                image[(rows.first + ky) * c.width + columns.first + kx] +=
                                    g * w[((o * c.channels + ch) * c.kh + ky) * c.kw + kx];
                    }
            }
        });
}

// The convolution of gy with turned filters that is the adjoint of c, if there is one.
inline bool has_adjoint(const Convolution& c) {
    return c.stride.y == 1 && c.stride.x == 1 && c.pad.y < c.kh && c.pad.x < c.kw;
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

// y = x with w, plus bias (may be null), or added to y.
template <class T, class Call>
CATENA_KERNEL void convolve(const Call& call, const Convolution& c, const T* x, const T* w,
                            const T* bias, T* y, bool add) {
    if (c.n * c.outputs == 0) return;
    const Convolve<T, Call::isa> product(call.context(), c, call.template scratch<char>());
    product.run(x, {w, c.taps(), c.kh * c.kw, 1}, bias, y, add);
}
// gx = the adjoint of convolve() for gy, plus bias for each channel (may be null), or added to gx.
template <class T, class Call>
CATENA_KERNEL void convolve_back(const Call& call, const Convolution& c, const T* gy, const T* w,
                                 const T* bias, T* gx, bool add) {
    if (c.n * c.channels == 0) return;
    if (!has_adjoint(c)) return scatter(call, c, gy, w, bias, gx, add);
    const Convolve<T, Call::isa> product(call.context(), adjoint_of(c),
                                         call.template scratch<char>());
    product.run(gy, {w + c.kh * c.kw - 1, c.kh * c.kw, c.taps(), -1}, bias, gx, add);
}
// gw = the gradient of convolve() for w, or added to gw.
template <class T, class Call>
CATENA_KERNEL void correlate(const Call& call, const Convolution& c, const T* x, const T* gy, T* gw,
                             bool add) {
    if (c.n * c.outputs * c.channels == 0)
        return add ? void() : void(std::fill_n(gw, c.outputs * c.taps(), T(0)));
    const Correlate<T, Call::isa> product(call.context(), c, call.template scratch<char>());
    product.run(x, gy, gw, add);
}

// Scratch of the products above, enough for each instruction set.
template <class T, template <class, Isa> class Product, Isa... isa>
std::uint64_t scratch_of(catena_ctx* ctx, const Convolution& c, IsaList<isa...>) {
    return std::max({Product<T, isa>(ctx, c).bytes()...});
}
struct Wanted {
    bool convolve;
    bool back;
    bool correlate;
};
template <class T>
std::uint64_t scratch_for(const auto& call, const Convolution& c, Wanted wanted) {
    std::uint64_t bytes = 0;
    catena_ctx* const ctx = call.context();
    if (wanted.convolve) bytes = scratch_of<T, Convolve>(ctx, c, Isas());
    if (wanted.back && has_adjoint(c))
        bytes = std::max(bytes, scratch_of<T, Convolve>(ctx, adjoint_of(c), Isas()));
    if (wanted.correlate && c.n * c.outputs * c.channels > 0)
        bytes = std::max(bytes, scratch_of<T, Correlate>(ctx, c, Isas()));
    return bytes;
}

// gb = gy summed over all but its channels, or added to gb.
template <class T>
CATENA_KERNEL void sum_channels(const auto& call, const Tensor<const T>& gy, T* gb, bool add) {
    sum_axes(call, Reduction(gy.shape, [](std::size_t d) { return d != 1; }), gy.data, gb, add);
}

}  // namespace catena::plugins
