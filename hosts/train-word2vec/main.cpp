// catena-train-word2vec: learns vectors for words, and finds the nearest.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;

namespace {

void print_nearest(const Program& program, const Training& training, const Options& options) {
    for (const std::string& word : options.nearest) {
        if (!training.vocabulary.contains(word)) {
            program.print(
                fmt::format("{}: not among the {} words", word, training.vocabulary.size()));
            continue;
        }
        program.print(fmt::format("{}:", word));
        const Array& W = training.model.embed.W.data();
        for (const auto& [id, cosine] :
             models::nearest_words(W, training.vocabulary.id(word), options.top))
            program.print(fmt::format("  {:.4f}  {}", cosine, training.vocabulary.word(id)));
    }
}

int train(const Program& program, const Options& options, Training& training) {
    Contexts& contexts = training.contexts;
    Curves curves = program.curves({"epoch", "train loss", "words/s"}, contexts.epoch());
    training.look = program.drawing(training.model);
    while (contexts.epoch() < options.epochs) {
        const std::int64_t epoch = contexts.epoch() + 1;
        Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), contexts.size(),
                          "words", stderr);
        progress.update(contexts.position(), 0);
        while (contexts.epoch() < epoch) {
            training.step();
            const bool finished = contexts.epoch() == epoch;
            progress.update(finished ? contexts.size() : contexts.position(),
                            [&] { return training.score.mean("loss"); });
            if (program.interrupted() && !finished) {
                progress.clear();
                return program.stop(fmt::format("in epoch {}", epoch), training);
            }
            program.save_after_step(training.optimizer->t(), training);
        }
        const double rate = progress.rate();
        progress.clear();
        program.print(fmt::format("epoch {:3}  loss {:.4f}  {:.0f} words/s", epoch,
                                  training.score.mean("loss"), rate));
        curves.add({static_cast<double>(epoch), training.score.mean("loss"), rate});
        training.score.clear();
        program.save(training);
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
                        "Learns a vector for each word of a text from the words around it, by a "
                        "hierarchical softmax over a Huffman tree of the words.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        if (!options.vectors.empty()) require_writable(options.vectors);
        const Device device = program.start();
        const using_device scope(device);
        const std::filesystem::path file = options.data.empty()
                                               ? Program::shipped("shakespeare/shakespeare.txt.gz")
                                               : options.data;
        Training training(options, program.seed(), WordsOfText(read_text(file), options), device);
        program.resume(training);
        program.print(fmt::format("text: {} ({} places, {} different words)", file.string(),
                                  training.contexts.size(), training.vocabulary.size()));
        program.print(fmt::format(
            "net: {} of {} units, {} parameters, {}, on {}", to_string(options.model),
            options.units, training.model.count_parameters(), options.optimizer, device.name()));
        return train(program, options, training);
    });
}
