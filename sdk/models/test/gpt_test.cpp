// Gpt: both layouts learn, and a cache gives the scores of the whole text.
#include <catena/catena.hpp>
#include <catena/models.hpp>
#include <catena/optimizers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "temporary.hpp"

using namespace catena;
using models::Gpt;
namespace F = functions;

namespace {

using Ids = std::vector<std::int32_t>;

Gpt::Sizes small(Gpt::Layout layout) {
    return {.words = 11,
            .context = 12,
            .units = 16,
            .layers = 2,
            .heads = 4,
            .kv_heads = 2,
            .layout = layout};
}

Variable ids(const Ids& values, const Shape& shape) {
    return as_variable(Array::from(std::span<const std::int32_t>(values), shape));
}

std::vector<float> values(const Variable& v) { return v.data().to_vector<float>(); }

// Scores of the last token, without a cache.
std::vector<float> last(const Gpt& model, const Ids& text) {
    const auto all = values(model(ids(text, {1, std::ssize(text)})));
    return {all.end() - model.sizes().words, all.end()};
}

void check_close(const std::vector<float>& got, const std::vector<float>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("a cache gives the scores of the whole text") {
    const no_backprop_mode no_graph;
    for (const auto layout : {Gpt::Layout::gpt2, Gpt::Layout::llama}) {
        CAPTURE(std::string(to_string(layout)));
        const Gpt model(small(layout));
        auto cache = model.make_cache(2, 12);
        const Ids one{1, 2, 3, 4, 5, 6, 7}, two{10, 9, 8, 7, 6, 5, 4};
        const auto step = [&](std::size_t begin, std::size_t end) {
            Ids x(one.begin() + static_cast<std::ptrdiff_t>(begin),
                  one.begin() + static_cast<std::ptrdiff_t>(end));
            x.insert(x.end(), two.begin() + static_cast<std::ptrdiff_t>(begin),
                     two.begin() + static_cast<std::ptrdiff_t>(end));
            auto expected =
                last(model, Ids(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(end)));
            const auto second =
                last(model, Ids(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(end)));
            expected.insert(expected.end(), second.begin(), second.end());
            const auto n = static_cast<std::int64_t>(end - begin);
            check_close(values(model.next_scores(ids(x, {2, n}), cache)), expected);
        };
        step(0, 3);
        step(3, 4);
        step(4, 7);
        CHECK(cache[1].length == 7);
        CHECK(error_of<ShapeError>([&] {
                  (void)model.next_scores(ids(Ids(12, 1), {2, 6}), cache);
              }) == "[Gpt] x: expected (N, T) with T up to 5, got (2, 6)");
        CHECK(error_of<ShapeError>([&] {
                  (void)model.next_scores(ids({1}, {1, 1}), cache);
              }) ==
              "[MultiHeadAttention] x: expected (2, T, units) as the cache has, got (1, 1, 16)");
        auto tight = model.make_cache(1, 2);
        CHECK(error_of<ShapeError>([&] {
                  (void)model.next_scores(ids(one, {1, 7}), tight);
              }) ==
              "[MultiHeadAttention] x: expected at most 2 tokens, for which the cache has places, "
              "got 7");
        CHECK(cache[1].length == 7);
    }
}

TEST_CASE("no token sees later ones") {
    const no_backprop_mode no_graph;
    for (const auto layout : {Gpt::Layout::gpt2, Gpt::Layout::llama}) {
        const Gpt model(small(layout));
        auto one = values(model(ids({1, 2, 3, 4}, {1, 4}))),
             two = values(model(ids({1, 2, 9, 9}, {1, 4})));
        CHECK(std::equal(one.begin(), one.begin() + 22, two.begin()));
        CHECK(!std::equal(one.begin(), one.end(), two.begin()));
    }
}

TEST_CASE("both layouts learn a sequence and generate it") {
    for (const auto layout : {Gpt::Layout::gpt2, Gpt::Layout::llama}) {
        CAPTURE(std::string(to_string(layout)));
        seed(1);
        auto sizes = small(layout);
        sizes.dropout = 0.01;
        Gpt model(sizes);
        optimizers::AdamW optimizer(0.01);
        optimizer.setup(model);
        Ids text;
        for (std::int32_t i = 0; i < 130; ++i) text.push_back(i * i % 11);  // of period 11
        const auto rows = [&](std::int32_t shift) {
            Ids all;
            for (std::int32_t row = 0; row < 10; ++row)
                for (std::int32_t t = 0; t < 12; ++t)
                    all.push_back(text[static_cast<std::size_t>(row * 10 + t + shift)]);
            return ids(all, {10, 12});
        };
        double loss = 0;
        for (int step = 0; step < 150; ++step) {
            const Variable y = model.loss(rows(0), rows(1));
            loss = y.data().item<float>();
            if (step == 0) CHECK(loss == doctest::Approx(std::log(11)).epsilon(0.05));
            optimizer.cleargrads();
            y.backward();
            optimizer.update();
        }
        CHECK(loss < 0.2);
        Generator generator(1);
        // Longer than the context.
        const auto more =
            models::continue_text(model, Ids{0, 1, 4, 9}, 30, {.temperature = 0}, generator);
        for (std::size_t i = 0; i < more.size(); ++i) CHECK(more[i] == text[i + 4]);
        std::vector<Generator> generators{Generator(1), Generator(2), Generator(3)};
        const std::vector<Ids> prompts{{9, 5, 3}, {0, 1, 4, 9, 5, 3, 3}, {4, 9}};
        const auto each =
            models::continue_texts(model, prompts, 20, {.temperature = 0}, generators);
        for (std::size_t i = 0; i < prompts.size(); ++i)
            CHECK(each[i] ==
                  models::continue_text(model, prompts[i], 20, {.temperature = 0}, generator));
        // Texts stop before an end.
        const Ids ends{0, 3};
        const auto until =
            models::continue_texts(model, prompts, 20, {.temperature = 0}, generators, ends);
        CHECK(until == std::vector<Ids>{{}, {5, 9, 4, 1}, {5}});
        for (std::size_t i = 0; i < prompts.size(); ++i)
            CHECK(until[i] == models::continue_text(model, prompts[i], 20, {.temperature = 0},
                                                    generator, ends));
        CHECK(error_of<InvalidError>([&] {
                  (void)models::continue_text(model, Ids{}, 1, {}, generator);
              }) == "[Gpt] prompt: expected at least one token, got none");
    }
}

TEST_CASE("rows of a padded batch have the scores of single texts") {
    const no_backprop_mode no_graph;
    for (const auto layout : {Gpt::Layout::gpt2, Gpt::Layout::llama}) {
        const Gpt model(small(layout));
        const Variable x = ids({1, 2, 3, 4, 5, 6, 7, 0, 0, 0}, {2, 5});
        const Variable lengths = as_variable(Array::from(std::vector<std::int64_t>{5, 2}, {2}));
        const auto all = values(model(x, {}, lengths)), plain = values(model(x));
        const auto one = values(model(ids({1, 2, 3, 4, 5}, {1, 5}))),
                   two = values(model(ids({6, 7}, {1, 2})));
        check_close({all.begin(), all.begin() + 55}, one);
        check_close({all.begin() + 55, all.begin() + 77}, two);
        CHECK(!std::equal(all.begin() + 77, all.end(), plain.begin() + 77));
        // A mask that hides the second half is as good as lengths.
        const Array seen =
            Array::from(std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 1, 0, 0, 0}, {2, 1, 1, 5})
                .astype(Dtype::bool8);
        check_close(values(model(x, as_variable(seen))), all);
    }
}

TEST_CASE("a profile attributes almost all time of a step to functions") {
    const Gpt model({.words = 500,
                     .context = 128,
                     .units = 128,
                     .layers = 2,
                     .heads = 4,
                     .kv_heads = 4,
                     .layout = Gpt::Layout::gpt2});
    optimizers::AdamW optimizer;
    optimizer.setup(model);
    optimizer.add_hook([](const Optimizer& o) { o.clip_grads(1); });
    Ids text;
    for (std::int32_t i = 0; i < 4 * 128; ++i) text.push_back(i * i % 500);
    const auto step = [&] {
        optimizer.cleargrads();
        model.loss(ids(text, {4, 128}), ids(text, {4, 128})).backward();
        optimizer.update();
    };
    step();
    const Profile profile;
    const auto begin = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
    double named = 0;
    std::set<std::string> functions;
    for (const Profile::Row& row : profile.rows()) {
        named += row.seconds;
        functions.insert(row.function);
        CHECK(row.function.starts_with("catena."));
        CHECK(row.kernel != "");
    }
    CHECK(named <= all.count());
    for (const char* function : {"linear", "layer_normalization", "scaled_dot_product_attention",
                                 "gelu", "softmax_cross_entropy", "sum_of_squares", "adam_update"})
        CHECK(functions.contains(std::string("catena.") + function));
}

TEST_CASE("parameters have names, and tied vectors are one parameter") {
    const Gpt gpt2(small(Gpt::Layout::gpt2)), llama(small(Gpt::Layout::llama));
    const auto has = [](const Gpt& model, const std::string& name) {
        return std::ranges::any_of(model.collect_parameters(),
                                   [&](const auto& p) { return p.name == name; });
    };
    CHECK(has(gpt2, "block1/attention/k/W"));
    CHECK(has(gpt2, "block0/norm2/beta"));
    CHECK(has(gpt2, "position"));
    CHECK(!has(gpt2, "head/W"));
    CHECK(has(llama, "block1/gate/W"));
    CHECK(has(llama, "head/W"));
    CHECK(!has(llama, "position"));
    CHECK(!has(llama, "block0/attention/q/b"));
}

TEST_CASE("wrong sizes and calls are errors") {
    auto sizes = small(Gpt::Layout::gpt2);
    sizes.heads = 3;
    CHECK(error_of<ShapeError>([&] { (void)Gpt(sizes); }) ==
          "[MultiHeadAttention] heads: expected a divisor of the 16 units, got 3");
    sizes = small(Gpt::Layout::gpt2);
    sizes.kv_heads = 3;
    CHECK(error_of<ShapeError>([&] { (void)Gpt(sizes); }) ==
          "[MultiHeadAttention] kv_heads: expected a divisor of the 4 heads, got 3");
    sizes = small(Gpt::Layout::gpt2);
    sizes.context = 0;
    CHECK_THROWS_AS((void)Gpt(sizes), ShapeError);
    sizes = small(Gpt::Layout::gpt2);
    sizes.dropout = 1;
    CHECK_THROWS_AS((void)Gpt(sizes), InvalidError);
    const Gpt model(small(Gpt::Layout::gpt2));
    CHECK(error_of<ShapeError>([&] {
              (void)model(ids(Ids(13, 0), {1, 13}));
          }) == "[Gpt] x: expected (N, T) with T up to 12, got (1, 13)");
    CHECK_THROWS_AS((void)model(ids({11}, {1, 1})), ValueError);
    CHECK_THROWS_AS((void)models::layout_from_string("gpt3"), InvalidError);
}
