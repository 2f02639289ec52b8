// LanguageModel: predicts the next word.
#pragma once

#include <catena/links.hpp>
#include <catena/models/text_generation.hpp>
#include <catena/text_batches.hpp>

namespace catena::models {

// A vector for each word, recurrent layers, and scores for the next word. Dropout in training, only
// between layers. (Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization", 2014;
// the simple net is Elman's, "Finding Structure in Time", 1990.)
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
    // The recurrent state between pieces of text, for each layer: (N, units).
    struct State : Visitable {
        std::vector<Variable> h, c;  // c is empty in simple nets
        // Detaches the state from its graph, so gradients end here.
        void unchain_backward() const;
        void visit(Visitor& visitor) override;
    };

    // Throws ShapeError for sizes below 1, InvalidError unless 0 <= dropout < 1.
    explicit LanguageModel(const Sizes& sizes);

    // Makes an untrained net predict each word with its frequency, independent of the context,
    // which is what it would learn first. counts: of each word in the text.
    void start_from(std::span<const std::int64_t> counts);

    // The state before n texts: zeros, on the model's device.
    State begin(std::int64_t n) const;
    // Scores (sum of rows, words) of the next word after each word of x, which is packed as in
    // TextBatch. Updates the state; when sequences have ended, it is that of the remaining ones.
    Variable operator()(const Variable& x, std::span<const std::int64_t> rows, State& state);
    // The mean cross entropy over a piece.
    Variable loss(const TextBatch& batch, State& state);
    // A reader for TextGenerator and continue_texts(). The prompt may be empty.
    std::unique_ptr<NextToken> next_token();

    void visit(Visitor& visitor) override;
    const Sizes& sizes() const noexcept { return sizes_; }

    struct Layer : Chain {
        Layer(std::int64_t units, Cell cell);
        void visit(Visitor& visitor) override { visitor("x", x)("h", h); }

        links::Linear x, h;  // of the input and, without a bias, of the state
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

// The names are "lstm" and "rnn". The inverse function throws InvalidError for other names.
std::string_view to_string(LanguageModel::Cell cell);
LanguageModel::Cell cell_from_string(std::string_view name);

}  // namespace catena::models
