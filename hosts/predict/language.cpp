// Texts that go on, and words that are near.
#include "tasks.hpp"
#include "timing.hpp"

#include <catena/catena.hpp>
#include <catena/models.hpp>

#include <fmt/format.h>

using namespace catena;

void continue_text(const Program& program, const Options& options, const About& about,
                   Device device) {
    const Vocabulary vocabulary = Vocabulary::load(about.file());
    models::LanguageModel model({.words = vocabulary.size(),
                                 .units = about.integer("about/units"),
                                 .layers = about.integer("about/layers"),
                                 .cell = models::cell_from_string(about.text("about/cell"))});
    load_snapshot(about.file(), model, "model/");
    model.to(device);
    std::vector<std::int32_t> text = vocabulary.encode(options.prompt);
    Generator generator(static_cast<std::uint64_t>(program.seed()));
    Timing timing;
    if (options.latency) {
        models::TextGenerator going_on(model, text);
        timing.mark(1);
        for (std::int64_t i = 0; i < options.length; ++i) {
            text.push_back(going_on.next(options.temperature, generator));
            timing.mark(1);
        }
    } else {
        const auto more =
            models::continue_text(model, text, options.length, options.temperature, generator);
        timing.mark(std::ssize(more));
        text.insert(text.end(), more.begin(), more.end());
    }
    program.print(vocabulary.decode(text));
    fmt::print(stderr, "{}\n", options.latency ? timing.latency("tokens") : timing.rate("tokens"));
}

void find_nearest(const Program& program, const Options& options, const About& about) {
    const Vocabulary vocabulary = Vocabulary::load(about.file());
    if (!vocabulary.contains(options.prompt))
        throw DataError(fmt::format("[predict] --prompt: expected one of the {} words, got '{}'",
                                    vocabulary.size(), options.prompt));
    const auto arrays = load_arrays(about.file(), {}, "model/embed/W");
    const auto W = arrays.find("model/embed/W");
    if (W == arrays.end() || W->second.ndim() != 2 || W->second.shape()[0] != vocabulary.size())
        throw DataError(fmt::format("[predict] {}: expected a vector for each word, got others",
                                    about.file().string()));
    for (const auto& [id, cosine] :
         models::nearest_words(W->second, vocabulary.id(options.prompt), options.top))
        program.print(fmt::format("{:.4f}  {}", cosine, vocabulary.word(id)));
}
