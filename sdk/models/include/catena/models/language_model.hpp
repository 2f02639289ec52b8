// LanguageModel: what word comes next.
#pragma once

#include <catena/links/embed_id.hpp>
#include <catena/links/linear.hpp>
#include <catena/random.hpp>
#include <catena/text_batches.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace catena::models {

// A vector for each word, recurrent layers, and scores for the next word. Dropout in training, between
// layers alone. (Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization", 2014; the
// plain net is Elman's, "Finding Structure in Time", 1990.)
class LanguageModel : public Chain {
public:
    enum class Cell : std::uint8_t {
        lstm,
        rnn,  // h = tanh(x + W h_prev)
    };
    struct Sizes {
        std::int64_t words;
        std::int64_t units = 200;
        std::int64_t layers = 1;
        Cell cell = Cell::lstm;
        double dropout = 0;
    };
    // What goes on from one piece of text to the next, of each layer: (N, units).
    struct State : Visitable {
        std::vector<Variable> h, c;  // c is empty in plain nets
        // Forgets how it came to be: gradients end here.
        void unchain_backward() const;
        void visit(Visitor& visitor) override;
    };

    // Throws ShapeError for sizes below 1, InvalidError unless 0 <= dropout < 1.
    explicit LanguageModel(const Sizes& sizes);

    // Lets an untrained net say how often each word comes, whatever stands before it: what it would learn
    // first. counts: of each word in the text.
    void start_from(std::span<const std::int64_t> counts);

    // Before n texts: zeros, on the device of the model.
    State begin(std::int64_t n) const;
    // Scores (rows in all, words) of the next word after each of x, which is packed as in TextBatch. The
    // state goes on; where sequences have ended it is of those that have not.
    Variable operator()(const Variable& x, std::span<const std::int64_t> rows, State& state);
    // The mean cross entropy of a piece.
    Variable loss(const TextBatch& batch, State& state);

    void visit(Visitor& visitor) override;
    const Sizes& sizes() const noexcept { return sizes_; }

    struct Layer : Chain {
        Layer(std::int64_t units, Cell cell);
        void visit(Visitor& visitor) override { visitor("x", x)("h", h); }

        links::Linear x, h;  // of what comes in, and, without a bias, of the state
    };
    links::EmbedID embed;
    std::vector<Layer> layers;
    links::Linear out;

private:
    Variable lstm(Layer& layer, const Variable& x, std::span<const std::int64_t> rows, Variable& h,
                  Variable& c) const;
    Variable rnn(Layer& layer, const Variable& x, std::span<const std::int64_t> rows,
                 Variable& h) const;

    Sizes sizes_;
};

// A text that goes on, a token at a time, drawn by their probabilities. An empty prompt is a text's
// beginning, of which the model has seen nothing. Without dropout and without a graph.
class TextGenerator {
public:
    // Reads the prompt. The model has to stay.
    TextGenerator(LanguageModel& model, std::span<const std::int32_t> prompt);
    // temperature makes probabilities more equal (above 1) or less. Throws InvalidError unless it is finite
    // and positive.
    std::int32_t next(double temperature, Generator& generator);

private:
    void read(std::span<const std::int32_t> tokens);

    LanguageModel& model_;
    LanguageModel::State state_;
    std::vector<float> scores_;         // behind what was read
    std::vector<std::int32_t> unread_;  // what was drawn last
};
// n more tokens.
std::vector<std::int32_t> continue_text(LanguageModel& model, std::span<const std::int32_t> prompt,
                                        std::int64_t n, double temperature, Generator& generator);

// n more tokens of each of several texts, side by side: each draws from a generator of its own, so that it
// goes on as it would alone, but for rounding. Before each token of all it calls between(), which may throw.
std::vector<std::vector<std::int32_t>> continue_texts(
    LanguageModel& model, std::span<const std::vector<std::int32_t>> prompts, std::int64_t n,
    double temperature, std::span<Generator> generators,
    const std::function<void()>& between = [] {});

// "lstm", "rnn". The way back throws InvalidError for other names.
std::string_view to_string(LanguageModel::Cell cell);
LanguageModel::Cell cell_from_string(std::string_view name);

}  // namespace catena::models
