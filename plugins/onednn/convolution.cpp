// Cuts convolutions into steps of a few images, and runs them.
#include "convolution.hpp"

#include <algorithm>

#include <catena/plugin/isa.hpp>

#include "image_steps.hpp"

namespace catena_onednn {
namespace {

using Dims = memory::dims;
constexpr auto f32 = memory::data_type::f32;

// What a step's images should fit into: the second-level cache, with room for the filters.
constexpr std::int64_t cache_bytes = 1 << 20;
// Multiply-adds for which calling a primitive, some microseconds, does not count.
constexpr std::int64_t least_work = 4'000'000;
// Pieces for all threads: they depend on the shape alone, and so do the sums.
constexpr std::int64_t most_pieces = 16;
constexpr std::int64_t few_pieces = 8;
constexpr std::int64_t block = 16;  // channels that stand together in blocked layouts

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Winograd's F(4x4, 3x3) multiplies a quarter as much, in tiles of 4 x 4 pixels, after it transformed
// the filters: that pays for many channels, and enough tiles in a step.
constexpr std::int64_t winograd_channels = 32;
constexpr std::int64_t winograd_filters = 2048;  // channels times outputs
constexpr std::int64_t winograd_tiles = 147;     // of a step; many more leave the cache
constexpr std::int64_t winograd_fewest = 48;

// How a convolution is done, and for how many images at a time.
struct Cut {
    dnnl::algorithm algorithm;
    std::int64_t images;
};

std::int64_t even(std::int64_t n, std::int64_t images) { return ceil_div(n, ceil_div(n, images)); }

Cut cut(const Geometry& g, bool winograd, std::int64_t at_least) {
    if (winograd && g.kh == 3 && g.kw == 3 && g.stride_y == 1 && g.stride_x == 1 &&
        g.n >= few_pieces / 2 && std::min(g.channels, g.outputs) >= winograd_channels &&
        g.channels * g.outputs >= winograd_filters) {
        const std::int64_t tiles = ceil_div(g.oh, 4) * ceil_div(g.ow, 4);
        const std::int64_t most = g.n >= most_pieces ? g.n / few_pieces : ceil_div(g.n, 4);
        const std::int64_t images = even(g.n, std::min(ceil_div(winograd_tiles, tiles), most));
        if (images * tiles >= winograd_fewest)
            return {dnnl::algorithm::convolution_winograd, images};
    }
    const std::int64_t bytes = (g.x_image() + g.y_image()) * 4;
    const std::int64_t images = std::min(cache_bytes / bytes, ceil_div(g.n, most_pieces));
    return {dnnl::algorithm::convolution_direct,
            even(g.n, std::clamp<std::int64_t>(std::max(images, at_least), 1, g.n))};
}
std::int64_t images_for_work(const Geometry& g) { return ceil_div(least_work, g.work()); }

// Parts of the channels, so that there are pieces for all threads; of no less than `least` channels.
std::int64_t parts_of(std::int64_t channels, std::int64_t pieces, std::int64_t least,
                      std::int64_t work) {
    std::int64_t parts = 1;
    while (pieces * parts < few_pieces && channels % (2 * parts * block) == 0 &&
           channels / (2 * parts) >= least && work / (2 * parts) >= least_work)
        parts *= 2;
    return parts;
}

// Images of which `channels` are taken and `all` are there.
memory::desc images(std::int64_t n, std::int64_t channels, std::int64_t all, std::int64_t height,
                    std::int64_t width) {
    return {
        {n, channels, height, width}, f32, Dims{all * height * width, height * width, width, 1}};
}
memory::desc any(const memory::desc& like) { return {like.dims(), f32, memory::format_tag::any}; }
memory::desc x_images(const Geometry& g, std::int64_t n, std::int64_t channels) {
    return images(n, channels, g.channels, g.height, g.width);
}
memory::desc y_images(const Geometry& g, std::int64_t n, std::int64_t outputs) {
    return images(n, outputs, g.outputs, g.oh, g.ow);
}
memory::desc filters(const Geometry& g, std::int64_t outputs, std::int64_t channels) {
    return {{outputs, channels, g.kh, g.kw}, f32, Dims{g.taps(), g.kh * g.kw, g.kw, 1}};
}

// Not every CPU has code for Winograd's.
template <class Make>
auto fastest(const Make& make) {
    try {
        return make(true);
    } catch (const dnnl::error&) {
        return make(false);
    }
}

dnnl::convolution_forward::primitive_desc forward_desc(const Geometry& g, dnnl::algorithm algorithm,
                                                       const memory::desc& x, const memory::desc& w,
                                                       const memory::desc& b,
                                                       const memory::desc& y) {
    const Dims stride = {g.stride_y, g.stride_x};
    const Dims pad = {g.pad_y, g.pad_x};
    return {{dnnl::prop_kind::forward_training, algorithm, x, w, b, y, stride, pad, pad},
            with_scratchpad(),
            engine()};
}

void add_to(float* sum, const float* values, std::int64_t n) {
    CATENA_LOOP
    for (std::int64_t i = 0; i < n; ++i) sum[i] += values[i];
}

Key key_of(const Geometry& g, std::int64_t what, bool bias, bool add) {
    return {what, bias, add,  g.n,  g.channels, g.height,   g.width, g.outputs,
            g.oh, g.ow, g.kh, g.kw, g.stride_y, g.stride_x, g.pad_y, g.pad_x};
}

}  // namespace

std::shared_ptr<const Mapping> Mapping::get(const Geometry& g, Direction direction, bool bias,
                                            bool add) {
    static auto* const cache = new Cache<Mapping>;
    return cache->get(key_of(g, direction, bias, add), [&] {
        return fastest([&](bool winograd) {
            return std::make_shared<const Mapping>(g, direction, bias, add, winograd);
        });
    });
}

Mapping::Mapping(const Geometry& g, Direction direction, bool bias, bool add, bool winograd)
    : g_(g), direction_(direction), bias_(bias), add_(add) {
    const std::int64_t channels = direction == forwards ? g.outputs : g.channels;
    const Cut chosen = cut(g, winograd, images_for_work(g));
    algorithm_ = chosen.algorithm;
    images_ = chosen.images;
    steps_ = ceil_div(g.n, images_);
    parts_ = parts_of(channels, steps_, block, g.work() * images_);
    part_ = channels / parts_;
    weights_.plain =
        direction == forwards ? filters(g, part_, g.channels) : filters(g, g.outputs, part_);
    bias_desc_ = {{part_}, f32, memory::format_tag::x};
    usual_ = make_step(images_, any(weights_.plain));
    if (const std::int64_t rest = g.n % images_; rest != 0) last_ = make_step(rest, weights_.inner);
    weights_.make_reader();
    for (std::int64_t i = 0; i < parts_; ++i) shared_.add(weights_.bytes());
    from_at_ = own_.add(usual_.from.bytes());
    to_at_ = own_.add(usual_.to.bytes());
    padding_at_ = own_.add(std::max(usual_.padding.get_size(), last_.padding.get_size()));
}

Mapping::Step Mapping::make_step(std::int64_t n, const memory::desc& weights) {
    Step step;
    step.n = n;
    if (direction_ == forwards) {
        step.from.plain = x_images(g_, n, g_.channels);
        step.to.plain = y_images(g_, n, part_);
        const auto desc = forward_desc(g_, algorithm_, any(step.from.plain), weights,
                                       bias_ ? bias_desc_ : memory::desc(), any(step.to.plain));
        require_fast(desc.impl_info_str());
        step.product = dnnl::convolution_forward(desc);
        step.from.inner = desc.src_desc();
        step.to.inner = desc.dst_desc();
        weights_.inner = desc.weights_desc();
        step.padding = desc.scratchpad_desc();
    } else {
        step.from.plain = y_images(g_, n, g_.outputs);
        step.to.plain = x_images(g_, n, part_);
        const Dims stride = {g_.stride_y, g_.stride_x};
        const Dims pad = {g_.pad_y, g_.pad_x};
        const memory::desc x = any(step.to.plain);
        const memory::desc y = any(step.from.plain);
        const dnnl::convolution_backward_data::primitive_desc desc(
            {algorithm_, x, weights, y, stride, pad, pad}, with_scratchpad(), engine(),
            forward_desc(g_, algorithm_, x, any(weights_.plain), memory::desc(), y));
        require_fast(desc.impl_info_str());
        step.product = dnnl::convolution_backward_data(desc);
        step.from.inner = desc.diff_dst_desc();
        step.to.inner = desc.diff_src_desc();
        weights_.inner = desc.weights_desc();
        step.padding = desc.scratchpad_desc();
    }
    step.from.make_reader();
    step.to.make_writer(add_ || (bias_ && direction_ == backwards));
    return step;
}

void Mapping::run(catena_ctx* ctx, const float* from, const float* w, const float* bias, float* to,
                  void* scratch) const {
    const bool forward = direction_ == forwards;
    const std::int64_t from_image = forward ? g_.x_image() : g_.y_image();
    const std::int64_t to_image = forward ? g_.y_image() : g_.x_image();
    const std::int64_t to_plane = forward ? g_.oh * g_.ow : g_.height * g_.width;
    const std::int64_t w_part = part_ * (forward ? g_.taps() : g_.kh * g_.kw);
    const std::size_t w_stride = shared_.size() / static_cast<std::size_t>(parts_);
    if (!weights_.direct())
        parallel(ctx, parts_, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
            for (std::int64_t i = begin; i < end; ++i)
                convert(weights_.convert, view(weights_.plain, w + i * w_part),
                        view(weights_.inner,
                             at<float>(scratch, static_cast<std::size_t>(i) * w_stride)));
        });
    parallel(ctx, steps_ * parts_, [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
        char* const own =
            at<char>(scratch, shared_.size() + static_cast<std::size_t>(slot) * own_.size());
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t part = i % parts_;
            const std::int64_t first = i / parts_ * images_;
            const Step& step = first + images_ <= g_.n ? usual_ : last_;
            const float* const source = from + first * from_image;
            float* const target = to + first * to_image + part * part_ * to_plane;
            const memory plain_to = view(step.to.plain, target);
            memory x = view(step.from.plain, source);
            if (!step.from.direct()) {
                const memory inner = view(step.from.inner, own + from_at_);
                convert(step.from.convert, x, inner);
                x = inner;
            }
            const bool straight = step.to.direct() && !add_ && (forward || !bias_);
            const memory y = straight ? plain_to : view(step.to.inner, own + to_at_);
            const memory weights =
                weights_.direct()
                    ? view(weights_.inner, w + part * w_part)
                    : view(weights_.inner,
                           at<float>(scratch, static_cast<std::size_t>(part) * w_stride));
            const memory padding = view(step.padding, own + padding_at_);
            if (forward) {
                std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, x},
                                                        {DNNL_ARG_WEIGHTS, weights},
                                                        {DNNL_ARG_DST, y},
                                                        {DNNL_ARG_SCRATCHPAD, padding}};
                if (bias_) args.emplace(DNNL_ARG_BIAS, view(bias_desc_, bias + part * part_));
                step.product.execute(stream(), args);
            } else {
                step.product.execute(stream(), {{DNNL_ARG_DIFF_DST, x},
                                                {DNNL_ARG_WEIGHTS, weights},
                                                {DNNL_ARG_DIFF_SRC, y},
                                                {DNNL_ARG_SCRATCHPAD, padding}});
                for (std::int64_t n = 0; bias_ && n < step.n; ++n)
                    for (std::int64_t c = 0; c < part_; ++c) {
                        float* const plane = target + n * to_image + c * to_plane;
                        const float value = bias[part * part_ + c];
                        for (std::int64_t p = 0; p < to_plane; ++p)
                            plane[p] = add_ ? plane[p] + value : value;
                    }
            }
            if (!straight) convert(step.to.convert, y, plain_to);
        }
    });
}

std::shared_ptr<const Correlation> Correlation::get(const Geometry& g, bool bias, bool add_w) {
    static auto* const cache = new Cache<Correlation>;
    return cache->get(key_of(g, 0, bias, add_w), [&] {
        return fastest([&](bool winograd) {
            return std::make_shared<const Correlation>(g, bias, add_w, winograd);
        });
    });
}

// A group's sum goes through memory after each step, so a step's images outweigh the filters.
Correlation::Correlation(const Geometry& g, bool bias, bool add_w, bool winograd)
    : g_(g), bias_(bias) {
    constexpr std::int64_t least_part = 64;  // each part reads the images again
    parts_ = parts_of(g.outputs, std::min(g.n, std::int64_t{2}), least_part, g.work() * g.n);
    part_ = g.outputs / parts_;
    const std::int64_t filter_floats = part_ * g.taps();
    const std::int64_t outweigh = 2 * filter_floats / (g.x_image() + g.y_image());
    const std::int64_t pieces = ceil_div(most_pieces, parts_);
    const Cut chosen =
        cut(g, winograd, std::max(images_for_work(g), std::min(outweigh, ceil_div(g.n, pieces))));
    algorithm_ = chosen.algorithm;
    images_ = chosen.images;
    const std::int64_t steps = ceil_div(g.n, images_);
    group_ = ceil_div(steps, std::min(steps, pieces));
    groups_ = ceil_div(steps, group_);
    weights_.plain = filters(g, part_, g.channels);
    bias_desc_ = {{part_}, f32, memory::format_tag::x};
    usual_ = make_step(images_, any(weights_.plain));
    if (const std::int64_t rest = g.n % images_; rest != 0) last_ = make_step(rest, weights_.inner);
    weights_.make_writer(add_w);
    Layout sum;
    sum.add(weights_.bytes());
    sum_stride_ = sum.size();
    Layout bias_sum;
    bias_sum.add(bias_desc_.get_size());
    bias_stride_ = bias_sum.size();
    const auto sums = static_cast<std::size_t>(groups_ * parts_);
    sums_at_ = shared_.add(sums * sum_stride_);
    biases_at_ = shared_.add(sums * bias_stride_);
    x_at_ = own_.add(usual_.x.bytes());
    gy_at_ = own_.add(usual_.gy.bytes());
    w_at_ = own_.add(weights_.bytes());
    b_at_ = own_.add(bias_desc_.get_size());
    padding_at_ = own_.add(std::max(usual_.padding.get_size(), last_.padding.get_size()));
}

Correlation::Step Correlation::make_step(std::int64_t n, const memory::desc& weights) {
    Step step;
    step.n = n;
    step.x.plain = x_images(g_, n, g_.channels);
    step.gy.plain = y_images(g_, n, part_);
    const Dims stride = {g_.stride_y, g_.stride_x};
    const Dims pad = {g_.pad_y, g_.pad_x};
    const memory::desc x = any(step.x.plain);
    const memory::desc y = any(step.gy.plain);
    const memory::desc b = bias_ ? bias_desc_ : memory::desc();
    const dnnl::convolution_backward_weights::primitive_desc desc(
        {algorithm_, x, weights, b, y, stride, pad, pad}, with_scratchpad(), engine(),
        forward_desc(g_, algorithm_, x, any(weights_.plain), b, y));
    require_fast(desc.impl_info_str());
    step.product = dnnl::convolution_backward_weights(desc);
    step.x.inner = desc.src_desc();
    step.gy.inner = desc.diff_dst_desc();
    weights_.inner = desc.diff_weights_desc();
    step.padding = desc.scratchpad_desc();
    step.x.make_reader();
    step.gy.make_reader();
    return step;
}

void Correlation::run(catena_ctx* ctx, const float* x, const float* gy, float* gw, float* gb,
                      bool add_b, void* scratch) const {
    const std::int64_t gy_part = part_ * g_.oh * g_.ow;
    const auto w_floats = static_cast<std::int64_t>(weights_.bytes() / sizeof(float));
    const auto sum_of = [&](std::int64_t group, std::int64_t part) {
        return at<float>(scratch,
                         sums_at_ + static_cast<std::size_t>(group * parts_ + part) * sum_stride_);
    };
    const auto bias_of = [&](std::int64_t group, std::int64_t part) {
        return at<float>(
            scratch, biases_at_ + static_cast<std::size_t>(group * parts_ + part) * bias_stride_);
    };
    const auto add_step = [&](char* own, std::int64_t first, std::int64_t part, float* w_sum,
                              float* b_sum, bool begins) {
        const Step& step = first + images_ <= g_.n ? usual_ : last_;
        const auto inner = [&](const Operand& operand, const float* data, std::size_t place) {
            const memory plain = view(operand.plain, data);
            if (operand.direct()) return plain;
            const memory made = view(operand.inner, own + place);
            convert(operand.convert, plain, made);
            return made;
        };
        const memory images = inner(step.x, x + first * g_.x_image(), x_at_);
        const memory outputs = inner(step.gy, gy + first * g_.y_image() + part * gy_part, gy_at_);
        float* const w = begins ? w_sum : reinterpret_cast<float*>(own + w_at_);
        float* const b = begins ? b_sum : reinterpret_cast<float*>(own + b_at_);
        std::unordered_map<int, memory> args = {
            {DNNL_ARG_SRC, images},
            {DNNL_ARG_DIFF_DST, outputs},
            {DNNL_ARG_DIFF_WEIGHTS, view(weights_.inner, w)},
            {DNNL_ARG_SCRATCHPAD, view(step.padding, own + padding_at_)}};
        if (bias_) args.emplace(DNNL_ARG_DIFF_BIAS, view(bias_desc_, b));
        step.product.execute(stream(), args);
        if (begins) return;
        add_to(w_sum, w, w_floats);
        if (bias_) add_to(b_sum, b, part_);
    };
    parallel(ctx, groups_ * parts_, [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
        char* const own =
            at<char>(scratch, shared_.size() + static_cast<std::size_t>(slot) * own_.size());
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t group = i / parts_;
            const std::int64_t part = i % parts_;
            const std::int64_t from = group * group_ * images_;
            const std::int64_t to = std::min(from + group_ * images_, g_.n);
            for (std::int64_t first = from; first < to; first += images_)
                add_step(own, first, part, sum_of(group, part), bias_of(group, part),
                         first == from);
        }
    });
    // In the order of the groups, on any number of threads.
    constexpr std::int64_t stretch = 4096;
    const std::int64_t stretches = ceil_div(w_floats, stretch);
    if (groups_ > 1)
        parallel(ctx, parts_ * stretches, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t first = i % stretches * stretch;
                const std::int64_t n = std::min(stretch, w_floats - first);
                for (std::int64_t group = 1; group < groups_; ++group)
                    add_to(sum_of(0, i / stretches) + first, sum_of(group, i / stretches) + first,
                           n);
            }
        });
    parallel(ctx, parts_, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
        for (std::int64_t part = begin; part < end; ++part) {
            convert(weights_.convert, view(weights_.inner, sum_of(0, part)),
                    view(weights_.plain, gw + part * part_ * g_.taps()));
            for (std::int64_t group = 1; bias_ && group < groups_; ++group)
                add_to(bias_of(0, part), bias_of(group, part), part_);
            for (std::int64_t o = 0; bias_ && o < part_; ++o)
                store(gb[part * part_ + o], add_b, bias_of(0, part)[o]);
        }
    });
}

}  // namespace catena_onednn
