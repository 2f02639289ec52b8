// The side of square images on their way through a net.
#pragma once

#include <catena/fail.hpp>
#include <catena/links.hpp>

namespace catena::models {

class Side {
public:
    // least: from which on nothing below gets too small, for the error's text.
    Side(const char* net, std::int64_t image, std::int64_t least)
        : net_(net), image_(image), least_(least), side_(image) {}

    Side& convolution(std::int64_t k, std::int64_t stride = 1, std::int64_t pad = 0) {
        return go(get_conv_outsize(side_, k, stride, pad));
    }
    Side& max_pooling(std::int64_t k, std::int64_t stride) {
        return go(side_ < k ? 0 : get_conv_outsize(side_, k, stride, 0, true));
    }
    operator std::int64_t() const noexcept { return side_; }  // NOLINT: it is a number

private:
    Side& go(std::int64_t next) {
        if (next < 1)
            fail<ShapeError>("[{}] image: expected sides of {} or more, got {}", net_, least_,
                             image_);
        side_ = next;
        return *this;
    }

    const char* net_;
    std::int64_t image_, least_;
    std::int64_t side_;
};

}  // namespace catena::models
