// Options of catena-train-images: their texts, and what is allowed.
#include "options.hpp"

#include <catena/catena.hpp>
#include <catena/models/image_nets.hpp>

#include <algorithm>
#include <cmath>

namespace po = boost::program_options;
using namespace catena;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data;
    // clang-format off
    program.options().add_options()
        ("data", po::value(&data)->value_name("DIR"),
         "a folder of folders of PNG or JPEG files, one for each class; or one with two such, train and "
         "val")
        ("held-out", po::value(&o.held_out)->default_value(o.held_out),
         "share of each class to validate with, where there is no val")
        ("net", po::value(&o.net)->default_value(o.net), "nin, alexnet-bn or googlenet")
        ("width", po::value(&o.width)->default_value(o.width),
         "of the net: 0.25 has a quarter of the channels")
        ("size", po::value(&o.size)->default_value(o.size), "sides of what the net sees")
        ("side", po::value(&o.side)->value_name("N"),
         "shorter side of the images from which that is cut; without it an eighth more")
        ("batch", po::value(&o.batch)->default_value(o.batch), "images in a minibatch")
        ("epochs", po::value(&o.epochs)->default_value(o.epochs), "passes over the images")
        ("optimizer", po::value(&o.optimizer)->default_value(o.optimizer),
         "sgd, momentum_sgd, rmsprop, ada_grad or adam")
        ("lr", po::value(&o.lr)->default_value(o.lr), "step size")
        ("lr-decay", po::value(&o.decay)->default_value(o.decay), "times this for each epoch")
        ("weight-decay", po::value(&o.weight_decay)->default_value(o.weight_decay),
         "how much weights shrink by themselves")
        ("loaders", po::value(&o.loaders)->default_value(o.loaders), "threads that read images")
        ("measured", po::value(&o.measured)->default_value(o.measured),
         "images that the mean image is made of, at most");
    // clang-format on
    program.add_training_options();
    program.positional().add("data", 1);
    if (!program.parse(argc, argv)) return false;
    o.data = data;
    if (data.empty()) throw po::error("--data: expected a folder of images, got none");
    if (o.side == 0) o.side = o.size + o.size / 8;
    const auto names = models::image_net_names();
    program.require(std::ranges::count(names, o.net) > 0, "net", "nin, alexnet-bn or googlenet",
                    o.net);
    const auto at_least_1 = [&](const char* option, std::int64_t value) {
        program.require(value >= 1, option, "1 or more", value);
    };
    at_least_1("size", o.size);
    at_least_1("batch", o.batch);
    at_least_1("loaders", o.loaders);
    at_least_1("measured", o.measured);
    program.require(o.side >= o.size, "side", "at least --size", o.side);
    program.require(o.epochs >= 0, "epochs", "0 or more", o.epochs);
    program.require(o.held_out > 0 && o.held_out < 1, "held-out", "above 0, below 1", o.held_out);
    const auto positive = [&](const char* option, double value) {
        program.require(std::isfinite(value) && value > 0, option, "a number above 0", value);
    };
    positive("width", o.width);
    positive("lr", o.lr);
    positive("lr-decay", o.decay);
    program.require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight-decay",
                    "0 or more", o.weight_decay);
    try {
        (void)optimizers::make(o.optimizer, 1);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    return true;
}
