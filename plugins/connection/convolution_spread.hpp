// The adjoint of images with filters: what each tap gives its places is added to them.
#pragma once

#include "convolution_planes.hpp"

namespace catena::plugins {

// x = the sum of filters, weighted with y, at each of their places, plus bias for each channel (may be
// null), or added to x. There is an image and a channel.
template <class T, Isa isa>
class Spread : public ConvolutionProduct {
public:
    Spread(catena_ctx* ctx, const Convolution& c, void* scratch = nullptr)
        : ConvolutionProduct(ctx, c, scratch),
          channels_(channels_of(c)),
          shares_(ceil_div(c.channels, channels_)),
          taps_(round_up(channels_ * c.kh * c.kw, tile_rows)),
          planes_(c, channels_, c.oh) {
        weights_ = blocks_.take<T>(shares_ * taps_ * c.outputs);
        offsets_ = blocks_.take<std::int64_t>(taps_);
        take_for_workers([&](Blocks& own) { take(own); });
    }

    CATENA_KERNEL void run(const T* y, const Filters<T>& filters, const T* bias, T* x,
                           bool add) const {
        const Convolution& c = c_;
        const std::int64_t used = channels_ * c.kh * c.kw;
        // Neighbouring taps are of different channels: what one adds, the next does not wait for.
        for (std::int64_t i = 0; i < used; ++i) {
            const std::int64_t t = i / channels_;
            offsets_[i] = planes_.tap(c, i % channels_, t / c.kw, t % c.kw);
        }
        auto pack = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t at = i % taps_;
                const std::int64_t channel = i / taps_ * channels_ + at % channels_;
                T* to = weights_ + i / tile_rows * tile_rows * c.outputs + i % tile_rows;
                const bool is = at < used && channel < c.channels;
                for (std::int64_t o = 0; o < c.outputs; ++o, to += tile_rows)
                    *to = is ? filters(o, channel, at / channels_) : T(0);
            }
        };
        parallel<isa>(ctx_, shares_ * taps_, c.outputs, pack);
        auto work = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
            Blocks blocks = blocks_of(slot);
            const Own own = take(blocks);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t n = i / shares_;
                const std::int64_t share = i % shares_;
                std::fill_n(own.planes, planes_.size, T(0));
                for (std::int64_t q = 0; q < c.pixels(); q += columns)
                    tile(own, y + n * c.outputs * c.pixels(), q, std::min(columns, c.pixels() - q),
                         weights_ + share * taps_ * c.outputs);
                planes_.empty(c, own.planes, share * channels_,
                              std::min((share + 1) * channels_, c.channels), bias,
                              x + n * c.image(), add);
            }
        };
        parallel<isa>(ctx_, c.n * shares_, c.pixels() * c.taps() * c.outputs / (8 * shares_) + 1,
                      work);
    }

private:
    static constexpr std::int64_t lanes = Tiles<isa>::template lanes<T>;
    static constexpr std::int64_t columns = lanes * Tiles<isa>::most_vectors;
    static constexpr std::int64_t cache = 512 << 10;  // bytes of planes at a time
    static constexpr std::int64_t pieces = 16;

    // Channels that are done together.
    static std::int64_t channels_of(const Convolution& c) {
        const std::int64_t bytes = Planes(c, 1, c.oh).size * static_cast<std::int64_t>(sizeof(T));
        const std::int64_t shared = ceil_div(c.channels * c.n, pieces);
        return std::clamp<std::int64_t>(std::min(cache / bytes, std::max<std::int64_t>(shared, 6)),
                                        1, c.channels);
    }

    // What a worker has for itself.
    struct Own {
        T* planes;
        T* panel;
        T* tile;
        Run* runs;
    };
    Own take(Blocks& blocks) const {
        return {blocks.take<T>(planes_.size), blocks.take<T>(c_.outputs * columns),
                blocks.take<T>(tile_rows * columns), blocks.take<Run>(columns)};
    }

    // Places q .. q + n of an image.
    CATENA_KERNEL void tile(const Own& own, const T* y, std::int64_t q, std::int64_t n,
                            const T* weights) const {
        const std::int64_t n_runs = planes_.cut(c_, q, n, c_.pixels(), 0, own.runs);
        for (std::int64_t o = 0; o < c_.outputs; ++o) {
            T* const to = own.panel + o * columns;
            const T* const from = y + o * c_.pixels() + q;
            CATENA_LOOP
            for (std::int64_t j = 0; j < n; ++j) to[j] = from[j];
        }
        const std::int64_t used = channels_ * c_.kh * c_.kw;
        for (std::int64_t t = 0; t < used; t += tile_rows) {
            const std::int64_t rows = std::min<std::int64_t>(tile_rows, used - t);
            with_tile<Tiles<isa>::most_vectors>(
                rows, ceil_div(n, lanes), [&](auto r, auto v) CATENA_LAMBDA {
                    Tiles<isa>::template product<T, r(), v()>(weights + t * c_.outputs, own.panel,
                                                              columns, c_.outputs, own.tile,
                                                              columns, rows, nullptr, false);
                });
            for (std::int64_t r = 0; r < rows; ++r)
                Tiles<isa>::spread(own.tile + r * columns, own.runs, n_runs,
                                   own.planes + offsets_[t + r]);
        }
    }

    std::int64_t channels_;  // in a share
    std::int64_t shares_;
    std::int64_t taps_;  // of a share, rounded up to whole tiles
    Planes planes_;
    T* weights_;
    std::int64_t* offsets_;
};

}  // namespace catena::plugins
