// Shared by the convolution functions: attributes, checks, and the products of ConvolutionProduct
// (images with filters, its adjoint, images with images) as matrix products on im2col columns.
#pragma once

#include <utility>
#include <vector>

#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>
#include <catena/plugin/reduce.hpp>
#include <catena/plugin/vendor.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr std::int64_t default_step[] = {1};
inline constexpr std::int64_t default_pad[] = {0};
inline constexpr double largest_step = 1 << 30;
inline constexpr Attribute stride_attr =
    attr("stride", Ints(default_step), "step of the filter: one number, or one for each axis")
        .range(1, largest_step);
inline constexpr Attribute pad_attr =
    attr("pad", Ints(default_pad), "zeros around the image: one number, or one for each axis")
        .range(0, largest_step);

inline constexpr Attribute cover_all_attr =
    attr("cover_all", false,
         "whether to cover all of the padded image, with positions that extend beyond it");
inline constexpr Attribute dilate_attr =
    attr("dilate", Ints(default_step),
         "distance between the pixels that a filter sees: one number, or one for each axis")
        .range(1, largest_step);
inline constexpr Attribute groups_attr =
    attr("groups", 1, "groups of channels, each convolved with filters of its own")
        .range(1, largest_step);

struct Pair {
    std::int64_t y;
    std::int64_t x;
};
// Returns the pair that an attribute gives as one number for both axes, or as (y, x).
inline Pair pair_of(Ints numbers) { return {numbers[0], numbers[numbers.size() - 1]}; }
inline Pair checked_pair(const auto& s, const char* name, Ints numbers) {
    s.check(numbers.size() == 1 || numbers.size() == 2, name, "1 or 2 numbers", numbers.size(),
            CATENA_E_INVALID);
    return pair_of(numbers);
}

// Returns the number of positions of a filter of `size` along an axis of extent `side`; 0 if it
// does not fit. cover: the last position may extend outside the padding, by less than a stride.
constexpr std::int64_t filter_positions(std::int64_t side, std::int64_t size, std::int64_t stride,
                                        std::int64_t pad, bool cover) {
    const std::int64_t room = plus(plus(side, times(2, pad)), cover ? stride - 1 : 0) - size;
    return room < 0 ? 0 : plus(room / stride, 1);
}
constexpr Pair filter_positions(Pair side, Pair size, Pair stride, Pair pad, bool cover) {
    return {filter_positions(side.y, size.y, stride.y, pad.y, cover),
            filter_positions(side.x, size.x, stride.x, pad.x, cover)};
}

// Returns how far filter positions may extend outside the padded image.
constexpr Pair beyond_of(Pair stride, bool cover) {
    return cover ? Pair{stride.y - 1, stride.x - 1} : Pair{0, 0};
}

using Convolution = ConvolutionSizes;

inline std::string pair_text(Pair p) {
    const std::int64_t shape[] = {p.y, p.x};
    return text_of(Shape(shape));
}
// Returns the pixels from a filter's first one to its last one, along both axes.
constexpr Pair reach_of(Pair filter, Pair dilate) {
    return {plus(times(filter.y - 1, dilate.y), 1), plus(times(filter.x - 1, dilate.x), 1)};
}
// Checks that the filter, spread to `reach`, fits into the padded image, enlarged by `beyond`.
inline void check_fit(const auto& s, const char* what, Pair filter, Pair reach, Pair side, Pair pad,
                      Pair beyond) {
    if (filter.y < 1 || filter.x < 1) [[unlikely]]
        s.check(false, what, "at least (1, 1)", pair_text(filter));
    const Pair padded = {plus(plus(side.y, times(2, pad.y)), beyond.y),
                         plus(plus(side.x, times(2, pad.x)), beyond.x)};
    if (reach.y > padded.y || reach.x > padded.x) [[unlikely]]
        s.check(false, what, "at most the padded image " + pair_text(padded), pair_text(reach));
}

// Checks the attributes and returns the numbers of filter positions. what: the filter size's name.
inline Pair checked_places(const auto& s, const char* what, Pair filter, Shape x) {
    const Pair stride = checked_pair(s, "stride", s.template attr<"stride">());
    const Pair pad = checked_pair(s, "pad", s.template attr<"pad">());
    const Pair reach = reach_of(filter, checked_pair(s, "dilate", s.template attr<"dilate">()));
    const bool cover = s.template attr<"cover_all">();
    check_fit(s, what, filter, reach, {x[2], x[3]}, pad, beyond_of(stride, cover));
    return filter_positions({x[2], x[3]}, reach, stride, pad, cover);
}
// Checks that groups divides a number of channels or filters.
inline void check_groups(const auto& s, const char* what, std::int64_t n) {
    const std::int64_t groups = s.template attr<"groups">();
    if (n % groups != 0) [[unlikely]]
        s.check(false, what, "a multiple of groups = " + std::to_string(groups), n);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The im2col columns of an image: a row for each tap, with its input element at each position.
template <class T>
class ImageColumns {
public:
    // Channels [channel, channel + channels) of a group and rows [row, row + rows) of positions.
    struct Part {
        std::int64_t group;
        std::int64_t channel, channels;
        std::int64_t row, rows;
    };

    explicit ImageColumns(const Convolution& c)
        : c_(c),
          is_image_(c.kh == 1 && c.kw == 1 && c.stride_y == 1 && c.stride_x == 1 && c.pad_y == 0 &&
                    c.pad_x == 0) {}

    // Whether the columns are the image itself, so that they need no memory.
    bool is_image() const { return is_image_; }
    // Returns the stride between rows of the columns, in elements.
    std::int64_t ld(const Part& p) const { return is_image_ ? c_.pixels() : p.rows * c_.ow; }
    // Returns where the columns are stored: in `memory`, or in the image if is_image().
    template <class U>
    U* place(const Part& p, U* image, U* memory) const {
        return is_image_ ? image + p.channel * c_.pixels() + p.row * c_.ow : memory;
    }
    // Copies the image to `columns` (im2col) and returns it; if is_image(), only returns the image.
    CATENA_KERNEL const T* gather(const Part& p, const T* image, T* columns) const {
        if (is_image_) return place<const T>(p, image, columns);
        for_each_row(p, [&](std::int64_t to, const Row& r) CATENA_LAMBDA {
            T* const row = columns + to;
            std::fill_n(row, r.left, T(0));
            for_each_place(
                r, [&](std::int64_t x, std::int64_t at) CATENA_LAMBDA { row[x] = image[at]; });
            std::fill_n(row + r.right, c_.ow - r.right, T(0));
        });
        return columns;
    }
    // The adjoint of gather(): adds the columns to the image; does nothing if is_image().
    CATENA_KERNEL void scatter(const Part& p, const T* columns, T* image) const {
        if (is_image_) return;
        for_each_row(p, [&](std::int64_t from, const Row& r) CATENA_LAMBDA {
            const T* const row = columns + from;
            for_each_place(
                r, [&](std::int64_t x, std::int64_t at) CATENA_LAMBDA { image[at] += row[x]; });
        });
    }

private:
    // Positions [left, right) are inside the image; position x reads its element at + x * stride.
    struct Row {
        std::int64_t left, right;
        std::int64_t at;
    };
    CATENA_KERNEL void for_each_row(const Part& p, const auto& body) const {
        std::int64_t column = 0;
        for (std::int64_t channel = p.channel; channel < p.channel + p.channels; ++channel)
            for (std::int64_t tap = 0; tap < c_.kh * c_.kw; ++tap) {
                const std::int64_t skip = c_.pad_x - tap % c_.kw * c_.dilate_x;
                const auto first_place = [&](std::int64_t x) {  // first p: p * stride_x >= x
                    return std::min(ceil_div(std::max<std::int64_t>(x, 0), c_.stride_x), c_.ow);
                };
                const std::int64_t right = first_place(c_.width + skip);
                const std::int64_t left = std::min(first_place(skip), right);
                for (std::int64_t row = p.row; row < p.row + p.rows; ++row, column += c_.ow) {
                    const std::int64_t y = row * c_.stride_y + tap / c_.kw * c_.dilate_y - c_.pad_y;
                    if (y < 0 || y >= c_.height) body(column, Row{0, 0, 0});
                    else
                        body(column, Row{left, right, (channel * c_.height + y) * c_.width - skip});
                }
            }
    }
    // Stride 1 has a separate loop, which is vectorized.
    CATENA_KERNEL void for_each_place(const Row& r, const auto& body) const {
        if (c_.stride_x == 1) {
            CATENA_LOOP
            for (std::int64_t x = r.left; x < r.right; ++x) body(x, r.at + x);
        } else {
            for (std::int64_t x = r.left; x < r.right; ++x) body(x, r.at + x * c_.stride_x);
        }
    }

    Convolution c_;
    bool is_image_;
};

// Whether the result of a product has no elements.
inline bool is_empty(const Convolution& c, ConvolutionProduct product) {
    return c.n * (product == ConvolutionProduct::data ? 1 : c.outputs) *
               (product == ConvolutionProduct::forward ? 1 : c.channels) ==
           0;
}

// Divides a product into pieces for threads, by images, channels and bands of rows. The division,
// and so the order of each sum, depends only on the sizes.
template <class T>
struct ConvolutionCut {
    ConvolutionCut(const Convolution& c, ConvolutionProduct product)
        : channels(c.group_channels()) {
        using enum ConvolutionProduct;
        const std::int64_t filters = c.outputs * c.taps();
        if (product == filter)
            sets = std::clamp<std::int64_t>(most_sums / filters, 1, std::min(c.n, pieces));
        const std::int64_t apart = (product == filter ? sets : c.n) * c.groups;
        const std::int64_t all = channels;
        if (product != forward)
            channels = ceil_div(all, std::min(ceil_div(pieces, 2 * apart), all));
        const std::int64_t row = std::max<std::int64_t>(channels * c.kh * c.kw * c.ow, 1);
        std::int64_t most = std::clamp<std::int64_t>(cache / row, 1, c.oh);
        if (product == forward) most = std::min(most, ceil_div(c.oh * apart, pieces));
        rows = ceil_div(c.oh, ceil_div(c.oh, most));
        shares = channels == 0 ? 1 : ceil_div(all, channels);
        parts = c.groups * shares;
        bands = ceil_div(c.oh, rows);
        columns = ImageColumns<T>(c).is_image() ? 0 : row * rows;
        sums = sets > 1 ? sets * filters : 0;
    }
    typename ImageColumns<T>::Part part(const Convolution& c, std::int64_t part,
                                        std::int64_t band) const {
        const std::int64_t group = part / shares;
        const std::int64_t first = part % shares * channels;
        return {group, group * c.group_channels() + first,
                std::min(channels, c.group_channels() - first), band * rows,
                std::min(rows, c.oh - band * rows)};
    }
    std::uint64_t bytes(std::int64_t slots) const {
        Blocks blocks;
        blocks.take<T>(sums);
        for (std::int64_t i = 0; i < slots; ++i) blocks.take<T>(columns);
        return static_cast<std::uint64_t>(blocks.bytes());
    }

    static constexpr std::int64_t pieces = 16;
    static constexpr std::int64_t cache = (512 << 10) / sizeof(T);  // elements of columns
    static constexpr std::int64_t most_sums = 1 << 21;              // elements

    std::int64_t channels;       // in a part
    std::int64_t shares, parts;  // parts of a group, of all groups
    std::int64_t rows, bands;    // rows per band, number of bands
    std::int64_t sets = 1;       // of images, each with its own sum of W's gradient
    std::int64_t columns, sums;  // sizes in elements
};

// Computes one product of a call.
template <class T, class Call>
class ConvolutionWork {
public:
    ConvolutionWork(const Call& call, const Convolution& c, ConvolutionProduct product)
        : call_(call), blas_(call), c_(c), cut_(c, product), columns_(c) {
        Blocks blocks(call.template scratch<char>());
        sums_ = blocks.take<T>(cut_.sums);
        for (std::int64_t i = 0; i < call.slots(); ++i)
            memory_.push_back(blocks.take<T>(cut_.columns));
    }

    CATENA_KERNEL void places(const T* x, const T* w, const T* bias, T* y, bool add) const {
        const std::int64_t filters = c_.group_outputs(), pieces = cut_.parts * cut_.bands;
        for_each(c_.n * pieces, [&](std::int64_t i, T* memory) CATENA_LAMBDA {
            const Part p = cut_.part(c_, i % pieces / cut_.bands, i % cut_.bands);
            const T* const image = x + i / pieces * c_.x_image();
            T* const to = y + i / pieces * c_.y_image() + y_at(p);
            if (bias != nullptr)
                begin_with(bias + p.group * filters, filters, p.rows * c_.ow, c_.pixels(), to, add);
            blas_.gemm(Product<T>{.m = filters,
                                  .n = p.rows * c_.ow,
                                  .k = c_.taps(),
                                  .a = w + w_at(p),
                                  .b = columns_.gather(p, image, memory),
                                  .c = to,
                                  .add = add || bias != nullptr,
                                  .ldb = columns_.ld(p),
                                  .ldc = c_.pixels()});
        });
    }
    CATENA_KERNEL void images(const T* y, const T* w, const T* bias, T* x, bool add) const {
        for_each(c_.n * cut_.parts, [&](std::int64_t i, T* memory) CATENA_LAMBDA {
            T* const image = x + i / cut_.parts * c_.x_image();
            for (std::int64_t band = 0; band < cut_.bands; ++band) {
                const Part p = cut_.part(c_, i % cut_.parts, band);
                if (band == 0)
                    begin_with(bias != nullptr ? bias + p.channel : nullptr, p.channels, x_plane(),
                               x_plane(), image + p.channel * x_plane(), add);
                blas_.gemm(Product<T>{.transpose_a = true,
                                      .m = p.channels * c_.kh * c_.kw,
                                      .n = p.rows * c_.ow,
                                      .k = c_.group_outputs(),
                                      .a = w + w_at(p),
                                      .b = y + i / cut_.parts * c_.y_image() + y_at(p),
                                      .c = columns_.place(p, image, memory),
                                      .add = columns_.is_image(),
                                      .lda = c_.taps(),
                                      .ldb = c_.pixels(),
                                      .ldc = columns_.ld(p)});
                columns_.scatter(p, memory, image);
            }
        });
    }
    CATENA_KERNEL void filters(const T* x, const T* y, T* w, bool add) const {
        const std::int64_t size = c_.outputs * c_.taps();
        for_each(cut_.sets * cut_.parts, [&](std::int64_t i, T* memory) CATENA_LAMBDA {
            const std::int64_t set = i / cut_.parts;
            const std::int64_t first = c_.n * set / cut_.sets;
            const std::int64_t last = c_.n * (set + 1) / cut_.sets;
            T* const sum = cut_.sets > 1 ? sums_ + set * size : w;
            bool adds = cut_.sets == 1 && add;
            for (std::int64_t n = first; n < last; ++n)
                for (std::int64_t band = 0; band < cut_.bands; ++band) {
                    const Part p = cut_.part(c_, i % cut_.parts, band);
                    blas_.gemm(Product<T>{.transpose_b = true,
                                          .m = c_.group_outputs(),
                                          .n = p.channels * c_.kh * c_.kw,
                                          .k = p.rows * c_.ow,
                                          .a = y + n * c_.y_image() + y_at(p),
                                          .b = columns_.gather(p, x + n * c_.x_image(), memory),
                                          .c = sum + w_at(p),
                                          .add = std::exchange(adds, true),
                                          .lda = c_.pixels(),
                                          .ldb = columns_.ld(p),
                                          .ldc = c_.taps()});
                }
        });
        if (cut_.sets == 1) return;
        call_.parallel(size, cut_.sets, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t set = 0; set < cut_.sets; ++set) {
                const T* const from = sums_ + set * size;
                const bool adds = add || set > 0;
                CATENA_LOOP
                for (std::int64_t i = begin; i < end; ++i) store(w[i], adds, from[i]);
            }
        });
    }

private:
    using Part = ImageColumns<T>::Part;

    std::int64_t x_plane() const { return c_.height * c_.width; }
    // Where a part begins in the filters, and in an image of y.
    std::int64_t w_at(const Part& p) const {
        return p.group * c_.group_outputs() * c_.taps() +
               (p.channel - p.group * c_.group_channels()) * c_.kh * c_.kw;
    }
    std::int64_t y_at(const Part& p) const {
        return p.group * c_.group_outputs() * c_.pixels() + p.row * c_.ow;
    }
    // Calls body(piece, memory for columns) in parallel.
    CATENA_KERNEL void for_each(std::int64_t pieces, const auto& body) const {
        call_.parallel(pieces, c_.n * c_.work() / pieces / 8 + 1,
                       [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                           for (std::int64_t i = begin; i < end; ++i)
                               body(i, memory_[static_cast<std::size_t>(slot)]);
                       });
    }
    // Sets rows to the bias, or to 0 if it is null; with add, adds the bias to them.
    CATENA_KERNEL static void begin_with(const T* bias, std::int64_t rows, std::int64_t n,
                                         std::int64_t ld, T* to, bool add) {
        for (std::int64_t r = 0; r < rows; ++r, to += ld) {
            const T value = bias != nullptr ? bias[r] : T(0);
            CATENA_LOOP
            for (std::int64_t i = 0; i < n; ++i) store(to[i], add, value);
        }
    }

    const Call& call_;
    Blas blas_;
    Convolution c_;
    ConvolutionCut<T> cut_;
    ImageColumns<T> columns_;
    T* sums_;
    std::vector<T*> memory_;  // columns, for each thread
};

// Computes a step of a call; has an overload for CUDA.
template <ConvolutionProduct product, class T, class Call>
CATENA_KERNEL void convolve(const Call& call, const Convolution& c, const ConvolutionStep& s) {
    using enum ConvolutionProduct;
    T *const x = data_of<T>(*s.x), *const w = data_of<T>(*s.w), *const y = data_of<T>(*s.y);
    const T* const bias = view<T>(s.bias).data;
    if (!is_empty(c, product)) {
        const ConvolutionWork<T, Call> work(call, c, product);
        if constexpr (product == forward) work.places(x, w, bias, y, s.add);
        else if constexpr (product == data) work.images(y, w, bias, x, s.add);
        else work.filters(x, y, w, s.add);
    } else if (product == filter && !s.add) {
        std::fill_n(w, c.outputs * c.taps(), T(0));
    }
}

// Base of the functions that compute one of x, W and y of a convolution from the two others, their
// inputs. Their gradients are such functions too. If the result is x or y, input 2 may be a bias.
template <ConvolutionProduct first, ConvolutionProduct second, ConvolutionProduct result>
struct ConvolutionFunction {
    static constexpr auto retain_x = ports(0, 1);

    static void compose_gradient(const auto& g, bool cover_all) {
        using enum ConvolutionProduct;
        Var arrays[3];
        const auto of = [&](ConvolutionProduct p) -> Var& {
            return arrays[static_cast<std::size_t>(p)];
        };
        of(first) = g.x(0), of(second) = g.x(1), of(result) = g.gy(0);
        const auto stride = g.same("stride"), pad = g.same("pad"), dilate = g.same("dilate");
        const auto groups = g.same("groups"), cover = set("cover_all", cover_all);
        const ConvolutionProduct inputs[] = {first, second};
        for (std::size_t i = 0; i < 2; ++i) {
            if (!g.wants(i)) continue;
            const Shape size = g.x_shape(i).subspan(2);
            if (inputs[i] == data)
                g.gx(i, call<"catena.deconvolution_2d">(
                            {of(forward), of(filter)},
                            {stride, pad, set("outsize", size), dilate, groups}));
            else if (inputs[i] == forward)
                g.gx(i, call<"catena.convolution_2d">({of(data), of(filter)},
                                                      {stride, pad, cover, dilate, groups}));
            else
                g.gx(i, call<"catena.convolution_2d_grad_w">(
                            {of(data), of(forward)},
                            {set("ksize", size), stride, pad, cover, dilate, groups}));
        }
        if constexpr (result != filter)
            if (g.wants(2)) g.gx(2, sum(g.gy(0), {0, 2, 3}, false));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const ConvolutionCall work = convolution_call(call.raw());
        for (const ConvolutionStep& s : work.products())
            if (!is_empty(work.sizes, s.product))
                plan.scratch_bytes =
                    std::max(plan.scratch_bytes,
                             ConvolutionCut<T>(work.sizes, s.product).bytes(call.slots()));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        run<T, result>(call);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        run<T, first, second>(call);
    }

private:
    template <class T, ConvolutionProduct... products>
    CATENA_KERNEL static void run(const auto& call) {
        const ConvolutionCall work = convolution_call(call.raw());
        for (const ConvolutionStep& s : work.products())
            ((s.product == products ? convolve<products, T>(call, work.sizes, s) : void()), ...);
        if (work.sum == nullptr) return;
        const auto gy = view<const T>(work.summed);
        const std::int64_t channels[] = {1, gy.dim(1), 1, 1};
        sum_to_shape(call, gy.data, gy.shape, data_of<T>(*work.sum), channels, work.add_sum);
    }
};

}  // namespace catena::plugins
