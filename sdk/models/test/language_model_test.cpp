// LanguageModel: equal results for pieces of any size, states between pieces, gradients.
#include <catena/catena.hpp>
#include <catena/models.hpp>

#include <doctest/doctest.h>

#include <numeric>

using namespace catena;
using models::LanguageModel;
namespace F = catena::functions;

namespace {

using Ids = std::vector<std::int32_t>;
using Rows = std::vector<std::int64_t>;

Variable ids(const Ids& values) { return as_variable(Array::from(values, {std::ssize(values)})); }

std::vector<double> scores(LanguageModel& model, const Ids& x, const Rows& rows,
                           LanguageModel::State& state) {
    return model(ids(x), rows, state).data().to_vector<double>();
}

LanguageModel make(LanguageModel::Cell cell, std::int64_t layers) {
    seed(2);
    LanguageModel model({.words = 7, .units = 3, .layers = layers, .cell = cell});
    model.to(Dtype::float64);
    return model;
}

}  // namespace

TEST_CASE("a text in one piece, in several, and packed with others") {
    for (const auto cell : {LanguageModel::Cell::lstm, LanguageModel::Cell::rnn}) {
        for (const std::int64_t layers : {1, 2}) {
            LanguageModel model = make(cell, layers);
            const Ids text{1, 4, 2, 6, 0};
            auto state = model.begin(1);
            const auto whole = scores(model, text, Rows(5, 1), state);
            auto pieces = model.begin(1);
            std::vector<double> parts;
            for (const Ids& piece : {Ids{1, 4}, Ids{2}, Ids{6, 0}}) {
                const auto more = scores(model, piece, Rows(piece.size(), 1), pieces);
                parts.insert(parts.end(), more.begin(), more.end());
            }
            // Beside two texts that end before it: steps of 3, 3, 2, 1, 1 rows.
            auto packed_state = model.begin(3);
            const auto packed =
                scores(model, {1, 5, 3, 4, 5, 3, 2, 0, 6, 0}, {3, 3, 2, 1, 1}, packed_state);
            const std::size_t first_rows[] = {0, 3, 6, 8, 9};
            for (std::size_t i = 0; i < whole.size(); ++i) {
                CHECK(parts[i] == doctest::Approx(whole[i]).epsilon(1e-12));
                CHECK(packed[first_rows[i / 7] * 7 + i % 7] ==
                      doctest::Approx(whole[i]).epsilon(1e-12));
            }
            CHECK(packed_state.h[0].shape() == Shape{1, 3});
            CHECK(packed_state.h[0].data().to_vector<double>()[0] ==
                  doctest::Approx(state.h[0].data().to_vector<double>()[0]));
        }
    }
}

TEST_CASE("gradients go back through the pieces, until they are cut") {
    for (const auto cell : {LanguageModel::Cell::lstm, LanguageModel::Cell::rnn}) {
        LanguageModel model = make(cell, 2);
        const TextBatch first{ids({1, 4, 2}).data(), ids({4, 2, 6}).data(), {1, 1, 1}, true};
        const TextBatch second{ids({6, 0}).data(), ids({0, 3}).data(), {1, 1}, false};
        const auto gradient = [&](bool cut) {
            auto state = model.begin(1);
            model.cleargrads();
            const Variable before = model.loss(first, state);
            if (cut) state.unchain_backward();
            const Variable loss = model.loss(second, state);
            loss.backward();
            return model.embed.W.grad().to_vector<double>();
        };
        const auto whole = gradient(false), truncated = gradient(true);
        const auto row = [&](const std::vector<double>& all, std::size_t word) {
            double sum = 0;
            for (std::size_t i = 0; i < 3; ++i) sum += std::abs(all[word * 3 + i]);
            return sum;
        };
        CHECK(row(whole, 1) > 0);
        CHECK(row(truncated, 1) == 0);  // the first piece is forgotten
        CHECK(row(truncated, 6) > 0);
    }
}

TEST_CASE("gradients by finite differences, packed") {
    for (const auto cell : {LanguageModel::Cell::lstm, LanguageModel::Cell::rnn}) {
        LanguageModel model = make(cell, 2);
        const TextBatch batch{
            ids({1, 5, 4, 5, 2, 6}).data(), ids({4, 3, 2, 0, 6, 1}).data(), {2, 2, 1, 1}, true};
        const auto loss = [&] {
            auto state = model.begin(2);
            return model.loss(batch, state);
        };
        loss().backward();
        for (const auto& [name, p] : model.collect_parameters()) {
            CAPTURE(name);
            REQUIRE(p.grad());
            const Array before = p.data().copy();
            const Array along = initializers::Uniform(1)(before.shape(), Dtype::float64);
            const auto at = [&](double eps) {
                p.data().copy_from(before + along * eps);
                return loss().data().item<double>();
            };
            const double slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            p.data().copy_from(before);
            CHECK(slope == doctest::Approx(F::sum(p.grad() * along).item<double>()).epsilon(1e-5));
        }
    }
}

TEST_CASE("an untrained model says how often each word comes") {
    LanguageModel model({.words = 4, .units = 2});
    model.embed.W.data().fill(0);
    const std::vector<std::int64_t> counts{6, 0, 1, 3};
    model.start_from(counts);
    model.out.W.data().fill(0);
    auto state = model.begin(1);
    const auto p = F::softmax(model(ids({1}), Rows{1}, state)).data().to_vector<float>();
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(p[i] == doctest::Approx(static_cast<double>(counts[i] + 1) / 14));
    CHECK_THROWS_AS(model.start_from(Rows{1, 2}), ShapeError);
}

TEST_CASE("texts that go on: likely tokens, and at low temperature the likeliest") {
    LanguageModel model({.words = 3, .units = 2});
    model.out.W.data().fill(0);
    model.start_from(std::vector<std::int64_t>{0, 899, 98});
    Generator generator(1);
    std::vector<int> counts(3);
    for (const auto id : models::continue_text(model, Ids{0}, 3000, {}, generator))
        ++counts[static_cast<std::size_t>(id)];
    CHECK(counts[1] == doctest::Approx(2700).epsilon(0.03));
    CHECK(counts[2] == doctest::Approx(297).epsilon(0.2));
    for (const auto id : models::continue_text(model, Ids{}, 50, {.temperature = 0.05}, generator))
        CHECK(id == 1);
    CHECK(models::continue_text(model, Ids{}, 0, {}, generator).empty());
    CHECK_THROWS_AS((void)models::continue_text(model, Ids{}, 1, {.temperature = -1}, generator),
                    InvalidError);
    CHECK_THROWS_AS((void)models::continue_text(model, Ids{3}, 1, {}, generator), ValueError);
}

TEST_CASE("texts that go on side by side go on as each would alone") {
    for (const auto cell : {LanguageModel::Cell::lstm, LanguageModel::Cell::rnn}) {
        seed(4);
        LanguageModel model({.words = 7, .units = 5, .layers = 2, .cell = cell});
        for (const Variable& p : model.parameters())
            p.data().copy_from(initializers::Normal(1)(p.shape()));
        const std::vector<Ids> prompts{{1, 2}, {}, {3, 4, 5, 6, 0, 1}, {2}, {3, 1}};
        std::vector<Generator> generators;
        for (std::uint64_t i = 0; i < prompts.size(); ++i) generators.emplace_back(9, i << 32);
        int asked = 0;
        const auto more = models::continue_texts(model, prompts, 12, {.temperature = 0.7},
                                                 generators, {}, [&] { ++asked; });
        CHECK(asked == 6 + 11);
        REQUIRE(more.size() == prompts.size());
        for (std::uint64_t i = 0; i < prompts.size(); ++i) {
            CAPTURE(i);
            Generator own(9, i << 32);
            CHECK(more[i] ==
                  models::continue_text(model, prompts[i], 12, {.temperature = 0.7}, own));
        }
        CHECK(models::continue_texts(model, prompts, 0, {}, generators)[2].empty());
        CHECK(models::continue_texts(model, {}, 3, {}, {}).empty());
        CHECK_THROWS_AS((void)models::continue_texts(model, prompts, 1, {}, {}), InvalidError);
        CHECK_THROWS_AS(
            (void)models::continue_texts(model, prompts, 1, {.temperature = -1}, generators),
            InvalidError);
    }
}

TEST_CASE("what cannot be is refused") {
    CHECK_THROWS_AS(LanguageModel({.words = 0}), ShapeError);
    CHECK_THROWS_AS(LanguageModel({.words = 2, .units = 0}), ShapeError);
    CHECK_THROWS_AS(LanguageModel({.words = 2, .layers = 0}), ShapeError);
    CHECK_THROWS_AS(LanguageModel({.words = 2, .dropout = 1}), InvalidError);
    CHECK_THROWS_AS((void)models::cell_from_string("gru"), InvalidError);
    LanguageModel model({.words = 2, .units = 2});
    auto state = model.begin(1);
    CHECK_THROWS_AS((void)model(ids({0, 1}), Rows{1}, state), ShapeError);
    CHECK_THROWS_AS((void)model(ids({}), Rows{}, state), ShapeError);
}

TEST_CASE("words as vectors: both kinds, their gradients, and the nearest") {
    const WordTree tree = create_huffman_tree({{0, 5}, {1, 3}, {2, 2}, {3, 1}});
    const Array center = Array::from<std::int32_t>({1, 3, 0}, {3});
    const Array contexts = Array::from<std::int32_t>({0, 2, 2, 1, 3, 3}, {3, 2});
    for (const auto kind :
         {models::WordVectors::Kind::skip_gram, models::WordVectors::Kind::cbow}) {
        models::WordVectors model(4, 3, tree, kind);
        model.to(Dtype::float64);
        model.embed.W.data().copy_from(initializers::Uniform(1)({4, 3}, Dtype::float64));
        model.loss(center, contexts).backward();
        for (const Variable& p : model.parameters()) {
            const Array before = p.data().copy();
            const Array along = initializers::Uniform(1)(before.shape(), Dtype::float64);
            const auto at = [&](double eps) {
                p.data().copy_from(before + along * eps);
                return model.loss(center, contexts).data().item<double>();
            };
            const double slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            p.data().copy_from(before);
            CHECK(slope == doctest::Approx(F::sum(p.grad() * along).item<double>()).epsilon(1e-6));
        }
        CHECK_THROWS_AS((void)model.loss(center, center), ShapeError);
        CHECK(models::word_vectors_from_string(to_string(kind)) == kind);
    }
    const Array W = Array::from<float>({1, 0, 2, 0.1F, -1, 0, 0, 0}, {4, 2});
    const auto nearest = models::nearest_words(W, 0, 2);
    CHECK(nearest[0].first == 1);
    CHECK(nearest[0].second == doctest::Approx(0.99875).epsilon(1e-4));
    CHECK(nearest[1].first == 3);
    CHECK(models::nearest_words(W, 0, 99).size() == 3);
    CHECK_THROWS_AS((void)models::nearest_words(W, 4, 1), InvalidError);
}
