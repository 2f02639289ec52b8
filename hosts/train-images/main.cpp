// catena-train-images: trains well-known nets on folders of images.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

#include <optional>

using namespace catena;

namespace {

int train(const Program& program, const Options& options, Training& training,
          const ImageFolder& valid, Device device) {
    ImageBatches& batches = training.batches;
    Curves curves = program.curves(
        {"epoch", "train loss", "valid loss", "train accuracy", "valid accuracy", "images/s"},
        batches.epoch() - (training.epoch_over() ? 1 : 0));
    training.look = program.drawing(*training.model);
    while (training.epoch_over() || batches.epoch() < options.epochs) {
        const std::int64_t epoch = batches.epoch() + (training.epoch_over() ? 0 : 1);
        Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), batches.size(),
                          "images", stderr);
        progress.update(training.epoch_over() ? batches.size() : batches.position(), 0);
        while (!training.epoch_over()) {
            training.step();
            progress.update(training.epoch_over() ? batches.size() : batches.position(),
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
        std::optional<Summary> tested;
        try {
            tested = evaluate(program, training, valid, device);
        } catch (const Interrupted&) {
            return program.stop(fmt::format("after epoch {}", epoch), training);
        }
        const std::string line = fmt::format(
            "epoch {:3}  train loss {:.4f}  accuracy {:.4f}  valid loss {:.4f}  "
            "accuracy {:.4f}  {:.1f} images/s",
            epoch, training.score.mean("loss"), training.score.mean("accuracy"),
            tested->mean("loss"), tested->mean("accuracy"), rate);
        curves.add({static_cast<double>(epoch), training.score.mean("loss"), tested->mean("loss"),
                    training.score.mean("accuracy"), tested->mean("accuracy"), rate});
        training.score.clear();
        program.save(training);
        program.print(line);  // may fail: saved before
        if (program.interrupted()) return program.finish();
    }
    program.print(fmt::format("valid accuracy: {:.4f}",
                              evaluate(program, training, valid, device).mean("accuracy")));
    return program.finish();
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-images", [&] {
        Program program("catena-train-images",
                        "Trains a net to classify images: Network in Network, AlexNet with batch "
                        "normalization, or GoogLeNet.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const Images images = find_images(options, program.seed());
        program.print(fmt::format("images: {} ({} to train, {} to validate, {} classes)",
                                  options.data.string(), images.train.size(), images.valid.size(),
                                  images.train.classes.size()));
        Training training(options, program.seed(), images, scaling_of(program, options, images),
                          device);
        program.resume(training);
        program.print(fmt::format("net: {} for {}x{}, {} parameters, {}, on {}", options.net,
                                  options.size, options.size, training.model->count_parameters(),
                                  options.optimizer.name(), device.name()));
        return train(program, options, training, images.valid, device);
    });
}
