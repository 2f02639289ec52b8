// Trains word vectors: predicts words from the words around them.
#include "training.hpp"

#include <catena/fail.hpp>

#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

using namespace catena;

namespace {

WordTree huffman_tree(const std::vector<std::int64_t>& counts) {
    std::map<std::int64_t, std::int64_t> by_word;
    for (std::size_t i = 0; i < counts.size(); ++i)
        by_word[static_cast<std::int64_t>(i)] = counts[i];
    return create_huffman_tree(by_word);
}

}  // namespace

std::vector<std::int32_t> subsample(std::span<const std::int32_t> text,
                                    std::span<const std::int64_t> counts, double share,
                                    std::uint64_t seed) {
    if (share == 0) return {text.begin(), text.end()};
    Generator generator(seed ^ 0x73756273616d706cu);
    std::vector<std::int32_t> kept;
    for (const std::int32_t word : text) {
        const double frequency = static_cast<double>(counts[static_cast<std::size_t>(word)]) /
                                 static_cast<double>(text.size());
        if (generator.uniform() < std::sqrt(share / frequency)) kept.push_back(word);
    }
    return kept;
}

Contexts::Contexts(std::vector<std::int32_t> text, std::int64_t window, std::int64_t batch_size,
                   std::uint64_t seed, Device device)
    : text_(std::move(text)),
      window_(window),
      batch_size_(batch_size),
      seed_(seed),
      device_(device),
      places_(0) {
    if (window_ > (std::ssize(text_) - 1) / 2)
        fail<ShapeError>(
            "[Contexts] text: expected more training words than twice the window of {}, got {}",
            window_, text_.size());
    places_ = std::ssize(text_) - 2 * window_;
}

void Contexts::order_epoch() {
    if (ordered_ == std::pair(epoch_, seed_)) return;
    Generator generator(seed_ ^ 0x636f6e7465787473u, static_cast<std::uint64_t>(epoch_) << 32);
    order_.resize(static_cast<std::size_t>(places_));
    std::iota(order_.begin(), order_.end(), window_);
    generator.shuffle(order_);
    ordered_ = {epoch_, seed_};
}

Contexts::Batch Contexts::next() {
    order_epoch();
    // Draws the window of each minibatch, so that near, more informative words are used more often.
    Generator generator(seed_ ^ 0x77696e646f77u, static_cast<std::uint64_t>(epoch_) << 32 |
                                                     static_cast<std::uint64_t>(position_));
    const auto k =
        static_cast<std::int64_t>(generator.below(static_cast<std::uint64_t>(window_))) + 1;
    const std::int64_t n = std::min(batch_size_, places_ - position_);
    const Range own = part(n);
    std::vector<std::int32_t> center, contexts;
    for (std::int64_t i = position_ + own.begin; i < position_ + own.end; ++i) {
        const std::int64_t place = order_[static_cast<std::size_t>(i)];
        center.push_back(text_[static_cast<std::size_t>(place)]);
        for (std::int64_t offset = -k; offset <= k; ++offset) {
            if (offset != 0) contexts.push_back(text_[static_cast<std::size_t>(place + offset)]);
        }
    }
    if (end_part(own.size(), n)) advance(position_, n, places_, epoch_);
    return {Array::from(center, {own.size()}, device_),
            Array::from(contexts, {own.size(), 2 * k}, device_)};
}

void Contexts::visit(Visitor& visitor) {
    require_whole("Contexts");
    visitor.require("words", std::ssize(text_)).require("window", window_);
    visitor.require("batch_size", batch_size_);
    visitor("seed", seed_).within("epoch", epoch_, 0, most_epochs);
    visitor.within("position", position_, 0, places_ - 1);
}

WordsOfText::WordsOfText(const TextPieces& text, const Options& how)
    : vocabulary(Vocabulary::of(text, how.tokens, how.min_count)),
      words(vocabulary.encode(text)),
      counts(static_cast<std::size_t>(vocabulary.size())) {
    std::erase(words, vocabulary.unknown_id());
    for (const std::int32_t word : words) ++counts[static_cast<std::size_t>(word)];
}

Training::Training(const Options& how, const Program& program, WordsOfText text)
    : Trainer(how.optimizer, program,
              {.unit = "words", .scores = {"loss"}, .columns = {"train loss"}}),
      vocabulary(std::move(text.vocabulary)),
      model(vocabulary.size(), how.units, huffman_tree(text.counts), how.model),
      contexts(subsample(text.words, text.counts, how.subsample,
                         static_cast<std::uint64_t>(program.seed())),
               how.window, how.batch, static_cast<std::uint64_t>(program.seed()),
               program.devices()[0]),
      options(how) {
    contexts.set_share(share());
    set_up(model);
}

void Training::step() {
    const auto [center, around] = contexts.next();
    optimizer->cleargrads();
    if (center.size() == 0) return optimizer->update();  // there are fewer words than processes
    Variable loss = model.loss(center, around);
    draw_once(loss);
    const Array value = loss.data();
    loss = weigh(loss, contexts.weight());
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
    if (!options.vectors.empty() && program.processes.is_first()) write_vectors();
    for (const std::string& word : options.nearest) print_nearest(program, word);
}

void Training::write_vectors() const {
    const Array& W = model.embed.W.data();
    const std::vector<float> values = W.to_vector<float>();
    const auto units = static_cast<std::size_t>(W.shape()[1]);
    const std::int64_t unknown = vocabulary.unknown_id();  // its vector is not trained
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
