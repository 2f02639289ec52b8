// Texts drawn from a language model, a token at a time.
#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/models/language_model.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace catena::models {
namespace {

// One of the scores' places, with probabilities softmax(scores / temperature).
std::int32_t draw(const std::vector<float>& scores, double temperature, Generator& generator) {
    const double largest = *std::ranges::max_element(scores);
    std::vector<double> up_to;  // sums of the weights
    double sum = 0;
    for (const float score : scores) {
        sum += std::exp((score - largest) / temperature);
        up_to.push_back(sum);
    }
    const auto found = std::ranges::upper_bound(up_to, generator.uniform() * sum);
    return static_cast<std::int32_t>(std::min(found - up_to.begin(), std::ssize(up_to) - 1));
}

}  // namespace

std::vector<std::int32_t> continue_text(LanguageModel& model, std::span<const std::int32_t> prompt,
                                        std::int64_t n, double temperature, Generator& generator) {
    if (!(temperature > 0) || !std::isfinite(temperature)) {
        throw InvalidError(fmt::format(
            "[continue_text] temperature: expected a number above 0, got {}", temperature));
    }
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    LanguageModel::State state = model.begin(1);
    // Scores behind these tokens.
    const auto read = [&](std::span<const std::int32_t> tokens) {
        const std::vector<std::int64_t> rows(tokens.size(), 1);
        const Array x = Array::from(tokens, {std::ssize(tokens)}, model.embed.W.device());
        const std::vector<float> all =
            model(as_variable(x), rows, state).data().astype(Dtype::float32).to_vector<float>();
        return std::vector<float>(all.end() - model.sizes().words, all.end());
    };
    std::vector<float> scores = prompt.empty()
                                    ? model.out.b.data().astype(Dtype::float32).to_vector<float>()
                                    : read(prompt);
    std::vector<std::int32_t> text;
    while (std::ssize(text) < n) {
        text.push_back(draw(scores, temperature, generator));
        if (std::ssize(text) < n) scores = read(std::span(text).last(1));
    }
    return text;
}

}  // namespace catena::models
