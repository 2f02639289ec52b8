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

TextGenerator::TextGenerator(LanguageModel& model, std::span<const std::int32_t> prompt)
    : model_(model), state_(model.begin(1)) {
    if (prompt.empty()) scores_ = model_.out.b.data().astype(Dtype::float32).to_vector<float>();
    else read(prompt);
}

void TextGenerator::read(std::span<const std::int32_t> tokens) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    const std::vector<std::int64_t> rows(tokens.size(), 1);
    const Array x = Array::from(tokens, {std::ssize(tokens)}, model_.embed.W.device());
    const Array all = model_(as_variable(x), rows, state_).data().astype(Dtype::float32);
    const std::vector<float> scores = all.to_vector<float>();
    scores_.assign(scores.end() - model_.sizes().words, scores.end());
}

std::int32_t TextGenerator::next(double temperature, Generator& generator) {
    if (!(temperature > 0) || !std::isfinite(temperature)) {
        throw InvalidError(fmt::format(
            "[TextGenerator] temperature: expected a number above 0, got {}", temperature));
    }
    if (!unread_.empty()) read(unread_);
    unread_ = {draw(scores_, temperature, generator)};
    return unread_[0];
}

std::vector<std::int32_t> continue_text(LanguageModel& model, std::span<const std::int32_t> prompt,
                                        std::int64_t n, double temperature, Generator& generator) {
    TextGenerator going_on(model, prompt);
    std::vector<std::int32_t> text;
    for (std::int64_t i = 0; i < n; ++i) text.push_back(going_on.next(temperature, generator));
    return text;
}

}  // namespace catena::models
