// Hierarchical softmax over trees of labels.
#include <cmath>

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

template <class T>
void check_tree(const std::string& tree, std::int64_t labels, std::int64_t n, bool add = false,
                std::int64_t factor = 1) {
    const Array t = labels_of(n, labels, add, factor);
    const Array x = draw<T>({n, 4}, 1, -1, 1);
    check_both<T>("catena.tree_ways", {x, t}, with(tree), false, add);
    if (labels < 200)
        check_composition<T>("catena.binary_hierarchical_softmax",
                             {x, t, draw<T>({labels - 1, 4}, 2, -1, 1)}, with(tree));
}

}  // namespace

TEST_CASE_TEMPLATE("hierarchical softmax: many samples, trees of any depth", T, float, double,
                   Float16, BFloat16) {
    for (const bool add : {false, true}) {
        check_tree<T>("[[0,1],[2,[3,4]]]", 5, 7, add);
        check_tree<T>(balanced(0, 33), 33, 20, add);
        check_tree<T>(chain(40), 40, 9, add);
        check_tree<T>("0", 1, 3, add);
    }
    check_tree<T>(balanced(0, 100), 100, 300);
    check_tree<T>(balanced(0, 50, -3), 50, 60, true, -3);
    check_tree<T>("[1,0]", 2, 1);
    check_tree<T>("[1,0]", 2, 0);
}

TEST_CASE("hierarchical softmax: a deep tree") {
    const std::int64_t labels = (1 << 18) / 3;
    check_tree<float>(chain(labels), labels, 5);
}

// On the CPU this is an error; on a device, which cannot report it, the loss becomes NaN.
TEST_CASE_TEMPLATE("hierarchical softmax: a label that the tree does not have", T, float, Float16) {
    for (const char* tree : {"[[0,1],3]", "[0,[-5,1]]", "1"}) {
        const Array t = Array::from<std::int64_t>({1, 2, 1}, {3});
        const auto ways =
            world().forward("catena.tree_ways", {draw<T>({3, 5}, 1), t}, with(tree), on("cuda"));
        const std::int64_t depth = ways[0].shape()[1];
        const auto codes = wide(ways[1]).template values<double>();
        for (std::size_t k = 0; k < codes.size(); ++k)
            CHECK(std::isnan(codes[k]) == (static_cast<std::int64_t>(k) == depth));
        // No row of W has this number, and it is not ignored: embed_id gives NaN.
        CHECK(ways[0].template values<std::int64_t>()[static_cast<std::size_t>(depth)] == -2);
    }
}

TEST_CASE("hierarchical softmax: more trees than are kept on a device, in turn") {
    for (int turn = 0; turn < 3; ++turn)
        for (std::int64_t n = 2; n < 24; ++n) check_tree<float>(balanced(0, n), n, 5);
}
