// catena-train-word2vec: trains word vectors and finds similar words.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;

namespace {

void print_nearest(const Program& program, const Training& training, const Options& options) {
    for (const std::string& word : options.nearest) {
        program.print(fmt::format("{}:", word));
        std::int64_t shown = 0;
        const Array& W = training.model.embed.W.data();
        for (const auto& [id, cosine] :
             models::nearest_words(W, training.vocabulary.id(word), options.top + 1)) {
            if (id != training.vocabulary.unknown_id() && shown++ < options.top)
                program.print(fmt::format("  {:.4f}  {}", cosine, training.vocabulary.word(id)));
        }
    }
}

int train(const Program& program, const Options& options, Training& training) {
    Contexts& contexts = training.contexts;
    Curves curves = program.curves({"epoch", "train loss", "words/s"},
                                   contexts.epoch() - (training.epoch_over() ? 1 : 0));
    training.look = program.drawing(training.model);
    while (training.epoch_over() || contexts.epoch() < options.epochs) {
        const std::int64_t epoch = contexts.epoch() + (training.epoch_over() ? 0 : 1);
        Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), contexts.size(),
                          "words", stderr);
        progress.update(training.epoch_over() ? contexts.size() : contexts.position(), 0);
        while (!training.epoch_over()) {
            training.step();
            progress.update(training.epoch_over() ? contexts.size() : contexts.position(),
                            [&] { return training.score.mean("loss"); });
            if (program.interrupted()) {
                progress.clear();
                return program.stop(fmt::format("in epoch {}", epoch), training);
            }
            program.save_after_step(training.optimizer->t(), training);
        }
        const double rate = progress.rate();
        progress.clear();
        program.require_finite(training.score.mean("loss"));
        const std::string line = fmt::format("epoch {:3}  loss {:.4f}  {:.0f} words/s", epoch,
                                             training.score.mean("loss"), rate);
        curves.add({static_cast<double>(epoch), training.score.mean("loss"), rate});
        training.score.clear();
        program.save(training);
        program.print(line);  // may fail: saved before
        if (program.interrupted()) return program.finish();
    }
    if (!options.vectors.empty()) write_vectors(options.vectors, training);
    print_nearest(program, training, options);
    return program.finish();
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-word2vec", [&] {
        Program program("catena-train-word2vec",
                        "Trains a vector for each word of a text from the words around it, with a "
                        "hierarchical softmax over a Huffman tree of the words.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        if (!options.vectors.empty()) require_writable(options.vectors);
        const Device device = program.start();
        const using_device scope(device);
        const std::filesystem::path file = options.data.empty()
                                               ? Program::shipped("shakespeare/shakespeare.txt.gz")
                                               : options.data;
        WordsOfText words(text_pieces(file), options);
        for (const std::string& word : options.nearest) {
            if (!words.vocabulary.contains(word))
                throw DataError(
                    fmt::format("[train-word2vec] --nearest: expected one of the {} words, "
                                "got '{}'",
                                words.vocabulary.size(), word));
        }
        Training training(options, program.seed(), std::move(words), device);
        program.resume(training);
        program.print(fmt::format("text: {} ({} positions, vocabulary of {} words)", file.string(),
                                  training.contexts.size(), training.vocabulary.size()));
        program.print(fmt::format("net: {} of {} units, {} parameters, {}, on {}",
                                  to_string(options.model), options.units,
                                  training.model.count_parameters(), options.optimizer.name(),
                                  device.name()));
        return train(program, options, training);
    });
}
