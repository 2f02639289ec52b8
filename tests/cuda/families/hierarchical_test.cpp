// Hierarchical softmax over trees of labels.
#include <cmath>
#include <numeric>

#include "both.hpp"

namespace {

// Returns a balanced tree of the labels first to end - 1, each multiplied by factor.
std::string balanced(std::int64_t first, std::int64_t end, std::int64_t factor = 1) {
    if (end - first == 1) return std::to_string(first * factor);
    const std::int64_t middle = (first + end) / 2;
    return "[" + balanced(first, middle, factor) + "," + balanced(middle, end, factor) + "]";
}
// Returns the deepest tree of n labels: [0,[1,[2,...]]].
std::string chain(std::int64_t n) {
    std::string text;
    for (std::int64_t k = 0; k + 1 < n; ++k) text += "[" + std::to_string(k) + ",";
    return text + std::to_string(n - 1) + std::string(static_cast<std::size_t>(n - 1), ']');
}
Array labels_of(std::int64_t n, std::int64_t labels, bool wide, std::int64_t factor = 1) {
    std::vector<std::int64_t> t(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < t.size(); ++i)
        t[i] = static_cast<std::int64_t>(i * 7919 % static_cast<std::size_t>(labels)) * factor;
    const Array x = Array::from<std::int64_t>(t, {n});
    return wide ? x : x.to(plugin::dtype_of<std::int32_t>());
}
Attrs with(const std::string& tree) { return {plugin::set("tree", tree.c_str())}; }

constexpr const char* loss_name = "catena.binary_hierarchical_softmax";
// Returns the loss and its gradients, which are composed of other functions'.
std::vector<Array> loss_of(const std::vector<Array>& x, const std::string& tree, const Array& gy,
                           const char* device) {
    const auto y = world().forward(loss_name, x, with(tree), on(device));
    const auto gx = world().gradient(loss_name, x, y, {gy}, with(tree), on(device));
    return wide(std::vector<Array>{y[0], gx[0], gx[2]});
}
template <class T>
void check_loss(const std::vector<Array>& x, const std::string& tree) {
    const Array gy = draw<T>({}, 90);
    Tolerance t = tolerance<T>();
    t.absolute *= 10;  // gradients are sums, with larger errors
    CHECK(compare(loss_of(x, tree, gy, "cuda"), loss_of(wide(x), tree, wide(gy), "cpu"), t) == "");
}

template <class T>
void check_tree(const std::string& tree, std::int64_t labels, std::int64_t n, std::int64_t size,
                bool add = false, std::int64_t factor = 1) {
    const Array t = labels_of(n, labels, add, factor);
    const Array x = draw<T>({n, size}, 1, -1, 1);
    check_loss<T>({x, t, draw<T>({labels - 1, size}, 2, -1, 1)}, tree);
    check_both<T>("catena.tree_ways", {x, t}, with(tree), false, add);
}

}  // namespace

TEST_CASE_TEMPLATE("hierarchical softmax: sizes, many samples, trees of any depth", T, float,
                   double, Float16, BFloat16) {
    for (const bool add : {false, true}) {
        check_tree<T>("[[0,1],[2,[3,4]]]", 5, 7, 8, add);
        check_tree<T>(balanced(0, 33), 33, 20, 33, add);
        check_tree<T>(chain(40), 40, 9, 16, add);
        check_tree<T>("0", 1, 3, 4, add);
    }
    check_tree<T>(balanced(0, 100), 100, 300, 40);
    check_tree<T>(balanced(0, 50, -3), 50, 60, 3, true, -3);
    check_tree<T>("[1,0]", 2, 1, 1);
    check_tree<T>("[1,0]", 2, 0, 4);
}

TEST_CASE("hierarchical softmax: many pairs of samples and nodes") {
    // Labels at different depths: most pairs of a sample and a node are not on a path.
    const std::int64_t depth = (1 << 18) / 3;
    const Array x = draw<float>({5, 2}, 1, -1, 1);
    const Array t = Array::from<std::int64_t>({0, 2, 9, 300, 1}, {5});
    check_loss<float>({x, t, draw<float>({depth, 2}, 2, -1, 1)}, chain(depth + 1));
}

// On the CPU this is an error; on a device, which cannot report it, the result is NaN.
TEST_CASE_TEMPLATE("hierarchical softmax: a label that the tree does not have", T, float, Float16) {
    const Array x = draw<T>({3, 5}, 1);
    for (const char* tree : {"[[0,1],3]", "[0,[-5,1]]", "1"}) {
        const std::int64_t nodes = std::string(tree) == "1" ? 0 : 2;
        const Array w = draw<T>({nodes, 5}, 2);
        const auto run = [&](const std::vector<std::int64_t>& labels) {
            const Array t = Array::from<std::int64_t>(labels, {3});
            return loss_of({x, t, w}, tree, draw<T>({}, 3), "cuda");
        };
        const auto out = run({1, 2, 1});
        CHECK(std::isnan(out[0].template values<double>()[0]));
        const auto gx = out[1].template values<double>();
        for (std::size_t k = 0; k < gx.size(); ++k) CHECK(std::isnan(gx[k]) == (k / 5 == 1));
        for (const double g : out[2].template values<double>()) CHECK(std::isfinite(g));
        CHECK(std::isfinite(run({1, 1, 1})[0].template values<double>()[0]));
    }
}

TEST_CASE("hierarchical softmax: more trees than are kept on a device, in turn") {
    for (int turn = 0; turn < 3; ++turn)
        for (std::int64_t n = 2; n < 24; ++n) check_tree<float>(balanced(0, n), n, 5, 4);
}

TEST_CASE("hierarchical softmax: NaN and infinite scores") {
    const auto loss = [](double value) {
        const Array x = Array::from<double>({value}, {1, 1}).to(plugin::dtype_of<float>());
        const Array w = Array::from<double>({1}, {1, 1}).to(plugin::dtype_of<float>());
        return world()
            .forward("catena.binary_hierarchical_softmax",
                     {x, Array::from<std::int64_t>({0}, {1}), w}, with("[0,1]"), on("cuda"))[0]
            .values<float>()[0];
    };
    CHECK(loss(-1e30) == 0);
    CHECK(loss(1e30) == doctest::Approx(1e30));
    CHECK(loss(inf) == inf);
    CHECK(std::isnan(loss(no_number)));
}
