// TextGenerator: continues texts with a language model, token by token.
#pragma once

#include <catena/sampling.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace catena::models {

// A language model that reads texts and scores the token that follows, without dropout and without
// a graph.
class NextToken {
public:
    virtual ~NextToken() = default;
    // Reads more tokens of n texts, step by step: tokens[t * n + i] is token t of text i. Texts
    // after the first n of the call before have ended. Returns scores (n, words) of the next
    // tokens. Without tokens, these are scores at the beginning of a text; throws InvalidError if
    // there are none.
    virtual std::vector<float> read(std::span<const std::int32_t> tokens, std::int64_t n) = 0;

protected:
    NextToken() = default;
    NextToken(const NextToken&) = default;
    NextToken& operator=(const NextToken&) = default;
};

// Generates a text, one token at a time, sampled from the predicted probabilities.
class TextGenerator {
public:
    // Reads the prompt. An empty one is the beginning of a text, if the model knows that.
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
// The next n tokens of a text.
template <class Model>
std::vector<std::int32_t> continue_text(Model& model, std::span<const std::int32_t> prompt,
                                        std::int64_t n, const Sampling& how, Generator& generator) {
    TextGenerator going_on(model, prompt);
    std::vector<std::int32_t> text;
    for (std::int64_t i = 0; i < n; ++i) text.push_back(going_on.next(how, generator));
    return text;
}

// Generates n tokens for each text of a batch. Each has its own random generator, so its result is
// the same as alone, except for rounding. Calls between() before each step; it may throw.
std::vector<std::vector<std::int32_t>> continue_texts(
    std::unique_ptr<NextToken> model, std::span<const std::vector<std::int32_t>> prompts,
    std::int64_t n, const Sampling& how, std::span<Generator> generators,
    const std::function<void()>& between = [] {});
template <class Model>
std::vector<std::vector<std::int32_t>> continue_texts(
    Model& model, std::span<const std::vector<std::int32_t>> prompts, std::int64_t n,
    const Sampling& how, std::span<Generator> generators,
    const std::function<void()>& between = [] {}) {
    return continue_texts(model.next_token(), prompts, n, how, generators, between);
}

}  // namespace catena::models
