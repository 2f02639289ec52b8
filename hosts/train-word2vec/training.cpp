// Words from the words around them.
#include "training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace catena;

namespace {

WordTree huffman_tree(const std::vector<std::int64_t>& counts) {
    std::map<std::int64_t, std::int64_t> by_word;
    for (std::size_t i = 0; i < counts.size(); ++i)
        by_word[static_cast<std::int64_t>(i)] = counts[i];
    return create_huffman_tree(by_word);
}

}  // namespace

WordsOfText::WordsOfText(const TextPieces& text, const Options& how)
    : vocabulary(Vocabulary::of(text, how.tokens, how.min_count)),
      words(vocabulary.encode(text)),
      counts(static_cast<std::size_t>(vocabulary.size())) {
    std::erase(words, vocabulary.unknown_id());
    for (const std::int32_t word : words) ++counts[static_cast<std::size_t>(word)];
}

Training::Training(const Options& how, std::int64_t seed, WordsOfText text, Device device)
    : Trainer(how.optimizer, seed,
              {.unit = "words", .scores = {"loss"}, .columns = {"train loss"}}),
      vocabulary(std::move(text.vocabulary)),
      model(vocabulary.size(), how.units, huffman_tree(text.counts), how.model),
      contexts(subsample(text.words, text.counts, how.subsample, static_cast<std::uint64_t>(seed)),
               how.window, how.batch, static_cast<std::uint64_t>(seed), device),
      options(how) {
    optimizer->setup(model);
}

void Training::step() {
    const auto [center, around] = contexts.next();
    Variable loss = model.loss(center, around);
    draw_once(loss);
    optimizer->cleargrads();
    const Array value = loss.data();
    std::move(loss).backward();
    optimizer->update();
    score.add({value}, static_cast<double>(center.size()));
}

void Training::visit(Visitor& v) {
    Trainer::visit(v);
    v.require("about/net", "word vectors").require("about/kind", to_string(options.model));
    v.require("options/subsample", fmt::format("{}", options.subsample));
    v("vocabulary", vocabulary)("model", model)("contexts", contexts);
}

Trainer::Report Training::report(const Program&) {
    const double loss = score.mean("loss");
    return {fmt::format("loss {:.4f}", loss), {loss}};
}

void Training::complete(const Program& program) {
    if (!options.vectors.empty()) write_vectors();
    for (const std::string& word : options.nearest) print_nearest(program, word);
}

void Training::write_vectors() const {
    const Array& W = model.embed.W.data();
    const std::vector<float> values = W.to_vector<float>();
    const auto units = static_cast<std::size_t>(W.shape()[1]);
    const std::int64_t unknown = vocabulary.unknown_id();  // nothing is learned of it
    std::string text = fmt::format("{} {}\n", W.shape()[0] - 1, units);
    for (std::int64_t id = 0; id < W.shape()[0]; ++id) {
        if (id == unknown) continue;
        const auto own = std::span(values).subspan(static_cast<std::size_t>(id) * units, units);
        text += fmt::format("{} {}\n", vocabulary.word(id), fmt::join(own, " "));
    }
    write_file(options.vectors, text);
}

void Training::print_nearest(const Program& program, const std::string& word) const {
    program.print(fmt::format("{}:", word));
    std::int64_t shown = 0;
    for (const auto& [id, cosine] :
         models::nearest_words(model.embed.W.data(), vocabulary.id(word), options.top + 1)) {
        if (id != vocabulary.unknown_id() && shown++ < options.top)
            program.print(fmt::format("  {:.4f}  {}", cosine, vocabulary.word(id)));
    }
}
