// LanguageModel: layers over packed texts. TextGenerator generates one text; continue_texts() generates
// several, as rows of a batch.
#include <catena/core/config.hpp>
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/models/language_model.hpp>
#include <catena/operators.hpp>

#include <cmath>
#include <numeric>

namespace catena::models {
namespace F = functions;

namespace {

constexpr std::string_view cells[] = {"lstm", "rnn"};

LanguageModel::Sizes checked(const LanguageModel::Sizes& sizes) {
    if (sizes.words < 1 || sizes.units < 1 || sizes.layers < 1)
        fail<ShapeError>(
            "[LanguageModel] words, units, layers: expected at least 1, got {}, {}, {}",
            sizes.words, sizes.units, sizes.layers);
    if (!(sizes.dropout >= 0 && sizes.dropout < 1))
        fail<InvalidError>("[LanguageModel] dropout: expected 0 or more, below 1, got {}",
                           sizes.dropout);
    return sizes;
}

// Rows [begin, end) of x.
Variable part(const Variable& x, std::int64_t begin, std::int64_t end) {
    return begin == 0 && end == x.shape()[0] ? x : F::get_item(x, {begin}, {end});
}

// Keeps the state of the texts.
class RecurrentReader final : public NextToken {
public:
    explicit RecurrentReader(LanguageModel& model) : model_(model) {}

    std::vector<float> read(std::span<const std::int32_t> tokens, std::int64_t n) override {
        const auto floats = [](const Array& a) {
            return a.astype(Dtype::float32).to_vector<float>();
        };
        if (tokens.empty()) return floats(model_.out.b.data());
        const no_backprop_mode no_graph;
        const using_config testing(&Config::train, false);
        if (state_.h.empty()) state_ = model_.begin(n);
        for (auto* list : {&state_.h, &state_.c})
            for (Variable& each : *list) each = part(each, 0, n);
        const std::vector<std::int64_t> rows(tokens.size() / static_cast<std::size_t>(n), n);
        const Array x = Array::from(tokens, {std::ssize(tokens)}, model_.embed.W.device());
        const Variable scores = model_(as_variable(x), rows, state_);
        const std::int64_t all = scores.shape()[0];
        return floats(part(scores, all - n, all).data());
    }

private:
    LanguageModel& model_;
    LanguageModel::State state_;
};

}  // namespace

std::string_view to_string(LanguageModel::Cell cell) {
    return cells[static_cast<std::size_t>(cell)];
}

LanguageModel::Cell cell_from_string(std::string_view name) {
    const auto* found = std::ranges::find(cells, name);
    if (found == std::end(cells))
        fail<InvalidError>("[LanguageModel] cell: expected lstm or rnn, got '{}'", name);
    return static_cast<LanguageModel::Cell>(found - std::begin(cells));
}

LanguageModel::Layer::Layer(std::int64_t units, Cell cell)
    : x(units, cell == Cell::lstm ? 4 * units : units),
      h(units, cell == Cell::lstm ? 4 * units : units, 1, 0, true) {
    if (cell != Cell::lstm) return;
    // A cell that forgets by half at each step learns nothing over many. (Jozefowicz, Zaremba and
    // Sutskever, "An Empirical Exploration of Recurrent Network Architectures", 2015.)
    constexpr std::size_t forget = 2;  // of the four gates
    std::vector<float> bias(static_cast<std::size_t>(4 * units), 0.0F);
    for (std::size_t i = forget; i < bias.size(); i += 4) bias[i] = 1;
    x.b.data().copy_from(Array::from(bias, {4 * units}));
}

LanguageModel::LanguageModel(const Sizes& sizes)
    : embed(checked(sizes).words, sizes.units), out(sizes.units, sizes.words), sizes_(sizes) {
    embed.W = as_parameter(initializers::Uniform(0.1)({sizes.words, sizes.units}));
    for (std::int64_t i = 0; i < sizes.layers; ++i) layers.emplace_back(sizes.units, sizes.cell);
}

void LanguageModel::State::unchain_backward() const {
    for (const Variable& each : h) each.unchain_backward();
    for (const Variable& each : c) each.unchain_backward();
}

void LanguageModel::State::visit(Visitor& visitor) {
    const auto all = [&](const char* name, std::vector<Variable>& list) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            Array data = list[i] ? list[i].data() : Array();
            visitor(fmt::format("{}{}", name, i), data);
            if (data && data.body() != list[i].data().body()) list[i].set_data(data);  // moved
        }
    };
    all("h", h);
    all("c", c);
}

void LanguageModel::start_from(std::span<const std::int64_t> counts) {
    if (std::ssize(counts) != sizes_.words)
        fail<ShapeError>("[LanguageModel] counts: expected {}, one for each word, got {}",
                         sizes_.words, counts.size());
    const double all =
        static_cast<double>(sizes_.words) +
        static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    std::vector<float> logs;
    for (const std::int64_t count : counts)
        logs.push_back(static_cast<float>(std::log(static_cast<double>(count + 1) / all)));
    out.b.data().copy_from(Array::from(logs, {sizes_.words}).astype(out.b.dtype()));
}

LanguageModel::State LanguageModel::begin(std::int64_t n) const {
    State state;
    const auto zeros = [&] {
        return as_variable(Array::zeros({n, sizes_.units}, embed.W.dtype(), embed.W.device()));
    };
    for (std::int64_t i = 0; i < sizes_.layers; ++i) {
        state.h.push_back(zeros());
        if (sizes_.cell == Cell::lstm) state.c.push_back(zeros());
    }
    return state;
}

Variable LanguageModel::lstm(Layer& layer, const Variable& x, std::span<const std::int64_t> rows,
                             Variable& h, Variable& c) const {
    const std::vector<std::int64_t> counts(rows.begin(), rows.end());
    const auto result = F::lstm_sequence(layer.x(x), layer.h.W, h, c, counts);
    const std::int64_t all = x.shape()[0], last = rows.back();
    h = part(result.h, all - last, all);
    c = part(result.c, all - last, all);
    return result.h;
}

Variable LanguageModel::rnn(Layer& layer, const Variable& x, std::span<const std::int64_t> rows,
                            Variable& h) const {
    const Variable from_x = layer.x(x);
    std::vector<Variable> steps;
    std::int64_t at = 0;
    for (const std::int64_t n : rows) {
        h = F::tanh(part(from_x, at, at + n) + layer.h(part(h, 0, n)));
        steps.push_back(h);
        at += n;
    }
    return F::concat(steps, 0);
}

Variable LanguageModel::operator()(const Variable& x, std::span<const std::int64_t> rows,
                                   State& state) {
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    if (rows.empty() || x.ndim() != 1 || x.shape()[0] != all)
        fail<ShapeError>("[LanguageModel] x: expected ({},) as rows say, got {}", all,
                         to_string(x.shape()));
    const auto dropped = [&](const Variable& v) {
        return sizes_.dropout > 0 ? F::dropout(v, sizes_.dropout) : v;
    };
    Variable h = dropped(embed(x));
    for (std::size_t i = 0; i < layers.size(); ++i) {
        h = dropped(sizes_.cell == Cell::lstm ? lstm(layers[i], h, rows, state.h[i], state.c[i])
                                              : rnn(layers[i], h, rows, state.h[i]));
    }
    return out(h);
}

Variable LanguageModel::loss(const TextBatch& batch, State& state) {
    return F::softmax_cross_entropy((*this)(as_variable(batch.x), batch.rows, state),
                                    as_variable(batch.t));
}

void LanguageModel::visit(Visitor& visitor) {
    visitor("embed", embed);
    for (std::size_t i = 0; i < layers.size(); ++i) visitor(fmt::format("layer{}", i), layers[i]);
    visitor("out", out);
}

std::unique_ptr<NextToken> LanguageModel::next_token() {
    return std::make_unique<RecurrentReader>(*this);
}

// ---- generation

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
