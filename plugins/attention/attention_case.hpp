// Sizes, strides and options of attention, for the kernels of every device.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/philox.hpp>

#include <cmath>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr const char* attention_layouts[] = {"BHTD", "BTHD", nullptr};
inline constexpr Attribute attention_layout =
    attr("layout", "BHTD", "order of the axes: BHTD or BTHD").one_of(attention_layouts);
inline constexpr Attribute attention_causal =
    attr("causal", false, "query i does not see the keys after i + offset");
inline constexpr Attribute attention_window =
    attr("window", 0, "query i sees only keys after i + offset - window; 0: no such limit")
        .range(0, 0x1p40);
inline constexpr Attribute attention_offset =
    attr("offset", 0,
         "place of the first query among the keys; -1: the last query is at the last key")
        .range(-1, 0x1p40);
inline constexpr Attribute attention_scale =
    attr("scale", 0.0, "of the scores; 0: 1 / sqrt(D)").range(-1e30, 1e30);
inline constexpr Attribute attention_dropout =
    attr("dropout", 0.0, "in training, the probability of a weight to become 0").range(0, 1);

bool is_heads_last(const auto& call) {
    return call.template attr<"layout">() == std::string_view("BTHD");
}

// Strides in elements of queries, keys, values or results, whose last axis is contiguous.
struct HeadStrides {
    HeadStrides() = default;
    HeadStrides(Shape shape, bool heads_last)
        : batch(shape[1] * shape[2] * shape[3]),
          head(heads_last ? shape[3] : shape[2] * shape[3]),
          row(heads_last ? shape[2] * shape[3] : shape[3]) {}

    std::int64_t batch = 0, head = 0, row = 0;
};

// A tensor that broadcasts to (B, H, T, S).
struct Broadcasts {
    Broadcasts() = default;
    explicit Broadcasts(Tensor<const std::byte> x) : data(x.data) {
        std::int64_t n = 1;
        for (std::size_t i = 1; i <= x.ndim(); ++i) {
            const std::int64_t extent = x.dim(x.ndim() - i);
            step[4 - i] = extent == 1 ? 0 : n;
            n *= extent;
        }
    }
    CATENA_FN std::int64_t at(std::int64_t batch, std::int64_t head, std::int64_t row,
                              std::int64_t key) const {
        return batch * step[0] + head * step[1] + row * step[2] + key * step[3];
    }

    const void* data = nullptr;  // null: none
    std::int64_t step[4] = {};
};

// The keys first <= key < end that a query sees, if no mask hides them.
struct SeenKeys {
    std::int64_t first, end;
};

// T: the dtype of queries. Shapes are (B, H, T, D), or (B, T, H, D) if heads_last.
struct AttentionCase {
    AttentionCase(Shape q_shape, Shape k_shape, Shape v_shape, bool heads_last) {
        const std::size_t head = heads_last ? 2 : 1, row = heads_last ? 1 : 2;
        b = q_shape[0], h = q_shape[head], t = q_shape[row], d = q_shape[3];
        hk = k_shape[head], s = k_shape[row], e = v_shape[3];
        q = HeadStrides(q_shape, heads_last);
        k = HeadStrides(k_shape, heads_last);
        v = HeadStrides(v_shape, heads_last);
        const std::int64_t y_shape[] = {b, q_shape[1], q_shape[2], e};
        y = HeadStrides(Shape(y_shape, 4), heads_last);
        group = hk > 0 ? h / hk : 0;
    }
    // For a call whose q and k are ports 0 and 1.
    AttentionCase(const auto& call, Shape v_shape, std::size_t lengths_port)
        : AttentionCase(shape_of(*call.raw().x[0]), shape_of(*call.raw().x[1]), v_shape,
                        is_heads_last(call)) {
        causal = call.template attr<"causal">();
        window = call.template attr<"window">();
        offset = call.template attr<"offset">();
        scale = scale_of(call.template attr<"scale">(), d);
        lengths = call.template x<std::int64_t>(lengths_port).data;
    }
    // The same with a bias and a mask, ports 3 and 4.
    explicit AttentionCase(const auto& call) : AttentionCase(call, shape_of(*call.raw().x[2]), 5) {
        bias = Broadcasts(call.template x<std::byte>(3));
        mask = Broadcasts(call.template x<std::byte>(4));
    }
    static double scale_of(double given, std::int64_t width) {
        return given != 0 ? given : 1 / std::sqrt(static_cast<double>(width));
    }

    CATENA_FN std::int64_t keys(std::int64_t batch) const {
        if (lengths == nullptr) return s;
        const std::int64_t n = lengths[batch];
        return n < 0 ? 0 : n < s ? n : s;
    }
    // The keys that query `row` sees, in an element of the batch with n_keys = keys(batch) keys.
    CATENA_FN SeenKeys seen(std::int64_t row, std::int64_t n_keys) const {
        const std::int64_t place = row + (offset < 0 ? n_keys - t : offset);
        std::int64_t first = window > 0 && place - window >= 0 ? place - window + 1 : 0;
        std::int64_t end = causal && place + 1 < n_keys ? place + 1 : n_keys;
        if (first > n_keys) first = n_keys;
        if (end < first) end = first;
        return {first, end};
    }
    std::int64_t b, h, hk, group, t, s, d, e;
    HeadStrides q, k, v, y;
    Broadcasts bias, mask;
    const std::int64_t* lengths = nullptr;
    std::int64_t window = 0, offset = 0;
    double scale = 1;
    std::int64_t causal = 0;
    bool rounded = false;  // the operands of products to bfloat16, on the CPU
};

// Random numbers for dropout. Block ((b H + h) ceil(S / 4) + s / 4) T + t has the words of query t
// and the keys s, s + 1, s + 2, s + 3, so that adjacent queries have adjacent blocks.
struct AttentionDraws {
    AttentionDraws() = default;
    // draws: seed, offset, and whether elements are dropped.
    CATENA_FN AttentionDraws(const std::int64_t* draws, double ratio)
        : any(draws[2] != 0),
          seed(static_cast<std::uint64_t>(draws[0])),
          offset(static_cast<std::uint64_t>(draws[1])),
          limit(static_cast<std::uint32_t>(ratio * 0x1p32)),
          scale(1 / (1 - ratio)) {}
    static std::uint64_t blocks(const AttentionCase& a) {
        return static_cast<std::uint64_t>(a.b * a.h * ((a.s + 3) / 4) * a.t);
    }
    CATENA_FN std::uint64_t block(const AttentionCase& a, std::int64_t batch, std::int64_t head,
                                  std::int64_t row, std::int64_t key) const {
        return offset + static_cast<std::uint64_t>(
                            ((batch * a.h + head) * ((a.s + 3) / 4) + key / 4) * a.t + row);
    }
    // The factor of one weight.
    CATENA_FN double factor(const AttentionCase& a, std::int64_t batch, std::int64_t head,
                            std::int64_t row, std::int64_t key) const {
        if (!any) return 1;
        return philox(seed, block(a, batch, head, row, key)).v[key % 4] < limit ? 0 : scale;
    }

    bool any = false;
    std::uint64_t seed = 0, offset = 0;
    std::uint32_t limit = 0;  // random words below it drop
    double scale = 1;         // of what is kept
};

}  // namespace catena::plugins
