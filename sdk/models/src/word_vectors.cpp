// WordVectors: the losses of skip-gram and CBOW. nearest_words(): cosine similarity.
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/models/word_vectors.hpp>
#include <catena/operators.hpp>

#include <cmath>
#include <numeric>

namespace catena::models {
namespace F = functions;

namespace {

constexpr std::string_view kinds[] = {"skip-gram", "cbow"};

}  // namespace

std::string_view to_string(WordVectors::Kind kind) { return kinds[static_cast<std::size_t>(kind)]; }

WordVectors::Kind word_vectors_from_string(std::string_view name) {
    const auto* found = std::ranges::find(kinds, name);
    if (found == std::end(kinds))
        fail<InvalidError>("[WordVectors] kind: expected skip-gram or cbow, got '{}'", name);
    return static_cast<WordVectors::Kind>(found - std::begin(kinds));
}

WordVectors::WordVectors(std::int64_t words, std::int64_t units, const WordTree& tree, Kind kind)
    : embed(words, units), softmax(units, tree), kind_(kind) {
    // Small values, so that the first predictions are nearly uniform.
    embed.W = as_parameter(initializers::Uniform(0.5 / static_cast<double>(units))({words, units}));
}

Variable WordVectors::loss(const Array& center, const Array& contexts) {
    const Shape shape = contexts.shape();
    if (shape.ndim() != 2 || center.ndim() != 1 || shape[0] != center.shape()[0] || shape[1] < 1)
        fail<ShapeError>("[WordVectors] expected center (N,) and contexts (N, k), got {} and {}",
                         to_string(center.shape()), to_string(shape));
    const std::int64_t n = shape[0], k = shape[1], units = embed.W.shape()[1];
    const Variable around = embed(as_variable(contexts));  // (N, k, units)
    if (kind_ == Kind::cbow) {
        const Variable mean = F::sum(around, {1}) / static_cast<double>(k);
        return softmax(mean, as_variable(center)) / static_cast<double>(n);
    }
    const Array each = F::reshape(F::broadcast_to(F::reshape(center, {n, 1}), {n, k}), {n * k});
    return softmax(F::reshape(around, {n * k, units}), as_variable(each)) /
           static_cast<double>(n * k);
}

std::vector<std::pair<std::int64_t, double>> nearest_words(const Array& W, std::int64_t word,
                                                           std::int64_t n) {
    const std::int64_t words = W.shape()[0], units = W.shape()[1];
    if (word < 0 || word >= words)
        fail<InvalidError>("[nearest_words] word: expected 0 to {}, got {}", words - 1, word);
    const std::vector<double> values = W.astype(Dtype::float64).to_vector<double>();
    const auto product = [&](std::int64_t a, std::int64_t b) {
        const double* of_a = values.data() + a * units;
        return std::inner_product(of_a, of_a + units, values.data() + b * units, 0.0);
    };
    std::vector<std::pair<std::int64_t, double>> all;
    const double own = std::sqrt(product(word, word));
    for (std::int64_t i = 0; i < words; ++i) {
        const double lengths = own * std::sqrt(product(i, i));
        if (i != word) all.emplace_back(i, lengths > 0 ? product(word, i) / lengths : 0);
    }
    const auto count = std::clamp<std::int64_t>(n, 0, std::ssize(all));
    std::partial_sort(all.begin(), all.begin() + count, all.end(),
                      [](const auto& a, const auto& b) {
                          return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
                      });
    all.resize(static_cast<std::size_t>(count));
    return all;
}

}  // namespace catena::models
