// catena-train-mnist: trains the tutorial's network on handwritten digits.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>
#include <boost/program_options/errors.hpp>

#include <cstdio>
#include <iostream>

using namespace catena;
namespace fs = std::filesystem;

namespace {

// What the option names, else the first place that has the files, else the digits shipped with the
// program.
fs::path find_data(const Options& options) {
    if (options.data) return *options.data;
    for (const auto& folder : data_folders("mnist")) {
        if (has_mnist(folder)) return folder;
    }
    const fs::path program = fs::read_symlink("/proc/self/exe");
    return fs::weakly_canonical(program.parent_path() / "../share/catena/digits");
}

void use_plugins(const Options& options) {
    if (options.plugins.empty()) return;
    disable_default_plugins();
    for (const auto& folder : options.plugins) load_plugins(folder);
}

void print(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

int run(const Options& options) {
    const Interrupt interrupt;  // first, so that a signal at any time ends cleanly
    global_config().deterministic = config().deterministic = options.deterministic;
    if (!options.save.empty()) require_writable(options.save);
    use_plugins(options);
    // Asked for by name before anything is made: a missing plugin shows by the function it lacks.
    for (const char* function : {"catena.linear", "catena.relu", "catena.softmax_cross_entropy"}) {
        (void)function_descriptor(function);
    }
    const Device device = options.device.empty() ? Device::current() : Device::get(options.device);
    if (options.threads > 0) device.set_threads(options.threads);

    const fs::path folder = find_data(options);
    const Mnist mnist = load_mnist(folder);
    const Array& images = mnist.train.arrays[0];
    print(fmt::format("data: {} ({} images to train, {} to test)", folder.string(),
                      mnist.train.size(), mnist.test.size()));

    const using_device scope(device);
    seed(static_cast<std::uint64_t>(options.seed));
    Training training(options, mnist.train, device);
    if (!options.resume.empty()) load_npz(options.resume, training);
    const std::string net = options.model == "cnn" ? fmt::format("cnn-{}-10", options.units)
                                                   : fmt::format("{}-{}-{}-10", images.shape()[1],
                                                                 options.units, options.units);
    print(fmt::format("net: {}, {} parameters, {}, on {}", net, training.model->count_parameters(),
                      options.optimizer, device.name()));

    Minibatches& batches = training.batches;
    while (batches.epoch() < options.epochs) {
        const std::int64_t epoch = batches.epoch() + 1;
        Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), batches.size(),
                          "images", stderr);
        progress.update(batches.position(), 0);
        while (batches.epoch() < epoch) {
            training.step();
            const bool finished = batches.epoch() == epoch;
            progress.update(finished ? batches.size() : batches.position(),
                            [&] { return training.score.loss(); });
            if (interrupt.requested() && !finished) {
                progress.clear();
                if (!options.save.empty()) save_npz(options.save, training);
                print(fmt::format("interrupted in epoch {}{}", epoch,
                                  options.save.empty() ? "" : ", saved " + options.save.string()));
                return interrupt.exit_code();
            }
        }
        const double rate = progress.rate();
        progress.clear();
        const Score test = evaluate(*training.model, mnist.test, 1000, device);
        print(
            fmt::format("epoch {:3}  train loss {:.4f}  accuracy {:.4f}  test loss {:.4f}  "
                        "accuracy {:.4f}  {:.0f} images/s",
                        epoch, training.score.loss(), training.score.accuracy(), test.loss(),
                        test.accuracy(), rate));
        training.score = {};
        if (!options.save.empty()) save_npz(options.save, training);
        if (interrupt.requested()) return interrupt.exit_code();
    }
    print(fmt::format("test accuracy: {:.4f}",
                      evaluate(*training.model, mnist.test, 1000, device).accuracy()));
    return interrupt.requested() ? interrupt.exit_code() : 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const auto options = parse_options(argc, argv);
        return options ? run(*options) : 0;
    } catch (const boost::program_options::error& error) {
        std::cerr << "catena-train-mnist: " << error.what() << "\nTry --help.\n";
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "catena-train-mnist: " << error.what() << '\n';
        return 1;
    }
}
