// Tests of the small links: initial values, results, refused arguments.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cmath>

using namespace catena;
namespace F = catena::functions;

namespace {

Array drawn(const Shape& shape, double low = -1, double high = 1) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    fill_uniform(values, low, high);
    return Array::from(values, shape);
}
Array ids(std::initializer_list<std::int32_t> values) {
    return Array::from<std::int32_t>(values, {static_cast<std::int64_t>(values.size())});
}
// Checks gradients of both orders in float64, for the floating inputs and a copy of the parameters.
template <class L, class Call>
void check(const L& original, const std::vector<Array>& inputs, const Call& call) {
    L link = deep_copy(original);
    gradient_check::Options options{.eps = 1e-5, .atol = 1e-8, .rtol = 1e-6};
    options.params = link.parameters();
    std::vector<Array> ggx;
    std::vector<Variable> variables;
    for (const Array& input : inputs) {
        variables.emplace_back(input);
        if (is_floating(input.dtype())) ggx.push_back(drawn(input.shape()));
    }
    for (const Variable& p : options.params) {
        p.set_data(p.data().astype(Dtype::float64));
        ggx.push_back(drawn(p.shape()));
    }
    const auto function = [&](const auto& x) { return std::vector{call(link, x)}; };
    const std::vector<Array> gy{drawn(function(variables)[0].shape())};
    CHECK_NOTHROW(gradient_check::check_backward(function, inputs, gy, options));
    CHECK_NOTHROW(gradient_check::check_double_backward(function, inputs, gy, ggx, options));
}

}  // namespace

TEST_CASE("Linear with several batch axes") {
    const links::Linear link(4, 3);
    const Array x = initializers::Uniform(1)({2, 5, 4}, Dtype::float32);
    const Variable y = link(Variable(x), 2);
    CHECK(y.shape() == Shape{2, 5, 3});
    const Variable rows = link(Variable(F::reshape(x, {10, 4})));
    CHECK(y.data().to_vector<float>() == rows.data().to_vector<float>());
    CHECK(link(Variable(x), 2).shape() == Shape{2, 5, 3});
    CHECK_THROWS_AS(link(Variable(x)), ShapeError);
    CHECK_THROWS_AS(link(Variable(x), 4), ShapeError);
    CHECK_THROWS_AS(link(Variable(x), 0), InvalidError);
}

TEST_CASE("EmbedID starts from N(0, 1) and picks rows") {
    seed(1);
    links::EmbedID embed(300, 200);
    CHECK(embed.W.shape() == Shape{300, 200});
    double sum = 0;
    for (const float w : embed.W.data().to_vector<float>()) sum += w * w;
    CHECK(std::sqrt(sum / 60000) == doctest::Approx(1).epsilon(0.02));

    links::EmbedID small(3, 2);
    small.W.set_data(Array::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {3, 2}));
    const Variable y = small(Variable(ids({2, 0, 2})));
    CHECK(y.data().to_vector<float>() == std::vector<float>{5, 6, 1, 2, 5, 6});
    F::sum(y).backward();
    CHECK(small.W.grad().to_vector<float>() == std::vector<float>{1, 1, 0, 0, 2, 2});
    F::sum(small(Variable(ids({1})))).backward();  // accumulates
    CHECK(small.W.grad().to_vector<float>() == std::vector<float>{1, 1, 1, 1, 2, 2});
    check(small, {ids({2, 0, 2})}, [](auto& link, const auto& x) { return link(x[0]); });
    contains(error_of<ValueError>([&] {
                 small(Variable(ids({0, 3})));
             }),
             "x[1]: expected an id from 0 to 2, got 3");
    CHECK_THROWS_AS(links::EmbedID(0, 3), ShapeError);
    CHECK_THROWS_AS(links::EmbedID(3, -1), ShapeError);
}

TEST_CASE("Parameter is its variable") {
    const Array array = Array::from({1.F, 2.F}, {2});
    const links::Parameter parameter(array);
    CHECK(parameter().data().body() == array.body());
    F::sum(parameter() * parameter()).backward();
    CHECK(parameter.W.grad().to_vector<float>() == std::vector<float>{2, 4});
    links::Parameter other(array);
    CHECK_THROWS_AS(other(Variable(array)), UnsupportedError);
    CHECK_THROWS_AS(links::Parameter(ids({1})), DtypeError);
    CHECK_THROWS_AS(links::Parameter{Array()}, DtypeError);
}

TEST_CASE("PReLU starts with slopes of 0.25") {
    links::PReLU one;
    CHECK(one.W.shape() == Shape{});
    const Variable x(Array::from({-4.F, 0.F, 2.F, -8.F}, {2, 2}));
    CHECK(one(x).data().to_vector<float>() == std::vector<float>{-1, 0, 2, -2});
    links::PReLU each({2}, 0.5);
    CHECK(each.W.data().to_vector<float>() == std::vector<float>{0.5F, 0.5F});
    F::sum(each(x)).backward();
    CHECK(each.W.grad().to_vector<float>() == std::vector<float>{-4, -8});
    CHECK(x.grad().to_vector<float>() == std::vector<float>{0.5F, 1, 1, 0.5F});
    check(each, {Array::from({-1.0, 0.5, -2.0, -0.5, 1.0, 2.0}, {3, 2})},
          [](auto& link, const auto& v) { return link(v[0]); });
    contains(error_of<ShapeError>([&] { each(Variable(Array::zeros({2, 3}))); }), "W.shape");
}

TEST_CASE("WordTree") {
    const WordTree tree{{3, 1}, {2, 0}};
    CHECK(tree.to_json() == "[[3, 1], [2, 0]]");
    CHECK(tree.words() == 4);
    CHECK(tree.inner_nodes() == 3);
    CHECK(tree.left() == WordTree{3, 1});
    CHECK(tree.right().left().word() == 2);
    CHECK(tree.left().right() == WordTree(1));
    CHECK_FALSE(tree == WordTree{{3, 1}, {0, 2}});
    CHECK(WordTree(-7).to_json() == "-7");
    CHECK_THROWS_AS((void)tree.word(), InvalidError);
    CHECK_THROWS_AS((void)WordTree(5).left(), InvalidError);
    CHECK_THROWS_AS((void)WordTree(5).right(), InvalidError);
}

TEST_CASE("create_huffman_tree") {
    CHECK(F::create_huffman_tree({{0, 8}, {1, 5}, {2, 6}, {3, 4}}) == WordTree{{3, 1}, {2, 0}});
    CHECK(create_huffman_tree({{9, 3}}) == WordTree(9));
    CHECK(create_huffman_tree({{4, 1}, {-2, 0}}) == WordTree{-2, 4});
    // Ties: words come first, in ascending order, then joined trees in the order of their creation.
    CHECK(create_huffman_tree({{2, 1}, {0, 1}, {1, 1}, {3, 1}}) == WordTree{{0, 1}, {2, 3}});
    CHECK(create_huffman_tree({{0, 1}, {1, 1}, {2, 2}}) == WordTree{2, {0, 1}});
    CHECK_THROWS_AS(create_huffman_tree({}), InvalidError);
    CHECK_THROWS_AS(create_huffman_tree({{0, -1}, {1, 1}}), InvalidError);
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    CHECK_THROWS_AS(create_huffman_tree({{0, most}, {1, most}}), InvalidError);
    // The deepest tree: each count is the sum of all smaller ones.
    std::map<std::int64_t, std::int64_t> counts{{0, 1}};
    for (std::int64_t i = 1; i < 60; ++i) counts[i] = std::int64_t{1} << (i - 1);
    const WordTree deep = create_huffman_tree(counts);
    CHECK(deep.words() == 60);
    WordTree rest = deep;
    for (int i = 59; i > 1; --i) {
        const bool left = rest.left().is_word();
        CHECK((left ? rest.left() : rest.right()).word() == i);
        rest = left ? rest.right() : rest.left();
    }
    CHECK(rest.words() == 2);
    std::map<std::int64_t, std::int64_t> many;
    for (std::int64_t i = 0; i < 20000; ++i) many[i] = i % 977;
    CHECK(create_huffman_tree(many).words() == 20000);
}

TEST_CASE("BinaryHierarchicalSoftmax") {
    seed(2);
    const WordTree tree = create_huffman_tree({{0, 8}, {1, 5}, {2, 6}, {3, 4}});
    links::BinaryHierarchicalSoftmax loss(3, tree);
    CHECK(loss.W.shape() == Shape{3, 3});
    double least = 0;
    double most = 0;
    const links::BinaryHierarchicalSoftmax wide(400, tree);
    for (const float w : wide.W.data().to_vector<float>()) {
        least = std::min<double>(least, w);
        most = std::max<double>(most, w);
    }
    CHECK(least == doctest::Approx(-1).epsilon(0.02));
    CHECK(most == doctest::Approx(1).epsilon(0.02));

    // The probabilities of all words sum to 1.
    const Variable x(drawn({1, 3}).astype(Dtype::float32));
    double sum = 0;
    for (std::int32_t word = 0; word < 4; ++word) {
        sum += std::exp(-loss(x, Variable(ids({word}))).data().item<float>());
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    check(loss, {drawn({4, 3}), ids({2, 0, 3, 0})},
          [](auto& link, const auto& v) { return link(v[0], v[1]); });

    contains(error_of<ValueError>([&] { loss(x, Variable(ids({4}))); }),
             "t[0]: expected a label of the tree, got 4");
    CHECK_THROWS_AS(loss(x), UnsupportedError);
    CHECK_THROWS_AS(links::BinaryHierarchicalSoftmax(0, tree), ShapeError);
    CHECK_THROWS_AS(links::BinaryHierarchicalSoftmax(3, {{1, 2}, 1}), InvalidError);
    links::BinaryHierarchicalSoftmax one(3, 5);  // with a single word, the loss is 0
    CHECK(one(x, Variable(ids({5}))).data().item<float>() == 0);
}

TEST_CASE("BinaryHierarchicalSoftmax: saved parameters belong to their tree") {
    const TemporaryFolder folder;
    links::BinaryHierarchicalSoftmax first(3, WordTree{{3, 1}, {2, 0}});
    save_npz(folder.path / "w.npz", first);
    links::BinaryHierarchicalSoftmax same(3, WordTree{{3, 1}, {2, 0}});
    load_npz(folder.path / "w.npz", same);
    CHECK(same.W.data().to_vector<float>() == first.W.data().to_vector<float>());
    links::BinaryHierarchicalSoftmax other(3, WordTree{{3, 1}, {0, 2}});
    CHECK_THROWS_AS(load_npz(folder.path / "w.npz", other), Error);
}

TEST_CASE("links with several inputs live in sets, and are copied") {
    FunctionSet set{{"embed", links::EmbedID(5, 4)},
                    {"loss", links::BinaryHierarchicalSoftmax(4, WordTree{0, {1, 2}})},
                    {"scale", links::Parameter(Array::ones({4}))}};
    FunctionSet copy = deep_copy(set);
    const auto loss = [](FunctionSet& s) {
        const Variable x = s["embed"](Variable(ids({1, 4})));
        return s.get<links::BinaryHierarchicalSoftmax>("loss")(
            x * s.get<links::Parameter>("scale")(), Variable(ids({2, 0})));
    };
    const float before = loss(set).data().item<float>();
    CHECK(loss(copy).data().item<float>() == before);
    set.get<links::Parameter>("scale").W.data().fill(0);
    CHECK(loss(copy).data().item<float>() == before);
    CHECK(loss(set).data().item<float>() == doctest::Approx(3 * std::log(2.0)));
}

TEST_CASE("LayerNormalization, RMSNormalization and GroupNormalization") {
    const links::LayerNormalization layer(4);
    CHECK(layer.gamma.data().to_vector<float>() == std::vector<float>(4, 1));
    CHECK(layer.beta.data().to_vector<float>() == std::vector<float>(4, 0));
    CHECK(layer.eps == 1e-6);
    const auto call = [](const auto& link, const auto& x) { return link(x[0]); };
    check(layer, {drawn({3, 4})}, call);
    check(links::LayerNormalization(Shape{2, 3}, 0.1), {drawn({4, 2, 3})}, call);
    check(links::RMSNormalization(4), {drawn({3, 4})}, call);
    check(links::RMSNormalization(Shape{2, 3}, 0.1), {drawn({4, 2, 3})}, call);
    const links::GroupNormalization group(2, 4);
    CHECK(group.eps == 1e-5);
    check(group, {drawn({2, 4, 3})}, call);
    const Array x = drawn({2, 4, 3}).astype(Dtype::float32);
    CHECK(group(Variable(x)).data().to_vector<double>() ==
          F::group_normalization(x, 2).to_vector<double>());
    CHECK_THROWS_WITH_AS(links::LayerNormalization(0),
                         "[LayerNormalization] size: expected a positive number, got 0",
                         ShapeError);
    CHECK_THROWS_WITH_AS(links::RMSNormalization(Shape{}),
                         "[RMSNormalization] size: expected at least one axis, got ()", ShapeError);
    CHECK_THROWS_WITH_AS(links::GroupNormalization(3, 4),
                         "[GroupNormalization] groups: expected a divisor of size 4, got 3",
                         ShapeError);
    const Variable wrong(drawn({3, 5}).astype(Dtype::float32));
    CHECK_THROWS_AS(layer(wrong), ShapeError);
    CHECK_THROWS_AS(group(wrong), ShapeError);
}

TEST_CASE("Swish and Maxout") {
    const links::Swish swish(Shape{3}, 0.5);
    CHECK(swish.beta.data().to_vector<float>() == std::vector<float>(3, 0.5));
    const auto call = [](const auto& link, const auto& x) { return link(x[0]); };
    check(swish, {drawn({2, 3, 2})}, call);
    check(links::Swish(Shape{}), {drawn({2, 3})}, call);
    const links::Maxout maxout(4, 3, 2);
    CHECK(maxout.linear.W.shape() == Shape{6, 4});
    CHECK(maxout(Variable(drawn({2, 4}).astype(Dtype::float32))).shape() == Shape{2, 3});
    CHECK_THROWS_AS(links::Maxout(4, 3, 0), ShapeError);
}

TEST_CASE("arguments of Chainer 7: initial values are numbers, arrays, initializers or defaults") {
    using initializers::Constant, initializers::Uniform;
    const auto values = [](const Variable& p) { return p.data().to_vector<float>(); };
    using Floats = std::vector<float>;
    const Array W = Array::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3});
    const links::Linear linear(3, 2, false, W, Constant(7));
    CHECK(values(linear.W) == Floats{1, 2, 3, 4, 5, 6});
    CHECK(values(linear.b) == Floats{7, 7});
    linear.W.data().fill(0);
    CHECK(W.to_vector<float>() == Floats{1, 2, 3, 4, 5, 6});  // it was copied
    CHECK(values(links::Linear(3, 2).b) == Floats{0, 0});
    CHECK_FALSE(links::Linear(3, 2, true, {}, 1).b);
    for (const float w : values(links::Linear(30, 20, true, Uniform(0.25)).W))
        REQUIRE(std::abs(w) <= 0.25F);
    CHECK(links::Linear(1, 1, true, Array::ones({1, 1}, Dtype::float64)).W.dtype() ==
          Dtype::float64);
    CHECK_THROWS_WITH_AS(links::Linear(2, 3, false, W),
                         "[Initial] values: expected (3, 2), the parameter's shape, got (2, 3)",
                         ShapeError);
    // Numbers in place of nobias are Chainer 1's wscale and bias.
    CHECK(values(links::Linear(3, 2, 1, 4).b) == Floats{4, 4});
    CHECK(values(links::Convolution2D(1, 2, 3, 1, 0, 1, 4).b) == Floats{4, 4});
    CHECK(values(links::Linear(3, 2, 0).W) == Floats(6));

    const links::Convolution2D convolution(1, 2, 1, 1, 0, false, 3, Array::from({1.F, 2.F}, {2}));
    CHECK(values(convolution.W) == Floats{3, 3});
    CHECK(values(convolution.b) == Floats{1, 2});
    CHECK_FALSE(links::Convolution2D(1, 2, 1, 1, 0, true).b);

    const links::EmbedID embed(2, 3, W, -1);
    CHECK(values(embed(Variable(ids({1, -1, 0})))) == Floats{4, 5, 6, 0, 0, 0, 1, 2, 3});
    CHECK_THROWS_AS((void)links::EmbedID(2, 3, W)(Variable(ids({-1}))), ValueError);

    const links::Maxout maxout(3, 1, 2, W, 5);
    CHECK(values(maxout.linear.W) == Floats{1, 2, 3, 4, 5, 6});
    CHECK(values(maxout.linear.b) == Floats{5, 5});
    CHECK_FALSE(links::Maxout(3, 1, 2, W, {}).linear.b);

    const links::Inception inception(1, 1, 1, 1, 1, 1, 1, 2, 3);
    CHECK(values(inception.projp.W) == Floats{2});
    CHECK(values(inception.conv5.b) == Floats{3});
    CHECK(values(links::PReLU(Shape{2}, Array::from({1.F, 2.F}, {2})).W) == Floats{1, 2});
    CHECK(values(links::GroupNormalization(1, 2, 1e-5, 2, 3).beta) == Floats{3, 3});
    CHECK(values(links::LayerNormalization({1, 2}, 1e-6, 2, 3).gamma) == Floats{2, 2});
    CHECK(values(links::RMSNormalization(2, 1e-6, 2).gamma) == Floats{2, 2});
}

TEST_CASE("BatchNormalization: Chainer 7's arguments") {
    const links::BatchNormalization given(2, 0.5, 1e-3, Dtype::float64, true, true, 2, 3, {}, 4, 5);
    CHECK(given.gamma.data().to_vector<double>() == std::vector<double>{2, 2});
    CHECK(given.beta.data().to_vector<double>() == std::vector<double>{3, 3});
    CHECK(given.avg_mean.to_vector<double>() == std::vector<double>{4, 4});
    CHECK(given.avg_var.to_vector<double>() == std::vector<double>{5, 5});
    CHECK(given.gamma.dtype() == Dtype::float64);
    CHECK(links::BatchNormalization(2).eps == 2e-5);

    const Variable x(drawn({3, 2, 4}).astype(Dtype::float32));
    const links::BatchNormalization whole(2), bare(2, 0.9, 2e-5, Dtype::float32, false, false);
    CHECK(bare.collect_parameters().empty());
    for (const bool test : {false, true})
        gradient_check::assert_allclose(bare(x, test).data(), whole(x, test).data(), 0, 0);
    // The statistics of x over axes 0 and 2 are those of its transpose over 0 and 1, or -1 and -2.
    const Variable t = F::transpose(x, {0, 2, 1}), u = F::transpose(x, {1, 2, 0});
    for (const bool test : {false, true}) {
        const auto with_axis = [&](const Variable& v, const std::vector<std::int64_t>& axis) {
            const links::BatchNormalization link(2, 0.9, 2e-5, Dtype::float32, true, true, {}, {},
                                                 axis);
            return link(v, test).data();
        };
        const Array expected = links::BatchNormalization(2)(x, test).data();
        const auto same = [&](const Array& y, const std::vector<std::int64_t>& back) {
            gradient_check::assert_allclose(F::transpose(y, back), expected, 1e-5, 1e-5);
        };
        same(with_axis(t, {0, 1}), {0, 2, 1});
        same(with_axis(u, {-1, -2}), {2, 0, 1});
        same(with_axis(x, {0, 2}), {0, 1, 2});
        CHECK_THROWS_AS(with_axis(x, {0}), ShapeError);
        CHECK_THROWS_AS(with_axis(x, {0, 3}), ShapeError);
    }
}
