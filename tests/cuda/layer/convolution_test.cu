// Convolutions too large for one launch: the same with limits made small.
#include "device.hpp"

#include "convolution.cuh"

using namespace layer;
using catena::plugins::Convolution;
using catena::plugins::ImageProductLimits;

namespace {

struct Call {
    char* room;
    const cuda::Queue& queue() const { return layer::queue; }
    template <class... P, class... A>
    void launch(void (*kernel)(P...), dim3 blocks, int threads, const A&... arguments) const {
        layer::queue.launch(kernel, blocks, threads, arguments...);
    }
    template <class T>
    T* scratch() const {
        return reinterpret_cast<T*>(room);
    }
};

// Whole numbers and quarters: sums in any order are exact.
struct Results {
    std::vector<float> y, gx, gw;
    bool operator==(const Results&) const = default;
};
Results compute(const Convolution& c) {
    const auto size = [](std::int64_t n) {
        return std::vector<float>(static_cast<std::size_t>(n));
    };
    const std::int64_t n_x = c.n * c.image();
    const std::int64_t n_y = c.n * c.outputs * c.pixels();
    const std::int64_t n_w = c.outputs * c.taps();
    const OnDevice<float> x(draw<float>(n_x, 1)), w(draw<float>(n_w, 2)), gy(draw<float>(n_y, 3));
    const OnDevice<float> y(size(n_y)), gx(size(n_x)), gw(draw<float>(n_w, 4));
    const OnDevice<std::uint64_t> room(std::vector<std::uint64_t>(
        static_cast<std::size_t>(catena::plugins::correlate_scratch<float>(c) / 8 + 1)));
    const Call call = {reinterpret_cast<char*>(room.data())};
    const float* const none = nullptr;
    convolve_on_device<float>(call, c, x.data(), w.data(), none, y.data(), false);
    convolve_back_on_device<float>(call, c, gy.data(), w.data(), none, gx.data(), false);
    correlate_on_device<float>(call, c, x.data(), gy.data(), gw.data(), true);
    static_cast<void>(room.values());  // its guards
    return {y.values(), gx.values(), gw.values()};
}

std::int64_t launches_of_classes(const Convolution& c) {
    const std::int64_t n = image_product(c, catena::plugins::ImageProductKind::back, 1).classes();
    return (n + ImageProductLimits::classes - 1) / ImageProductLimits::classes;
}

struct Small {
    Small(std::int64_t pixels, std::int64_t classes) {
        ImageProductLimits::pixels = pixels;
        ImageProductLimits::classes = classes;
    }
    Small(const Small&) = delete;
    Small& operator=(const Small&) = delete;
    ~Small() {
        ImageProductLimits::pixels = before.pixels;
        ImageProductLimits::classes = before.classes;
    }
    struct {
        std::int64_t pixels = ImageProductLimits::pixels, classes = ImageProductLimits::classes;
    } before;
};

}  // namespace

TEST_CASE("convolutions in parts, and classes of pixels in several launches") {
    const Convolution all[] = {
        {7, 2, 9, 8, 3, 3, 3, 3, 2, {3, 3}, {0, 1}},  // nine classes
        {5, 3, 6, 5, 2, 6, 5, 3, 3, {1, 1}, {1, 1}},
        {4, 1, 11, 3, 2, 2, 1, 2, 3, {7, 5}, {0, 0}},  // pixels that no filter sees
    };
    std::int64_t most_launches = 0;
    for (const Convolution& c : all) {
        CAPTURE(c.n);
        const Results expected = compute(c);
        for (const std::int64_t images : {1, 2, 3}) {
            const Small limits(images * c.height * c.width, 2 * images - 1);
            int parts = 0;
            for_each_part(c, [&](std::int64_t, std::int64_t) { ++parts; });
            CHECK(parts == (c.n + images - 1) / images);
            most_launches = std::max(most_launches, launches_of_classes(c));
            CHECK(compute(c) == expected);
        }
    }
    CHECK(most_launches == 21);
}
