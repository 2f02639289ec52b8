// The three products behind convolutions, on oneDNN: each image or few on one thread, with tensors
// in oneDNN's blocked layout within that thread's cache.
#pragma once

#include <catena/plugin/vendor.hpp>

#include "engine.hpp"

namespace catena_onednn {

using Geometry = ConvolutionSizes;

// Images to images: y = x with W (forwards), or its adjoint, x from y and W (backwards).
class Mapping {
public:
    enum Direction { forwards, backwards };
    // With bias: for each channel of the result. Adding: to what is there.
    static std::shared_ptr<const Mapping> get(const Geometry& g, Direction direction, bool bias,
                                              bool add);
    Mapping(const Geometry& g, Direction direction, bool bias, bool add, bool winograd);

    std::size_t scratch_bytes(std::int32_t slots) const {
        return shared_.size() + static_cast<std::size_t>(slots) * own_.size();
    }
    void run(catena_ctx* ctx, const float* from, const float* w, const float* bias, float* to,
             void* scratch) const;

private:
    // What one thread does at a time: n images, and of the result a part of the channels.
    struct Step {
        std::int64_t n = 0;
        Operand from, to;
        memory::desc padding;
        dnnl::primitive product;
    };
    Step make_step(std::int64_t n, const memory::desc& weights);

    Geometry g_;
    Direction direction_;
    bool bias_;
    bool add_;
    dnnl::algorithm algorithm_;
    std::int64_t parts_;   // of the result's channels
    std::int64_t images_;  // of a step
    std::int64_t steps_;   // for all images
    std::int64_t part_;    // channels
    Operand weights_;
    memory::desc bias_desc_;
    Step usual_, last_;
    Layout shared_, own_;
    std::size_t from_at_, to_at_, padding_at_;
};

// Images with images: gW and gb.
class Correlation {
public:
    static std::shared_ptr<const Correlation> get(const Geometry& g, bool bias, bool add_w);
    Correlation(const Geometry& g, bool bias, bool add_w, bool winograd);

    std::size_t scratch_bytes(std::int32_t slots) const {
        return shared_.size() + static_cast<std::size_t>(slots) * own_.size();
    }
    // gb may be null if there is no bias.
    void run(catena_ctx* ctx, const float* x, const float* gy, float* gw, float* gb, bool add_b,
             void* scratch) const;

private:
    struct Step {
        std::int64_t n = 0;
        Operand x, gy;
        memory::desc padding;
        dnnl::primitive product;
    };
    Step make_step(std::int64_t n, const memory::desc& weights);

    Geometry g_;
    bool bias_;
    dnnl::algorithm algorithm_;
    std::int64_t parts_;   // of the outputs
    std::int64_t groups_;  // of steps: each has a sum of its own
    std::int64_t group_;   // steps
    std::int64_t images_;  // of a step
    std::int64_t part_;    // outputs
    Operand weights_;
    memory::desc bias_desc_;
    Step usual_, last_;
    Layout shared_, own_;
    std::size_t sum_stride_, bias_stride_;
    std::size_t sums_at_, biases_at_, x_at_, gy_at_, w_at_, b_at_, padding_at_;
};

}  // namespace catena_onednn
