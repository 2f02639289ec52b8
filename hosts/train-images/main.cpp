// catena-train-images: trains well-known nets on folders of images.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;

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
        return training.run(program, options.epochs);
    });
}
