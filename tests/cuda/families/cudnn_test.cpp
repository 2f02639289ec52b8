// Compares cuDNN's kernels with the CPU kernels; cudnn.cuda.catena must run every call itself.
#include "both.hpp"

#include <cstdlib>

namespace {

constexpr const char* cudnn_id = "org.catena.cudnn";
using Ints = std::vector<std::int64_t>;

World* find_cudnn() {
    const std::filesystem::path folder = std::getenv("CUDA_PLUGINS");
    if (!std::filesystem::exists(folder / "cudnn.cuda.catena")) return nullptr;
    static World the({(folder / "attention.cuda.catena").string(),
                      (folder / "cuda.catena").string(), (folder / "cudnn.cuda.catena").string()});
    return &the;
}

// Checks a call, and its gradients for each set of targets, written and added.
class Both {
public:
    // adds: whether the kernels add to results; for others the host does.
    Both(World& world, std::string function, Attrs attrs, bool adds = true)
        : world_(world), function_(std::move(function)), attrs_(std::move(attrs)), adds_(adds) {}

    template <class T>
    void check(const std::vector<Array>& x) {
        CAPTURE(function_);
        CAPTURE(plugin::text_of(plugin::dtype_of<T>()));
        for (const bool add : {false, true}) {
            CAPTURE(add);
            if (add && !adds_) continue;
            const auto y = forward(x, add);
            CHECK(compare(wide(y), wide(world_.forward(function_, wide(x), attrs_, on("cpu", add))),
                          scaled<T>(1)) == "");
            CHECK(compare(forward(x, add), y, {0, 0}) == "");
            check_gradients<T>(x, y, add);
        }
    }

private:
    std::vector<Array> forward(const std::vector<Array>& x, bool add) {
        auto y = world_.forward(function_, x, attrs_, on("cuda", add));
        CHECK(world_.ran() == cudnn_id);
        return y;
    }
    template <class T>
    void check_gradients(const std::vector<Array>& x, const std::vector<Array>& y, bool add) {
        std::vector<Array> gy(y.size());  // hidden outputs have no gradient
        gy[0] = draw<T>(y[0].shape(), 90);
        const auto all =
            world_.backward(function_, wide(x), wide(y), wide(gy), attrs_, on("cpu", add));
        std::uint64_t present = 0;
        for (std::size_t i = 0; i < all.size(); ++i) present |= std::uint64_t{bool(all[i])} << i;
        for (std::uint64_t targets = present; targets > 0; targets = (targets - 1) & present) {
            CAPTURE(targets);
            Options options = on("cuda", add);
            options.targets = targets;
            const auto gx = world_.backward(function_, x, y, gy, attrs_, options);
            CHECK(world_.ran() == cudnn_id);
            for (std::size_t i = 0; i < all.size(); ++i)
                if (gx[i]) CHECK(compare(wide(gx[i]), wide(all[i]), scaled<T>(10)) == "");
            CHECK(compare(world_.backward(function_, x, y, gy, attrs_, options), gx, {0, 0}) == "");
        }
    }
    template <class T>
    static Tolerance scaled(double factor) {
        Tolerance t = tolerance<T>();
        t.absolute *= 10 * factor;  // the results are sums
        return t;
    }

    World& world_;
    const std::string function_;
    const Attrs attrs_;
    const bool adds_;
};

struct Sizes {
    Dims x;
    Dims w;
    Ints stride = {1};
    Ints pad = {0};
    Ints dilate = {1};
    std::int64_t groups = 1;
};
const Sizes all_sizes[] = {
    {{2, 3, 7, 9}, {4, 3, 3, 3}, {1}, {1}},
    {{3, 2, 12, 9}, {4, 2, 3, 2}, {2}, {1, 0}},  // columns that no filter covers
    {{1, 1, 1, 1}, {1, 1, 1, 1}},
    {{5, 4, 6, 6}, {3, 4, 1, 1}, {3}},
    {{2, 3, 11, 8}, {4, 3, 5, 2}, {3, 1}, {1, 0}},
    {{2, 2, 3, 4}, {3, 2, 2, 2}, {2}, {3, 4}},  // padding larger than the filter
    {{17, 1, 5, 5}, {2, 1, 5, 5}},
    {{2, 3, 9, 8}, {4, 3, 3, 2}, {2, 1}, {1, 2}, {2, 3}},
    {{2, 4, 5, 6}, {6, 2, 3, 2}, {1}, {1}, {1}, 2},
    {{3, 3, 6, 5}, {6, 1, 2, 2}, {1}, {1}, {2}, 3},
};
Attrs attributes(const Sizes& s) {
    return {set("stride", plugin::Ints(s.stride)), set("pad", plugin::Ints(s.pad)),
            set("dilate", plugin::Ints(s.dilate)), set("groups", s.groups)};
}
Dims convolved(const Sizes& s) {
    const auto pair = [](const Ints& v, std::size_t i) { return v[v.size() == 1 ? 0 : i]; };
    Dims y = {s.x[0], s.w[0], 0, 0};
    for (const std::size_t i : {0u, 1u})
        y[2 + i] = (s.x[2 + i] + 2 * pair(s.pad, i) - (s.w[2 + i] - 1) * pair(s.dilate, i) - 1) /
                       pair(s.stride, i) +
                   1;
    return y;
}

template <class T>
void check_convolutions(World& world) {
    for (const Sizes& s : all_sizes) {
        CAPTURE(plugin::text_of(plugin::Shape(s.x)));
        CAPTURE(plugin::text_of(plugin::Shape(s.w)));
        const Array x = draw<T>(s.x, 1);
        const Array w = draw<T>(s.w, 2, -1, 1);
        const Array y = draw<T>(convolved(s), 3);
        Both forward(world, "catena.convolution_2d", attributes(s));
        forward.check<T>({x, w, draw<T>({s.w[0]}, 4)});
        forward.check<T>({x, w, Array()});
        Attrs attrs = attributes(s);
        attrs.push_back(set("outsize", plugin::Ints(s.x).subspan(2)));
        Both back(world, "catena.deconvolution_2d", attrs);
        back.check<T>({y, w, draw<T>({s.x[1]}, 5)});
        back.check<T>({y, w, Array()});
        attrs = attributes(s);
        attrs.push_back(set("ksize", plugin::Ints(s.w).subspan(2)));
        Both(world, "catena.convolution_2d_grad_w", attrs).check<T>({x, y});
    }
}

constexpr const char* attention = "catena.scaled_dot_product_attention";
struct Heads {
    std::int64_t b, h, hk, t, s, d, e;
    Attrs attrs = {};
    bool heads_last = false;
};
template <class T>
std::vector<Array> attention_inputs(const Heads& a) {
    const auto of = [&](std::int64_t heads, std::int64_t rows, std::int64_t size, unsigned seed) {
        return draw<T>(a.heads_last ? Dims{a.b, rows, heads, size} : Dims{a.b, heads, rows, size},
                       seed, -1, 1);
    };
    return {of(a.h, a.t, a.d, 1),
            of(a.hk, a.s, a.d, 2),
            of(a.hk, a.s, a.e, 3),
            Array(),
            Array(),
            Array()};
}
const Heads all_heads[] = {
    {2, 2, 2, 5, 7, 8, 8},
    {2, 4, 2, 6, 6, 16, 8, {set("causal", true), set("offset", -1), set("scale", 0.5)}},
    {1, 2, 1, 9, 4, 8, 24, {set("causal", true), set("layout", "BTHD")}, true},
    {3, 3, 1, 1, 10, 128, 8, {set("offset", 3), set("layout", "BTHD")}, true},
    {1, 1, 1, 3, 3, 8, 8, {set("scale", -2.0)}},
};

std::string done_by(World& world, const std::string& function, const std::vector<Array>& x,
                    const Attrs& attrs = {}) {
    try {
        world.forward(function, x, attrs, on("cuda"));
    } catch (const Failure&) {
        return "none";
    }
    return world.ran();
}

std::string done_by(World& world, const Dims& x, const Dims& w) {
    return done_by(world, "catena.convolution_2d", {draw<float>(x, 1), draw<float>(w, 2), Array()});
}

// Returns a world with cuDNN, which the emulator always has; null if a machine with a GPU lacks it.
World* cudnn() {
    World* const found = find_cudnn();
    if (std::getenv("CATENA_CUDNN_LIBRARY") != nullptr) REQUIRE(found != nullptr);
    else if (found == nullptr || done_by(*found, {1, 1, 1, 1}, {1, 1, 1, 1}) != cudnn_id) {
        MESSAGE("skipped: expected cuDNN, got none");
        return nullptr;
    }
    return found;
}

}  // namespace

TEST_CASE("convolutions on cuDNN, float32") {
    if (World* const world = cudnn()) check_convolutions<float>(*world);
}
TEST_CASE("convolutions on cuDNN, float64") {
    if (World* const world = cudnn()) check_convolutions<double>(*world);
}
TEST_CASE("convolutions on cuDNN, float16") {
    if (World* const world = cudnn()) check_convolutions<Float16>(*world);
}
TEST_CASE("convolutions on cuDNN, bfloat16") {
    if (World* const world = cudnn()) check_convolutions<BFloat16>(*world);
}

TEST_CASE("what is empty is left to others") {
    World* const world = cudnn();
    if (world == nullptr) return;
    CHECK(done_by(*world, {0, 2, 5, 5}, {3, 2, 3, 3}) != cudnn_id);
    CHECK(done_by(*world, {2, 0, 5, 5}, {3, 0, 3, 3}) != cudnn_id);
    CHECK(done_by(*world, {2, 2, 5, 5}, {3, 2, 3, 3}) == cudnn_id);
}

TEST_CASE("what is no number stays where it is seen") {
    World* const world = cudnn();
    if (world == nullptr) return;
    // In halves no engine that spreads NaN is allowed, such as those of Winograd.
    Array x = draw<Float16>({2, 2, 9, 9}, 1);
    x.set(0, no_number);
    x.set(100, inf);
    const std::vector<Array> inputs = {x, draw<Float16>({3, 2, 3, 3}, 2, 0.5, 1), Array()};
    const auto y = world->forward("catena.convolution_2d", inputs, {}, on("cuda"));
    CHECK(compare(wide(y),
                  wide(world->forward("catena.convolution_2d", wide(inputs), {}, on("cpu"))),
                  tolerance<Float16>()) == "");
}

TEST_CASE_TEMPLATE("attention on cuDNN", T, Float16, BFloat16) {
    World* const world = cudnn();
    if (world == nullptr) return;
    for (const Heads& a : all_heads) {
        CAPTURE(&a - all_heads);
        Both(*world, attention, a.attrs, false).check<T>(attention_inputs<T>(a));
    }
}

TEST_CASE("attention that cuDNN does not support runs on our kernel") {
    World* const world = cudnn();
    if (world == nullptr) return;
    const char* const ours = "org.catena.attention.cuda";
    const Heads plain = {2, 2, 2, 5, 7, 8, 8};
    CHECK(done_by(*world, attention, attention_inputs<Float16>(plain)) == cudnn_id);
    CHECK(done_by(*world, attention, attention_inputs<float>(plain)) == ours);
    CHECK(done_by(*world, attention, attention_inputs<double>(plain)) == ours);
    const Heads others[] = {
        {2, 2, 2, 5, 7, 12, 8},
        {2, 2, 2, 5, 7, 8, 7},
        {2, 2, 2, 5, 7, 136, 8},
        {2, 2, 2, 1, 1, 8, 8},
        {0, 2, 2, 5, 7, 8, 8},
        {2, 2, 2, 5, 0, 8, 8},
        {2, 2, 2, 5, 7, 8, 8, {set("window", 3)}},
        {2, 2, 2, 5, 7, 8, 8, {set("dropout", 0.5)}},
        {2, 2, 2, 5, 7, 8, 8, {set("causal", true), set("offset", -1)}},
        {2, 2, 2, 5, 7, 8, 8, {set("causal", true), set("offset", 1)}},
    };
    for (const Heads& a : others) {
        CAPTURE(&a - others);
        CHECK(done_by(*world, attention, attention_inputs<BFloat16>(a), a.attrs) == ours);
    }
    const Array extra[] = {draw<Float16>({5, 7}, 4),
                           draw<double>({5, 7}, 5).to(plugin::dtype_of<bool>()),
                           Array::from<std::int64_t>({3, 7}, {2})};
    for (const std::size_t i : {0u, 1u, 2u}) {  // bias, mask, lengths
        CAPTURE(i);
        std::vector<Array> x = attention_inputs<Float16>(plain);
        x[3 + i] = extra[i];
        CHECK(done_by(*world, attention, x) == ours);
    }
}

// Each kernel can use the values that the other one retained.
TEST_CASE("gradients of attention follow either kernel") {
    World* const world = cudnn();
    if (world == nullptr) return;
    const auto x = attention_inputs<Float16>(all_heads[0]);
    const auto y = world->forward(attention, x, {}, on("cuda"));
    CHECK(world->ran() == cudnn_id);
    const std::vector<Array> gy = {draw<Float16>(y[0].shape(), 90), Array(), Array(), Array()};
    const auto gx = world->backward(attention, x, y, gy, {}, on("cuda"));
    CHECK(world->ran() == cudnn_id);
    const auto other = ::world().forward(attention, x, {}, on("cuda"));
    CHECK(compare(wide(y), wide(other), tolerance<Float16>()) == "");
    CHECK(compare(wide(::world().backward(attention, x, y, gy, {}, on("cuda"))), wide(gx),
                  tolerance<Float16>()) == "");
    CHECK(compare(wide(world->backward(attention, x, other, gy, {}, on("cuda"))), wide(gx),
                  tolerance<Float16>()) == "");
}
