// Texts drawn from a language model, a token at a time.
#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/functions.hpp>
#include <catena/models/language_model.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace catena::models {
namespace {

// One of the scores' places, with probabilities softmax(scores / temperature).
std::int32_t draw(std::span<const float> scores, double temperature, Generator& generator) {
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

void require_positive(double temperature) {
    if (!(temperature > 0) || !std::isfinite(temperature)) {
        throw InvalidError(fmt::format(
            "[continue_text] temperature: expected a number above 0, got {}", temperature));
    }
}

// Before anything was read.
std::vector<float> scores_at_begin(const LanguageModel& model) {
    return model.out.b.data().astype(Dtype::float32).to_vector<float>();
}

}  // namespace

TextGenerator::TextGenerator(LanguageModel& model, std::span<const std::int32_t> prompt)
    : model_(model), state_(model.begin(1)) {
    if (prompt.empty()) scores_ = scores_at_begin(model_);
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
    require_positive(temperature);
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

std::vector<std::vector<std::int32_t>> continue_texts(
    LanguageModel& model, std::span<const std::vector<std::int32_t>> prompts, std::int64_t n,
    double temperature, std::span<Generator> generators, const std::function<void()>& between) {
    require_positive(temperature);
    if (generators.size() != prompts.size() || n < 0) {
        throw InvalidError(
            fmt::format("[continue_texts] generators, n: expected {} of them, and 0 tokens or "
                        "more, got {} and {}",
                        prompts.size(), generators.size(), n));
    }
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    // The longest first: they end last, and what has ended is no row any more.
    std::vector<std::size_t> order(prompts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(),
                             [&](std::size_t i) { return prompts[i].size(); });
    std::vector<std::vector<std::int32_t>> texts;
    const auto wanted = [&](std::size_t i) {
        return prompts[i].size() + static_cast<std::size_t>(n);
    };
    for (const std::size_t i : order) {
        texts.push_back(prompts[i]);
        if (prompts[i].empty() && n > 0)
            texts.back().push_back(draw(scores_at_begin(model), temperature, generators[i]));
    }
    LanguageModel::State state = model.begin(std::ssize(texts));
    const auto keep = [](std::vector<Variable>& rows_of, std::int64_t rows) {
        for (Variable& each : rows_of) {
            if (each.shape()[0] > rows) each = functions::get_item(each, {0}, {rows});
        }
    };
    for (std::size_t at = 0;; ++at) {
        std::vector<std::int32_t> tokens;
        for (std::size_t row = 0; row < texts.size() && at + 1 < wanted(order[row]); ++row)
            tokens.push_back(texts[row][at]);
        if (tokens.empty()) break;
        between();
        const std::int64_t rows = std::ssize(tokens);
        keep(state.h, rows);
        keep(state.c, rows);
        const Array x = Array::from(tokens, {rows}, model.embed.W.device());
        const std::vector<float> scores = model(as_variable(x), std::vector{rows}, state)
                                              .data()
                                              .astype(Dtype::float32)
                                              .to_vector<float>();
        const auto words = static_cast<std::size_t>(model.sizes().words);
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            if (texts[row].size() > at + 1) continue;  // still in the prompt
            texts[row].push_back(draw(std::span(scores).subspan(row * words, words), temperature,
                                      generators[order[row]]));
        }
    }
    std::vector<std::vector<std::int32_t>> result(prompts.size());
    for (std::size_t row = 0; row < texts.size(); ++row) {
        const auto begin = texts[row].begin() + std::ssize(prompts[order[row]]);
        result[order[row]].assign(begin, texts[row].end());
    }
    return result;
}

}  // namespace catena::models
