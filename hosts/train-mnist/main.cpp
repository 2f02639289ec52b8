// catena-train-mnist: trains nets on handwritten digits or Fashion-MNIST.
#include "training.hpp"

#include <catena/fail.hpp>

#include <fmt/ranges.h>

using namespace catena;
namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("dataset", options.value(o.dataset), "mnist or fashion-mnist")
        ("data", options.path(o.data, "DIR"),
         "folder of its four files; default: the first of $CATENA_DATA/DATASET, ~/.cache/catena/DATASET "
         "and, for mnist, the included digits")
        ("epochs", options.value(o.epochs), "passes over the training images")
        ("batch", options.value(o.batch), "images per minibatch")
        ("model", options.value(o.model),
         "mlp, cnn, or two-column: two columns of layers on two devices, connected in two places")
        ("units", options.value(o.units), "units of each hidden layer")
        ("dropout", options.value(o.dropout), "dropout ratio after each ReLU")
        ("record", po::bool_switch(&o.record),
         "record a step and replay it as a graph of kernels on a GPU; no effect on other devices");
    // clang-format on
    o.optimizer.add_to(options);
    program.add_training_options();
    program.allow_several_devices();
    if (!program.parse(argc, argv)) return false;
    options.require(o.dataset == "mnist" || o.dataset == "fashion-mnist", "dataset",
                    "mnist or fashion-mnist", o.dataset);
    options.require_at_least("epochs", o.epochs, 0);
    options.require_at_least(1, {{"batch", o.batch}, {"units", o.units}});
    options.require(o.model == "mlp" || o.model == "cnn" || o.model == "two-column", "model",
                    "mlp, cnn or two-column", o.model);
    o.optimizer.check(options);
    options.require_without("record", "communicator");
    options.require_without("record", "micro-batches");
    options.require(o.model != "two-column" || o.dropout == 0, "dropout", "0 for two-column",
                    o.dropout);
    options.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    return true;
}

// Returns the folder of --data, or the first default folder with the files, or the included digits.
fs::path find_data(const Options& options) {
    if (!options.data.empty()) return options.data;
    for (const auto& folder : data_folders(options.dataset)) {
        if (has_mnist(folder)) return folder;
    }
    if (options.dataset == "mnist") return shipped("digits");
    std::vector<std::string> places;
    for (const auto& folder : data_folders(options.dataset)) places.push_back(folder.string());
    fail<DataError>("[data] expected {0} in {1}, got none; tools/data {0} downloads it",
                    options.dataset, fmt::join(places, " or "));
}

std::string describe(const Options& options, const Training& training) {
    const std::int64_t pixels = training.model().image_shape().size();
    std::string net = options.model;
    if (options.model == "mlp") net = fmt::format("{0}-{1}-{1}-10", pixels, options.units);
    if (options.model == "cnn") net = fmt::format("cnn-{}-10", options.units);
    if (options.model == "two-column")
        net = fmt::format("two columns of {0}-{1}-{1}-{2}-{1}-{1}-10", pixels, options.units,
                          2 * options.units);
    return fmt::format("{}, {} parameters, {}", net, training.model().count_parameters(),
                       options.optimizer.name());
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-mnist", [&] {
        Program program("catena-train-mnist",
                        "Trains a net on handwritten digits: 784-UNITS-UNITS-10 with ReLU, or two "
                        "convolutional layers and two linear ones; softmax cross entropy.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device =
            program.start({"catena.linear", "catena.relu", "catena.softmax_cross_entropy"});
        const std::int64_t devices = std::ssize(program.devices());
        ProgramOptions::require(options.model != "two-column" || devices <= 2, "device",
                                "one or two for two-column", devices);
        ProgramOptions::require(!options.record || devices == 1, "record", "one device", devices);
        const fs::path folder = find_data(options);
        const Mnist mnist = load_mnist(folder);
        program.print(fmt::format("data: {} ({} images to train, {} to test)", folder.string(),
                                  mnist.train.size(), mnist.test.size()));
        const using_device scope(device);
        Training training(options, program, mnist);
        program.snapshots.resume(training);
        training.spread();
        std::vector<std::string> names;
        for (const Device each : program.devices()) names.push_back(each.name());
        program.print(
            fmt::format("net: {}, on {}", describe(options, training), fmt::join(names, " and ")));
        return training.run(program, options.epochs);
    });
}
