// catena-train-mnist: trains nets on handwritten digits or Fashion-MNIST.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace catena;
namespace fs = std::filesystem;

namespace {

// The folder that the option names, or the first default folder that has the files.
fs::path find_data(const Options& options) {
    if (!options.data.empty()) return options.data;
    for (const auto& folder : data_folders(options.dataset)) {
        if (has_mnist(folder)) return folder;
    }
    if (options.dataset == "mnist") return Program::shipped("digits");
    std::string places;
    for (const auto& folder : data_folders(options.dataset))
        places += (places.empty() ? "" : " or ") + folder.string();
    throw DataError(fmt::format("[data] expected {0} in {1}, got none; tools/data {0} downloads it",
                                options.dataset, places));
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
        program.require(options.model != "two-column" || devices <= 2, "device",
                        "one or two for two-column", devices);
        program.require(!options.record || devices == 1, "record", "one device", devices);
        const fs::path folder = find_data(options);
        const Mnist mnist = load_mnist(folder);
        program.print(fmt::format("data: {} ({} images to train, {} to test)", folder.string(),
                                  mnist.train.size(), mnist.test.size()));
        const using_device scope(device);
        Training training(options, program.seed(), mnist, program.devices());
        program.resume(training);
        training.share();
        std::vector<std::string> names;
        for (const Device each : program.devices()) names.push_back(each.name());
        program.print(
            fmt::format("net: {}, on {}", describe(options, training), fmt::join(names, " and ")));
        return training.run(program, options.epochs);
    });
}
