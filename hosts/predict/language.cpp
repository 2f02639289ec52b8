// Generates text and finds similar words.
#include "predict.hpp"

#include <catena/fail.hpp>

#include <algorithm>

using namespace catena;

namespace {

// Generates one token at a time, to measure the latency of each.
void follow(const Program& program, const Options& options, models::LanguageModel& model,
            std::vector<std::int32_t>& text, Generator generator, Timing& timing) {
    models::TextGenerator generating(model, text);
    timing.begin();
    for (std::int64_t i = 0; i < options.length; ++i) {
        program.stop_if_interrupted();
        text.push_back(generating.next(options.sampling, generator));
        timing.mark(1);
    }
}

}  // namespace

void continue_text(const Program& program, const Options& options, const About& about,
                   Device device) {
    const Vocabulary vocabulary = Vocabulary::load(about.file());
    models::LanguageModel model({.words = vocabulary.size(),
                                 .units = about.integer("about/units"),
                                 .layers = about.integer("about/layers"),
                                 .cell = models::cell_from_string(about.text("about/cell"))});
    load_snapshot(about.file(), model, "model/");
    model.to(device);
    std::vector<std::vector<std::int32_t>> texts;
    std::vector<Generator> generators;
    for (const std::string& prompt : options.prompts) {
        for (const std::string& word : vocabulary.missing(prompt))
            tell(fmt::format("note: the vocabulary does not contain '{}' of the prompt", word));
        texts.push_back(vocabulary.encode(prompt));
    }
    if (texts.empty()) texts.emplace_back();  // generate without a prompt
    for (std::size_t i = 0; i < texts.size(); ++i)
        generators.emplace_back(static_cast<std::uint64_t>(program.seed()), i << 32);
    Timing timing;
    const std::size_t at_once = options.latency ? 1 : static_cast<std::size_t>(options.batch);
    for (std::size_t begin = 0; begin < texts.size(); begin += at_once) {
        const std::size_t n = std::min(at_once, texts.size() - begin);
        if (options.latency) {
            follow(program, options, model, texts[begin], generators[begin], timing);
        } else {
            const auto own = std::span(texts).subspan(begin, n);
            const auto more = models::continue_texts(model, own, options.length, options.sampling,
                                                     std::span(generators).subspan(begin, n),
                                                     [&] { program.stop_if_interrupted(); });
            for (std::size_t i = 0; i < n; ++i)
                own[i].insert(own[i].end(), more[i].begin(), more[i].end());
            timing.mark(options.length * static_cast<std::int64_t>(n));
        }
        for (std::size_t i = begin; i < begin + n; ++i) program.print(vocabulary.decode(texts[i]));
    }
    tell(options.latency ? timing.latency("tokens") : timing.rate("tokens"));
}

void find_nearest(const Program& program, const Options& options, const About& about) {
    const Vocabulary vocabulary = Vocabulary::load(about.file());
    if (options.prompts.empty()) throw DataError("[predict] --prompt: expected a word, got none");
    for (const std::string& word : options.prompts) {
        if (!vocabulary.contains(word))
            fail<DataError>("[predict] --prompt: expected one of the {} words, got '{}'",
                            vocabulary.size(), word);
    }
    const auto arrays = load_arrays(about.file(), {}, "model/embed/W");
    const auto W = arrays.find("model/embed/W");
    if (W == arrays.end() || W->second.ndim() != 2 || W->second.shape()[0] != vocabulary.size())
        fail<DataError>("[predict] {}: expected a vector for each word, got another array",
                        about.file().string());
    for (const std::string& word : options.prompts) {
        std::int64_t shown = 0;
        if (options.prompts.size() > 1) program.print(fmt::format("{}:", word));
        for (const auto& [id, cosine] :
             models::nearest_words(W->second, vocabulary.id(word), options.top + 1)) {
            if (id != vocabulary.unknown_id() && shown++ < options.top)  // it has no trained vector
                program.print(fmt::format("{:.4f}  {}", cosine, vocabulary.word(id)));
        }
    }
}
