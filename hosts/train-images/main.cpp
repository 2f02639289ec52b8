// catena-train-images: trains well-known nets on folders of images.
#include "training.hpp"

#include <catena/models/image_nets.hpp>

#include <fmt/format.h>

#include <cmath>

using namespace catena;
namespace po = boost::program_options;

namespace {

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("data", options.path(o.data, "DIR"),
         "a folder with a subfolder of PNG or JPEG files for each class, or with two such folders, train "
         "and val")
        ("held-out", options.value(o.held_out),
         "fraction of each class used for validation if there is no folder val")
        ("net", options.value(o.net), "nin, alexnet-bn, googlenet or vit")
        ("width", options.value(o.width),
         "width of the net: 0.25 uses a quarter of the channels")
        ("size", options.value(o.size), "width and height of the net's input")
        ("side", po::value(&o.side)->value_name("N"),
         "shorter side of the scaled images, from which the input is cropped; default: 9/8 of --size")
        ("batch", options.value(o.batch), "images per minibatch")
        ("epochs", options.value(o.epochs), "passes over the images")
        ("weight-decay", options.value(o.weight_decay),
         "coefficient of the weight decay")
        ("loaders", options.per_process(options.value(o.loaders)), "threads that read images")
        ("measured", options.value(o.measured),
         "maximum number of images for computing the mean image");
    // clang-format on
    o.optimizer.add_to(options);
    program.add_training_options();
    options.positional().add("data", 1);
    if (!program.parse(argc, argv)) return false;
    if (o.data.empty()) throw po::error("--data: expected a folder of images, got none");
    const auto names = models::image_net_names();
    options.require(std::ranges::count(names, o.net) > 0, "net",
                    "nin, alexnet-bn, googlenet or vit", o.net);
    o.optimizer.check(options);
    constexpr std::int64_t longest = 4096;  // the limit of ImageScaling
    options.require(o.size >= 1 && o.size <= longest, "size", "1 to 4096", o.size);
    if (!options.given("side")) o.side = std::min(o.size + o.size / 8, longest);
    options.require(o.side >= o.size && o.side <= longest, "side", "--size to 4096", o.side);
    options.require_at_least(1, {{"batch", o.batch}, {"measured", o.measured}});
    options.require(o.loaders >= 1 && o.loaders <= 256, "loaders", "1 to 256", o.loaders);
    options.require_at_least("epochs", o.epochs, 0);
    options.require(o.held_out > 0 && o.held_out < 1, "held-out", "above 0, below 1", o.held_out);
    options.require_positive("width", o.width);
    options.require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight-decay",
                    "0 or more", o.weight_decay);
    return true;
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
        Training training(options, program, images, scaling_of(program, options, images));
        program.snapshots.resume(training);
        program.print(fmt::format("net: {} for {}x{}, {} parameters, {}, on {}", options.net,
                                  options.size, options.size, training.model->count_parameters(),
                                  options.optimizer.name(), device.name()));
        return training.run(program, options.epochs);
    });
}
