// TextGenerator generates one text; continue_texts() generates several, as rows of a batch.
#include <catena/fail.hpp>
#include <catena/models/text_generation.hpp>

#include <numeric>

namespace catena::models {

std::int32_t TextGenerator::next(const Sampling& how, Generator& generator) {
    if (!unread_.empty()) scores_ = model_->read(unread_, 1);
    unread_ = {sample_token(scores_, how, generator)};
    return unread_[0];
}

std::vector<std::vector<std::int32_t>> continue_texts(
    std::unique_ptr<NextToken> model, std::span<const std::vector<std::int32_t>> prompts,
    std::int64_t n, const Sampling& how, std::span<Generator> generators,
    std::span<const std::int32_t> ends, const std::function<void()>& between) {
    how.check();
    if (generators.size() != prompts.size() || n < 0)
        fail<InvalidError>(
            "[continue_texts] generators, n: expected {} of them, and 0 tokens or more, got {} and "
            "{}",
            prompts.size(), generators.size(), n);
    std::vector<std::vector<std::int32_t>> result(prompts.size());
    if (n == 0) return result;
    // Longer prompts come first, because their texts usually end later: the first rows stay needed.
    std::vector<std::size_t> order(prompts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(),
                             [&](std::size_t i) { return prompts[i].size(); });
    std::vector<std::vector<std::int32_t>> texts;
    for (const std::size_t i : order) {
        texts.push_back(prompts[i]);
        if (prompts[i].empty())
            texts.back().push_back(sample_token(model->read({}, 1), how, generators[i]));
    }
    // The length that a row's text has at its end, without an end token.
    std::vector<std::size_t> lengths;
    for (const std::size_t i : order)
        lengths.push_back(prompts[i].size() + static_cast<std::size_t>(n));
    const auto look_for_end = [&](std::size_t row) {
        if (std::ranges::find(ends, texts[row].back()) != ends.end())
            lengths[row] = texts[row].size() - 1;
    };
    for (std::size_t row = 0; row < texts.size(); ++row)
        if (prompts[order[row]].empty()) look_for_end(row);
    std::size_t rows = texts.size();
    for (std::size_t read = 0;;) {
        while (rows > 0 && texts[rows - 1].size() >= lengths[rows - 1]) --rows;
        if (rows == 0) break;
        // All prompts are read together up to the end of the shortest.
        const std::size_t more = read > 0 ? 1 : texts[rows - 1].size();
        std::vector<std::int32_t> tokens;
        for (std::size_t t = read; t < read + more; ++t)
            for (std::size_t row = 0; row < rows; ++row) tokens.push_back(texts[row][t]);
        between();
        const std::vector<float> scores = model->read(tokens, static_cast<std::int64_t>(rows));
        read += more;
        const std::size_t words = scores.size() / rows;
        for (std::size_t row = 0; row < rows; ++row) {
            if (texts[row].size() > read) continue;  // still in the prompt
            if (texts[row].size() >=
                lengths[row]) {  // ended: reads anything until later rows have ended too
                texts[row].push_back(texts[row].back());
                continue;
            }
            texts[row].push_back(sample_token(std::span(scores).subspan(row * words, words), how,
                                              generators[order[row]]));
            look_for_end(row);
        }
    }
    for (std::size_t row = 0; row < texts.size(); ++row) {
        const auto begin = texts[row].begin() + std::ssize(prompts[order[row]]);
        result[order[row]].assign(begin,
                                  texts[row].begin() + static_cast<std::ptrdiff_t>(lengths[row]));
    }
    return result;
}

}  // namespace catena::models
