// Helpers for kernels that use a vendor's library for catena's own functions: attributes by name,
// convolutions as the products of such libraries, and a cache of objects made for them.
#pragma once

#include <algorithm>
#include <climits>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/plugin/kernel.hpp"
#include "catena/plugin/tables.hpp"

namespace catena::plugin {

// Returns the call's attribute of this name. Another plugin describes the function.
inline const catena_value& attribute(const catena_call& call, const char* name) {
    for (std::uint32_t i = 0; i < call.function->n_attrs; ++i)
        if (std::string_view(call.function->attrs[i]->name) == name) return call.attrs[i];
    throw Error(CATENA_E_UNSUPPORTED, std::string("no attribute ") + name);
}
// Returns the value for one axis of an attribute that is one number, (y, x), or empty: 0.
inline std::int64_t attribute_of_axis(const catena_call& call, const char* name, int axis) {
    const catena_value& v = attribute(call, name);
    return v.n == 0 ? 0 : v.v.ints[v.n == 1 ? 0 : axis];
}

inline bool adds(const catena_call& call, int i) { return call.req[i] == CATENA_REQ_ADD; }
inline bool is_forward(const catena_call& call) { return call.phase == CATENA_PHASE_FORWARD; }
// Returns the result of a forward call, or the gradient of the result in a backward call.
inline const catena_tensor* outcome(const catena_call& call) {
    return is_forward(call) ? call.y[0] : call.gy[0];
}

// Sizes of y (n, outputs, oh, ow) = convolution of x (n, channels, height, width) with
// W (outputs, channels / groups, kh, kw), whose elements see pixels that are `dilate` apart.
struct ConvolutionSizes {
    std::int64_t n;
    std::int64_t channels, height, width;
    std::int64_t outputs, oh, ow;
    std::int64_t kh, kw;
    std::int64_t stride_y, stride_x;
    std::int64_t pad_y, pad_x;
    std::int64_t dilate_y, dilate_x;
    std::int64_t groups;

    // Returns the multiply-adds for one image.
    std::int64_t work() const { return outputs * oh * ow * taps(); }
    std::int64_t x_image() const { return channels * height * width; }
    std::int64_t y_image() const { return outputs * oh * ow; }
    std::int64_t group_channels() const { return channels / groups; }
    std::int64_t group_outputs() const { return outputs / groups; }
    // Returns the elements of a filter.
    std::int64_t taps() const { return group_channels() * kh * kw; }
    std::int64_t pixels() const { return oh * ow; }
    // Returns the pixels along an axis from a filter's first one to its last one.
    std::int64_t reach_y() const { return (kh - 1) * dilate_y + 1; }
    std::int64_t reach_x() const { return (kw - 1) * dilate_x + 1; }
    auto operator<=>(const ConvolutionSizes&) const = default;

    // Whether no extent is 0, sizes fit into 31 bits, and no window reaches beyond the pad, as it
    // can with cover_all: libraries take one pad for both sides.
    bool is_common() const {
        const std::int64_t sizes[] = {n,  channels, height,   width,     outputs,   oh, ow,
                                      kh, stride_y, stride_x, reach_y(), reach_x(), kw};
        return std::ranges::min(sizes) >= 1 && std::ranges::max(sizes) <= INT_MAX &&
               std::max(pad_y, pad_x) <= INT_MAX &&
               (oh - 1) * stride_y + reach_y() <= height + 2 * pad_y &&
               (ow - 1) * stride_x + reach_x() <= width + 2 * pad_x;
    }
};

// forward computes y from x and W, data computes x from y and W, filter computes W from x and y.
enum class ConvolutionProduct : std::int64_t { forward, data, filter };

// One product, whose result is y, x or w. bias may be null.
struct ConvolutionStep {
    ConvolutionProduct product;
    const catena_tensor* x;
    const catena_tensor* w;
    const catena_tensor* y;
    const catena_tensor* bias;
    bool add;
};
// A call of catena.convolution_2d, catena.deconvolution_2d or catena.convolution_2d_grad_w.
struct ConvolutionCall {
    ConvolutionSizes sizes;
    ConvolutionStep steps[2] = {};
    int n_steps = 0;
    // The bias's gradient, if it is wanted: `summed`, summed over all axes except the channels.
    const catena_tensor* summed = nullptr;
    catena_tensor* sum = nullptr;
    bool add_sum = false;

    std::span<const ConvolutionStep> products() const {
        return {steps, static_cast<std::size_t>(n_steps)};
    }
};

namespace detail {

// For a function that computes one of the three tensors from the two others, and its gradients. A
// tensor is named by the product that computes it; first and second are the function's inputs.
inline ConvolutionCall convolution(const catena_call& call, ConvolutionProduct first,
                                   ConvolutionProduct second, ConvolutionProduct result) {
    using enum ConvolutionProduct;
    const catena_tensor* tensors[3];
    const auto made_by = [&](ConvolutionProduct product) -> const catena_tensor*& {
        return tensors[static_cast<std::size_t>(product)];
    };
    made_by(first) = call.x[0];
    made_by(second) = call.x[1];
    made_by(result) = outcome(call);
    const Shape x = shape_of(*made_by(data)), y = shape_of(*made_by(forward)),
                w = shape_of(*made_by(filter));
    ConvolutionCall c = {.sizes = {.n = x[0],
                                   .channels = x[1],
                                   .height = x[2],
                                   .width = x[3],
                                   .outputs = y[1],
                                   .oh = y[2],
                                   .ow = y[3],
                                   .kh = w[2],
                                   .kw = w[3],
                                   .stride_y = attribute_of_axis(call, "stride", 0),
                                   .stride_x = attribute_of_axis(call, "stride", 1),
                                   .pad_y = attribute_of_axis(call, "pad", 0),
                                   .pad_x = attribute_of_axis(call, "pad", 1),
                                   .dilate_y = attribute_of_axis(call, "dilate", 0),
                                   .dilate_x = attribute_of_axis(call, "dilate", 1),
                                   .groups = attribute(call, "groups").v.i}};
    if (!is_forward(call) && call.n_x > 2) {
        c.summed = call.gy[0];
        c.sum = call.gx[2];
        c.add_sum = c.sum != nullptr && adds(call, 2);
    }
    const auto add_step = [&](ConvolutionProduct product, catena_tensor* to,
                              const catena_tensor* bias, bool add) {
        if (to == nullptr) return;  // not wanted
        const catena_tensor* const from = std::exchange(made_by(product), to);
        c.steps[c.n_steps++] = {product,          made_by(data), made_by(filter),
                                made_by(forward), bias,          add};
        made_by(product) = from;
    };
    if (is_forward(call)) {
        add_step(result, call.y[0], call.n_x > 2 ? call.x[2] : nullptr, adds(call, 0));
    } else {
        add_step(first, call.gx[0], nullptr, adds(call, 0));
        add_step(second, call.gx[1], nullptr, adds(call, 1));
    }
    return c;
}

}  // namespace detail

// The kernels of a plugin's table, made with new, because they live until the process ends.
struct KernelList {
    explicit KernelList(std::vector<catena_kernel> kernels) : all(std::move(kernels)) {
        for (const catena_kernel& k : all) pointers.push_back(&k);
    }
    const std::vector<catena_kernel> all;
    std::vector<const catena_kernel*> pointers;
};

inline constexpr char convolution_2d[] = "catena.convolution_2d";
inline constexpr char deconvolution_2d[] = "catena.deconvolution_2d";
inline constexpr char convolution_2d_grad_w[] = "catena.convolution_2d_grad_w";

// Returns the sizes and products of a call of one of these functions.
inline ConvolutionCall convolution_call(const catena_call& call) {
    using enum ConvolutionProduct;
    const std::string_view function = call.function->name;
    if (function == convolution_2d) return detail::convolution(call, data, filter, forward);
    return function == deconvolution_2d ? detail::convolution(call, forward, filter, data)
                                        : detail::convolution(call, data, forward, filter);
}

// A cache of values by key, which evicts the least recently used value when it is full. [any]
template <class Key, class T>
class Cache {
public:
    explicit Cache(std::size_t most) : most_(most) {}

    std::optional<T> find(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end()) return std::nullopt;
        found->second.used = ++now_;
        return found->second.value;
    }
    void keep(const Key& key, T value) {
        const std::lock_guard lock(mutex_);
        if (entries_.size() >= most_ && !entries_.contains(key))
            entries_.erase(std::ranges::min_element(
                entries_, {}, [](const auto& entry) { return entry.second.used; }));
        entries_[key] = {std::move(value), ++now_};
    }

private:
    struct Entry {
        T value;
        std::uint64_t used;
    };
    const std::size_t most_;
    std::mutex mutex_;
    std::map<Key, Entry> entries_;
    std::uint64_t now_ = 0;
};

}  // namespace catena::plugin
