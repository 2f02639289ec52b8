// Images with images: the gradient of filters.
#pragma once

#include "convolution_planes.hpp"

namespace catena::plugins {

// gw = for each tap the sum of gy times x at the tap's place, or added to gw. There is an image, an
// output and a channel. A unit is a band of an image, or some small images. Groups of units have sums
// of their own, which are added up at the end: as many as the sizes say, not the threads.
template <class T, Isa isa>
class Correlate : public ConvolutionProduct {
public:
    Correlate(catena_ctx* ctx, const Convolution& c, void* scratch = nullptr)
        : ConvolutionProduct(ctx, c, scratch),
          outputs_(round_up(c.outputs, lanes)),
          images_(std::clamp<std::int64_t>(places / c.pixels(), 1, c.n)),
          band_(images_ > 1 ? c.oh : std::clamp<std::int64_t>(places / c.ow, 1, c.oh)),
          bands_(ceil_div(c.oh, band_)),
          units_(ceil_div(c.n, images_) * bands_),
          groups_(std::clamp<std::int64_t>(std::min(pieces, most_sums / (c.outputs * c.taps())), 1,
                                           units_)),
          channels_(ceil_div(c.channels, std::min(c.channels, ceil_div(pieces, groups_)))),
          parts_(ceil_div(c.channels, channels_)),
          taps_(round_up(channels_ * c.kh * c.kw, tile_rows)),
          planes_(c, channels_, band_) {
        offsets_ = blocks_.take<std::int64_t>(taps_);
        sums_ = blocks_.take<T>(groups_ * parts_ * taps_ * outputs_);
        take_for_workers([&](Blocks& own) { take(own); });
    }

    CATENA_KERNEL void run(const T* x, const T* gy, T* gw, bool add) const {
        const Convolution& c = c_;
        const std::int64_t per_channel = c.kh * c.kw;
        for (std::int64_t i = 0; i < taps_; ++i)
            offsets_[i] = i < channels_ * per_channel
                              ? planes_.tap(c, i / per_channel, i % per_channel / c.kw, i % c.kw)
                              : 0;
        auto piece = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
            Blocks blocks = blocks_of(slot);
            const Own own = take(blocks);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t group = i / parts_;
                sum_group(own, x, gy, units_ * group / groups_, units_ * (group + 1) / groups_,
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

    struct Own {
        T* planes;
        T* panel;  // gy with its channels innermost
    };
    Own take(Blocks& blocks) const {
        return {blocks.take<T>(images_ * planes_.size),
                blocks.take<T>(images_ * band_ * c_.ow * columns)};
    }

    // Units [from, to), channels from `channel` on.
    CATENA_KERNEL void sum_group(const Own& own, const T* x, const T* gy, std::int64_t from,
                                 std::int64_t to, std::int64_t channel, T* sums) const {
        const Convolution& c = c_;
        const std::int64_t last = std::min(channel + channels_, c.channels);
        const std::int64_t taps = (last - channel) * c.kh * c.kw;
        for (std::int64_t unit = from; unit < to; ++unit) {
            const std::int64_t n = unit / bands_ * images_;
            const std::int64_t first = unit % bands_ * band_;
            const Places seen = {std::min(images_, c.n - n), std::min(band_, c.oh - first), c.ow,
                                 planes_.size, planes_.width};
            for (std::int64_t m = 0; m < seen.images; ++m)
                planes_.fill(c, x + (n + m) * c.image(), channel, last, first,
                             own.planes + m * planes_.size);
            for (std::int64_t o = 0; o < outputs_; o += columns) {
                const std::int64_t width = std::min(columns, outputs_ - o);
                const std::int64_t pixels = seen.lines * c.ow;
                for (std::int64_t m = 0; m < seen.images; ++m)
                    Tiles<isa>::turn(gy + ((n + m) * c.outputs + o) * c.pixels() + first * c.ow,
                                     c.pixels(), c.outputs - o, pixels,
                                     own.panel + m * pixels * width, width);
                for (std::int64_t t = 0; t < taps; t += tile_rows)
                    with_tile<Tiles<isa>::most_vectors>(
                        taps - t, width / lanes, [&](auto r, auto v) CATENA_LAMBDA {
                            Tiles<isa>::template correlate<T, r(), v()>(
                                own.planes, offsets_ + t, seen, own.panel, sums + t * outputs_ + o,
                                outputs_, unit > from);
                        });
            }
        }
    }

    std::int64_t outputs_;  // rounded up to whole vectors
    std::int64_t images_;   // in a unit
    std::int64_t band_;     // rows of places in a unit
    std::int64_t bands_;
    std::int64_t units_;
    std::int64_t groups_;    // of units
    std::int64_t channels_;  // in a part
    std::int64_t parts_;     // of channels
    std::int64_t taps_;      // of a part, rounded up to whole tiles
    Planes planes_;
    std::int64_t* offsets_;
    T* sums_;
};

}  // namespace catena::plugins
