// TextGenerator: continues texts with a language model, token by token.
#pragma once

#include <catena/sampling.hpp>

namespace catena::models {

// A language model that reads texts and scores the next token, without dropout and graph.
class NextToken {
public:
    virtual ~NextToken() = default;
    // Reads the next tokens of n texts: tokens[t * n + i] is token t of text i. A later call may
    // have fewer texts, the first ones of the call before. Returns the scores (n, words) of the
    // tokens that follow. A first call without tokens returns the scores of the first token of a
    // text, or throws InvalidError if the model cannot predict it.
    virtual std::vector<float> read(std::span<const std::int32_t> tokens, std::int64_t n) = 0;

protected:
    NextToken() = default;
    NextToken(const NextToken&) = default;
    NextToken& operator=(const NextToken&) = default;
};

// Generates a text, one token at a time, drawn from the predicted probabilities.
class TextGenerator {
public:
    // Reads the prompt. It may be empty if the model can predict the first token of a text.
    TextGenerator(std::unique_ptr<NextToken> model, std::span<const std::int32_t> prompt)
        : model_(std::move(model)), scores_(model_->read(prompt, 1)) {}
    // With model.next_token(). The model must outlive the generator.
    template <class Model>
    TextGenerator(Model& model, std::span<const std::int32_t> prompt)
        : TextGenerator(model.next_token(), prompt) {}

    std::int32_t next(const Sampling& how, Generator& generator);

private:
    std::unique_ptr<NextToken> model_;
    std::vector<float> scores_;         // after the last token
    std::vector<std::int32_t> unread_;  // the last generated token
};
// Generates up to n tokens that follow the prompt. Stops before a token that is one of `ends`.
template <class Model>
std::vector<std::int32_t> continue_text(Model& model, std::span<const std::int32_t> prompt,
                                        std::int64_t n, const Sampling& how, Generator& generator,
                                        std::span<const std::int32_t> ends = {}) {
    TextGenerator generating(model, prompt);
    std::vector<std::int32_t> text;
    while (std::ssize(text) < n) {
        const std::int32_t token = generating.next(how, generator);
        if (std::ranges::find(ends, token) != ends.end()) break;
        text.push_back(token);
    }
    return text;
}

// The same for several prompts, as a batch. Each has its own random generator, so its text is that
// of continue_text(), except for rounding. between() is called before the model, and may throw.
std::vector<std::vector<std::int32_t>> continue_texts(
    std::unique_ptr<NextToken> model, std::span<const std::vector<std::int32_t>> prompts,
    std::int64_t n, const Sampling& how, std::span<Generator> generators,
    std::span<const std::int32_t> ends = {}, const std::function<void()>& between = [] {});
template <class Model>
std::vector<std::vector<std::int32_t>> continue_texts(
    Model& model, std::span<const std::vector<std::int32_t>> prompts, std::int64_t n,
    const Sampling& how, std::span<Generator> generators, std::span<const std::int32_t> ends = {},
    const std::function<void()>& between = [] {}) {
    return continue_texts(model.next_token(), prompts, n, how, generators, ends, between);
}

}  // namespace catena::models
