// Kernels of convolution_2d, deconvolution_2d and the gradient for filters. A call is one or two of
// three products. A product runs in steps of a few images, each step on one thread, with tensors in
// oneDNN's blocked layout that fit into that thread's cache.
#include <algorithm>
#include <memory>

#include <catena/plugin/reduce.hpp>

#include "engine.hpp"

namespace catena_onednn {
namespace {

using Dims = memory::dims;
using Geometry = ConvolutionSizes;
using enum ConvolutionProduct;
constexpr auto f32 = memory::data_type::f32;
constexpr auto bf16 = memory::data_type::bf16;

// The size that a step's images should fit into: the second-level cache, with room for the filters.
constexpr std::int64_t cache_bytes = 1 << 20;
// The multiply-adds above which the overhead of calling a primitive, some microseconds, is negligible.
constexpr std::int64_t least_work = 4'000'000;
// Numbers of pieces for all threads. They depend only on the shape, and therefore so do the sums.
constexpr std::int64_t most_pieces = 16;
constexpr std::int64_t few_pieces = 8;
constexpr std::int64_t block = 16;  // channels of a block in blocked layouts

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Winograd's F(4x4, 3x3) transforms the filters, then needs a quarter of the multiplications, in
// tiles of 4 x 4 pixels. It is faster with many channels and with enough tiles in a step.
constexpr std::int64_t winograd_channels = 32;
constexpr std::int64_t winograd_filters = 2048;  // channels times outputs
constexpr std::int64_t winograd_tiles = 147;     // in a step; many more do not fit into the cache
constexpr std::int64_t winograd_fewest = 48;

// The algorithm of a convolution, and the number of images in a step.
struct Cut {
    dnnl::algorithm algorithm;
    std::int64_t images;
};

std::int64_t even(std::int64_t n, std::int64_t images) { return ceil_div(n, ceil_div(n, images)); }

Cut cut(const Geometry& g, bool winograd, std::int64_t at_least) {
    if (winograd && g.kh == 3 && g.kw == 3 && g.stride_y == 1 && g.stride_x == 1 &&
        g.dilate_y == 1 && g.dilate_x == 1 && g.groups == 1 && g.n >= few_pieces / 2 &&
        std::min(g.channels, g.outputs) >= winograd_channels &&
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

// Returns the number of parts of the channels for enough pieces; a part has at least `least` channels.
std::int64_t parts_of(const Geometry& g, std::int64_t channels, std::int64_t pieces,
                      std::int64_t least, std::int64_t work) {
    std::int64_t parts = 1;
    while (g.groups == 1 && pieces * parts < few_pieces && channels % (2 * parts * block) == 0 &&
           channels / (2 * parts) >= least && work / (2 * parts) >= least_work)
        parts *= 2;
    return parts;
}

// Returns the layout of images with `all` channels, of which `channels` are used.
memory::desc images(std::int64_t n, std::int64_t channels, std::int64_t all, std::int64_t height,
                    std::int64_t width) {
    return {
        {n, channels, height, width}, f32, Dims{all * height * width, height * width, width, 1}};
}
memory::desc any(const memory::desc& like, memory::data_type type) {
    return {like.dims(), type, memory::format_tag::any};
}
memory::desc filters(const Geometry& g, std::int64_t outputs, std::int64_t channels) {
    if (g.groups > 1)
        return {{g.groups, g.group_outputs(), g.group_channels(), g.kh, g.kw},
                f32,
                Dims{g.group_outputs() * g.taps(), g.taps(), g.kh * g.kw, g.kw, 1}};
    return {{outputs, channels, g.kh, g.kw}, f32, Dims{g.taps(), g.kh * g.kw, g.kw, 1}};
}

void add_to(float* sum, const float* values, std::int64_t n) {
    CATENA_LOOP
    for (std::int64_t i = 0; i < n; ++i) sum[i] += values[i];
}

struct Spec {
    Geometry sizes;
    ConvolutionProduct product;
    bool bias;  // with a bias, or, for `filter`, its gradient
    bool add;   // adds to the result
    bool half;  // rounds the operands to bfloat16

    auto operator<=>(const Spec&) const = default;
};

// The product for n images, and the layouts of its operands.
struct Step {
    std::int64_t n = 0;
    Operand x, y;
    Primitive product;
};

// The shared part of the three products.
class Product {
public:
    std::size_t scratch_bytes(std::int32_t slots) const {
        return shared_.size() + static_cast<std::size_t>(slots) * own_.size();
    }

protected:
    explicit Product(const Spec& s) : s_(s), g_(s_.sizes) {}
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    // Makes a step and the filters' layout, then a second step for the remaining images.
    void make_steps(const Cut& cut, const memory::desc& filters) {
        images_ = cut.images;
        weights_.plain = filters;
        const std::int64_t rest = g_.n % images_;
        usual_ = make_step(cut.algorithm, images_, any(filters, type(s_.product != filter)));
        if (rest != 0) last_ = make_step(cut.algorithm, rest, weights_.inner);
    }
    const Step& step(std::int64_t first) const { return first + images_ <= g_.n ? usual_ : last_; }
    std::size_t padding_bytes() const {
        return std::max(usual_.product.padding_bytes(), last_.product.padding_bytes());
    }
    // Returns the scratch memory of one thread.
    char* own(void* scratch, std::int32_t slot) const {
        return at<char>(scratch, shared_.size() + static_cast<std::size_t>(slot) * own_.size());
    }
    // Returns the data in the primitive's layout; a converted copy is written to `place`.
    static memory inner(const Operand& operand, const float* data, char* place) {
        const memory plain = view(operand.plain, data);
        if (operand.direct()) return plain;
        const memory made = view(operand.inner, place);
        convert(operand.convert, plain, made);
        return made;
    }

    const Spec s_;
    const Geometry& g_;
    std::int64_t parts_ = 1;   // of the channels of the result
    std::int64_t part_ = 0;    // channels in a part
    std::int64_t images_ = 0;  // in a step
    Operand weights_;
    memory::desc bias_desc_;
    Step usual_, last_;
    Layout shared_, own_;

private:
    template <class P>
    void take(Step& step, const typename P::primitive_desc& desc, const memory::desc& x,
              const memory::desc& y, const memory::desc& weights) {
        require_fast(desc.impl_info_str());
        step.product = Primitive::make<P>(desc);
        step.x.inner = x;
        step.y.inner = y;
        weights_.inner = weights;
    }
    memory::data_type type(bool operand) const { return operand && s_.half ? bf16 : f32; }
    Step make_step(dnnl::algorithm algorithm, std::int64_t n, const memory::desc& weights) {
        Step step;
        step.n = n;
        step.x.plain =
            images(n, s_.product == data ? part_ : g_.channels, g_.channels, g_.height, g_.width);
        step.y.plain = images(n, s_.product == data ? g_.outputs : part_, g_.outputs, g_.oh, g_.ow);
        const memory::desc x = any(step.x.plain, type(s_.product != data));
        const memory::desc y = any(step.y.plain, type(s_.product != forward));
        const memory::desc b = s_.bias && s_.product != data ? bias_desc_ : memory::desc();
        const Dims stride = {g_.stride_y, g_.stride_x}, pad = {g_.pad_y, g_.pad_x};
        const Dims skipped = {g_.dilate_y - 1, g_.dilate_x - 1};  // pixels between two of a filter
        using Forward = dnnl::convolution_forward;
        using Data = dnnl::convolution_backward_data;
        using Filter = dnnl::convolution_backward_weights;
        // The others need one of any layout as a hint.
        const Forward::primitive_desc desc(
            {dnnl::prop_kind::forward_training, algorithm, any(x, type(true)),
             s_.product == forward ? weights : any(weights, type(true)), b,
             s_.product == forward ? y : any(y, type(true)), stride, skipped, pad, pad},
            with_scratchpad(), engine());
        if (s_.product == forward) {
            take<Forward>(step, desc, desc.src_desc(), desc.dst_desc(), desc.weights_desc());
        } else if (s_.product == data) {
            const Data::primitive_desc back({algorithm, x, weights, y, stride, skipped, pad, pad},
                                            with_scratchpad(), engine(), desc);
            take<Data>(step, back, back.diff_src_desc(), back.diff_dst_desc(), back.weights_desc());
        } else {
            const Filter::primitive_desc back(
                {algorithm, x, weights, b, y, stride, skipped, pad, pad}, with_scratchpad(),
                engine(), desc);
            take<Filter>(step, back, back.src_desc(), back.diff_dst_desc(),
                         back.diff_weights_desc());
        }
        if (s_.product == data) step.x.make_writer(s_.add || s_.bias);
        else step.x.make_reader();
        if (s_.product == forward) step.y.make_writer(s_.add);
        else step.y.make_reader();
        return step;
    }
};

// Products whose result is images: y from x and W, or, as the adjoint, x from y and W.
class Mapping : public Product {
public:
    Mapping(const Spec& s, bool winograd) : Product(s), forward_(s.product == forward) {
        const std::int64_t channels = forward_ ? g_.outputs : g_.channels;
        const Cut chosen = cut(g_, winograd, images_for_work(g_));
        steps_ = ceil_div(g_.n, chosen.images);
        parts_ = parts_of(g_, channels, steps_, block, g_.work() * chosen.images);
        part_ = channels / parts_;
        bias_desc_ = {{part_}, f32, memory::format_tag::x};
        make_steps(chosen,
                   forward_ ? filters(g_, part_, g_.channels) : filters(g_, g_.outputs, part_));
        weights_.make_reader();
        for (std::int64_t i = 0; i < parts_; ++i) shared_.add(weights_.bytes());
        from_at_ = own_.add(from(usual_).bytes());
        to_at_ = own_.add(to(usual_).bytes());
        padding_at_ = own_.add(padding_bytes());
    }

    // Computes to_data.
    void run(catena_ctx* ctx, const float* from_data, const float* w, const float* bias,
             float* to_data, void* scratch) const {
        const std::int64_t from_image = forward_ ? g_.x_image() : g_.y_image();
        const std::int64_t to_image = forward_ ? g_.y_image() : g_.x_image();
        const std::int64_t to_plane = forward_ ? g_.oh * g_.ow : g_.height * g_.width;
        const std::int64_t w_part = part_ * (forward_ ? g_.taps() : g_.kh * g_.kw);
        const std::size_t w_stride = shared_.size() / static_cast<std::size_t>(parts_);
        const auto weights_of = [&](std::int64_t part) {
            return weights_.direct()
                       ? view(weights_.inner, w + part * w_part)
                       : view(weights_.inner,
                              at<float>(scratch, static_cast<std::size_t>(part) * w_stride));
        };
        if (!weights_.direct())
            parallel(ctx, parts_, [&](std::int64_t i, std::int32_t) {
                convert(weights_.convert, view(weights_.plain, w + i * w_part), weights_of(i));
            });
        const auto run_step = [&](char* own, std::int64_t first, std::int64_t part) {
            const Step& s = step(first);
            float* const target = to_data + first * to_image + part * part_ * to_plane;
            const memory source = inner(from(s), from_data + first * from_image, own + from_at_);
            const memory plain = view(to(s).plain, target);
            const bool straight = to(s).direct() && !s_.add && (forward_ || !s_.bias);
            const memory result = straight ? plain : view(to(s).inner, own + to_at_);
            std::unordered_map<int, memory> arguments = {
                {forward_ ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, source},
                {DNNL_ARG_WEIGHTS, weights_of(part)},
                {forward_ ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, result}};
            if (forward_ && s_.bias)
                arguments.emplace(DNNL_ARG_BIAS, view(bias_desc_, bias + part * part_));
            s.product.run(std::move(arguments), own + padding_at_);
            for (std::int64_t n = 0; !forward_ && s_.bias && n < s.n; ++n)
                for (std::int64_t c = 0; c < part_; ++c) {
                    float* const plane = target + n * to_image + c * to_plane;
                    const float value = bias[part * part_ + c];
                    for (std::int64_t p = 0; p < to_plane; ++p)
                        plane[p] = s_.add ? plane[p] + value : value;
                }
            if (!straight) convert(to(s).convert, result, plain);
        };
        parallel(ctx, steps_ * parts_, [&](std::int64_t i, std::int32_t slot) {
            run_step(own(scratch, slot), i / parts_ * images_, i % parts_);
        });
    }

private:
    const Operand& from(const Step& s) const { return forward_ ? s.x : s.y; }
    const Operand& to(const Step& s) const { return forward_ ? s.y : s.x; }

    bool forward_;
    std::int64_t steps_;  // for all images
    std::size_t from_at_, to_at_, padding_at_;
};

// Products of images with images: the gradients of the filters and of the bias.
class Correlation : public Product {
public:
    // Each step reads and writes its group's sum, so its images should be larger than the filters.
    Correlation(const Spec& s, bool winograd) : Product(s) {
        constexpr std::int64_t least_part = 64;  // each part reads the images again
        parts_ =
            parts_of(g_, g_.outputs, std::min(g_.n, std::int64_t{2}), least_part, g_.work() * g_.n);
        part_ = g_.outputs / parts_;
        const std::int64_t filter_floats = part_ * g_.taps();
        const std::int64_t outweigh = 2 * filter_floats / (g_.x_image() + g_.y_image());
        const std::int64_t pieces = ceil_div(most_pieces, parts_);
        bias_desc_ = {{part_}, f32, memory::format_tag::x};
        make_steps(cut(g_, winograd,
                       std::max(images_for_work(g_), std::min(outweigh, ceil_div(g_.n, pieces)))),
                   filters(g_, part_, g_.channels));
        weights_.make_writer(s.add);
        const std::int64_t steps = ceil_div(g_.n, images_);
        group_ = ceil_div(steps, std::min(steps, pieces));
        groups_ = ceil_div(steps, group_);
        for (std::int64_t i = 0; i < groups_ * parts_; ++i) {
            const std::size_t at = shared_.add(weights_.bytes());
            bias_after_ = shared_.add(bias_desc_.get_size()) - at;
        }
        x_at_ = own_.add(usual_.x.bytes());
        gy_at_ = own_.add(usual_.y.bytes());
        w_at_ = own_.add(weights_.bytes());
        b_at_ = own_.add(bias_desc_.get_size());
        padding_at_ = own_.add(padding_bytes());
    }

    // gb may be null if there is no bias.
    void run(catena_ctx* ctx, const float* x, const float* gy, float* gw, float* gb, bool add_b,
             void* scratch) const {
        const std::int64_t gy_part = part_ * g_.oh * g_.ow;
        const auto w_floats = static_cast<std::int64_t>(weights_.bytes() / sizeof(float));
        const std::size_t each = shared_.size() / static_cast<std::size_t>(groups_ * parts_);
        const auto sum_of = [&](std::int64_t group, std::int64_t part) {
            return at<float>(scratch, static_cast<std::size_t>(group * parts_ + part) * each);
        };
        const auto bias_of = [&](std::int64_t group, std::int64_t part) {
            return at<float>(sum_of(group, part), bias_after_);
        };
        const auto add_step = [&](char* place, std::int64_t first, std::int64_t part, float* w_sum,
                                  float* b_sum, bool begins) {
            const Step& s = step(first);
            const memory images = inner(s.x, x + first * g_.x_image(), place + x_at_);
            const memory outputs =
                inner(s.y, gy + first * g_.y_image() + part * gy_part, place + gy_at_);
            float* const w = begins ? w_sum : at<float>(place, w_at_);
            float* const b = begins ? b_sum : at<float>(place, b_at_);
            std::unordered_map<int, memory> arguments = {
                {DNNL_ARG_SRC, images},
                {DNNL_ARG_DIFF_DST, outputs},
                {DNNL_ARG_DIFF_WEIGHTS, view(weights_.inner, w)}};
            if (s_.bias) arguments.emplace(DNNL_ARG_DIFF_BIAS, view(bias_desc_, b));
            s.product.run(std::move(arguments), place + padding_at_);
            if (begins) return;
            add_to(w_sum, w, w_floats);
            if (s_.bias) add_to(b_sum, b, part_);
        };
        parallel(ctx, groups_ * parts_, [&](std::int64_t i, std::int32_t slot) {
            const std::int64_t group = i / parts_, part = i % parts_;
            const std::int64_t from = group * group_ * images_;
            const std::int64_t to = std::min(from + group_ * images_, g_.n);
            for (std::int64_t first = from; first < to; first += images_)
                add_step(own(scratch, slot), first, part, sum_of(group, part), bias_of(group, part),
                         first == from);
        });
        // Adds the groups' sums in a fixed order, for any number of threads.
        constexpr std::int64_t stretch = 4096;
        const std::int64_t stretches = ceil_div(w_floats, stretch);
        if (groups_ > 1)
            parallel(ctx, parts_ * stretches, [&](std::int64_t i, std::int32_t) {
                const std::int64_t first = i % stretches * stretch;
                const std::int64_t n = std::min(stretch, w_floats - first);
                for (std::int64_t group = 1; group < groups_; ++group)
                    add_to(sum_of(0, i / stretches) + first, sum_of(group, i / stretches) + first,
                           n);
            });
        parallel(ctx, parts_, [&](std::int64_t part, std::int32_t) {
            convert(weights_.convert, view(weights_.inner, sum_of(0, part)),
                    view(weights_.plain, gw + part * part_ * g_.taps()));
            for (std::int64_t group = 1; s_.bias && group < groups_; ++group)
                add_to(bias_of(0, part), bias_of(group, part), part_);
            for (std::int64_t o = 0; s_.bias && o < part_; ++o)
                store(gb[part * part_ + o], add_b, bias_of(0, part)[o]);
        });
    }

private:
    std::int64_t groups_;         // groups of steps; each group has its own sum
    std::int64_t group_;          // steps in a group
    std::size_t bias_after_ = 0;  // bytes from a group's sum to its sum for the bias
    std::size_t x_at_, gy_at_, w_at_, b_at_, padding_at_;
};

// Returns a product from the cache, or makes it: without Winograd or bfloat16 if this CPU has no code for it.
template <class T>
std::shared_ptr<const T> made_for_product(const Spec& spec) {
    static auto* const cache = new Cache<Spec, std::shared_ptr<const T>>(128);
    if (auto found = cache->find(spec)) return *found;
    require_memory();
    const Undisturbed guard;  // oneDNN generates code for the number of threads that it sees
    std::shared_ptr<const T> made;
    try {
        made = std::make_shared<const T>(spec, !spec.half);
    } catch (const dnnl::error&) {
        Spec plain = spec;
        plain.half = false;
        made = std::make_shared<const T>(plain, false);
    }
    cache->keep(spec, made);
    return made;
}

// Limits below which the portable kernels are faster in measurements: README.md has the numbers.
constexpr double least_call = 1e6;      // smaller calls take less time than calling a primitive
constexpr double least_fullness = 0.7;  // used fraction of the channels that oneDNN computes
constexpr double least_reuse = 64;      // multiply-adds per number that a 1x1 convolution moves

// Returns the used fraction of a number of channels: oneDNN computes whole blocks, except up to 3 channels.
double fullness(std::int64_t channels) {
    if (channels <= 3) return 1;
    return static_cast<double>(channels) / static_cast<double>((channels + 15) / 16 * 16);
}

bool worth_it(const Geometry& g) {
    if (!g.is_common()) return false;
    // With a pad as large as the filter, outputs may see only padding, which oneDNN's fast code excludes.
    if (g.pad_y >= g.reach_y() || g.pad_x >= g.reach_x()) return false;
    // oneDNN has fast code for one channel in each group, and for groups of whole blocks.
    const bool depthwise = g.groups == g.channels && g.groups == g.outputs;
    if (g.groups > 1 && !depthwise &&
        (g.group_channels() % block != 0 || g.group_outputs() % block != 0))
        return false;
    const auto channels = static_cast<double>(g.group_channels());
    const auto outputs = static_cast<double>(g.group_outputs());
    if (g.kh == 1 && g.kw == 1 &&
        (g.stride_y > 1 || g.stride_x > 1 ||
         channels * outputs < least_reuse * (channels + outputs)))
        return false;
    const double full = depthwise ? fullness(g.channels)
                                  : fullness(g.group_channels()) * fullness(g.group_outputs());
    return full >= least_fullness &&
           static_cast<double>(g.n) * static_cast<double>(g.work()) >= least_call;
}

std::int32_t supports(catena_ctx*, const catena_call* call) {
    return outcome(*call) != nullptr && worth_it(convolution_call(*call).sizes) ? 1 : 0;
}

// Whether the processor multiplies bfloat16 faster than float32: with AMX, or AMD's with AVX512-BF16.
bool has_fast_bfloat16() {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return (isa == dnnl::cpu_isa::avx512_core_amx && catena::plugin::chosen_bfloat16() != "0") ||
           (isa == dnnl::cpu_isa::avx512_core_bf16 && catena::plugin::use_avx512_bf16());
}

// Whether a product is faster with operands rounded to bfloat16: not if the sums are so short that
// conversions take longer, or for the filters' gradient, whose sums are over rows of outputs, if
// few numbers fill the tiles.
bool faster_in_half(const Geometry& g, ConvolutionProduct product) {
    static const bool fast = has_fast_bfloat16();
    if (!fast || g.groups > 1) return false;
    if (product == data) return true;
    if (product == forward) return g.taps() >= 64;
    return g.channels >= 128 || (g.channels >= 16 && g.ow >= 16);
}

// Whether a step also gives the bias's gradient: a convolution's comes with that for the filters.
bool has_bias_sum(const ConvolutionCall& work, const ConvolutionStep& s) {
    return s.product == filter && work.sum != nullptr && work.summed == s.y;
}

// All products of a call.
struct Work {
    explicit Work(const catena_call& host_call)
        : call(convolution_call(host_call)),
          may_round((host_call.flags & CATENA_CALL_BFLOAT16) != 0) {}
    Spec spec(const ConvolutionStep& s, bool bias) const {
        return {call.sizes, s.product, bias, s.add,
                may_round && faster_in_half(call.sizes, s.product)};
    }
    std::shared_ptr<const Mapping> mapping(const ConvolutionStep& s) const {
        return made_for_product<Mapping>(spec(s, s.bias != nullptr));
    }
    std::shared_ptr<const Correlation> correlation(const ConvolutionStep& s) const {
        return made_for_product<Correlation>(spec(s, has_bias_sum(call, s)));
    }
    std::size_t scratch_bytes(std::int32_t slots) const {
        std::size_t bytes = 0;
        for (const ConvolutionStep& s : call.products())
            bytes = std::max(bytes, s.product == filter ? correlation(s)->scratch_bytes(slots)
                                                        : mapping(s)->scratch_bytes(slots));
        return bytes;
    }
    void run(catena_ctx* ctx, const catena_call& host_call) const {
        void* const scratch = host_call.scratch;
        const auto data_of_or_null = [](const catena_tensor* t) {
            return t == nullptr ? nullptr : data_of<float>(*t);
        };
        bool summed = call.sum == nullptr;
        for (const ConvolutionStep& s : call.products()) {
            float *const x = data_of_or_null(s.x), *const w = data_of_or_null(s.w),
                         *const y = data_of_or_null(s.y), *const bias = data_of_or_null(s.bias);
            if (s.product == forward) {
                mapping(s)->run(ctx, x, w, bias, y, scratch);
            } else if (s.product == data) {
                mapping(s)->run(ctx, y, w, bias, x, scratch);
            } else {
                const bool sums = has_bias_sum(call, s);
                correlation(s)->run(ctx, x, y, w, sums ? data_of_or_null(call.sum) : nullptr,
                                    call.add_sum, scratch);
                summed = summed || sums;
            }
        }
        if (summed) return;
        const auto gy = catena::plugin::view<const float>(call.summed);
        const std::int64_t channels[] = {1, gy.dim(1), 1, 1};
        detail::sum_to_shape(ctx, Isa::baseline, gy.data, gy.shape, data_of<float>(*call.sum),
                             Shape(channels), call.add_sum);
    }

    ConvolutionCall call;
    bool may_round;
};
// If oneDNN cannot make the primitives, another kernel runs.
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) {
    return guarded(ctx, [&] {
        try {
            plan->scratch_bytes = Work(*call).scratch_bytes(host().slots(ctx));
        } catch (const dnnl::error& e) {
            throw Error(CATENA_E_UNSUPPORTED, std::string("oneDNN: ") + e.what());
        }
    });
}
catena_status run(catena_ctx* ctx, const catena_call* call) {
    return guarded(ctx, [&] { Work(*call).run(ctx, *call); });
}

}  // namespace

std::vector<catena_kernel> convolution_kernels() {
    std::vector<catena_kernel> all;
    for (const char* function : {convolution_2d, deconvolution_2d, convolution_2d_grad_w})
        for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
            catena_kernel& k =
                all.emplace_back(plain_kernel(function, phase, "cpu", Row<float>::dtypes));
            k.name = "oneDNN";
            k.priority = CATENA_PRIORITY_VENDOR;
            k.version_min = k.version_max = 3;  // which has groups
            k.supports = supports;
            k.plan = plan;
            k.run = run;
        }
    return all;
}

}  // namespace catena_onednn
