// Options of catena-train-mnist: their texts, and what is allowed.
#include "options.hpp"

#include <catena/core/device.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <cmath>
#include <iostream>

namespace po = boost::program_options;

namespace {

void require(bool condition, const char* option, const char* expected, auto got) {
    if (!condition)
        throw po::error(fmt::format("--{}: expected {}, got {}", option, expected, got));
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
    Options o;
    std::string data;
    std::string save;
    std::string resume;
    po::options_description description(
        "usage: catena-train-mnist [OPTION...]\n\n"
        "Trains a net on handwritten digits: 784-UNITS-UNITS-10 with ReLU, or two layers of "
        "filters and two of units; softmax cross entropy.\n\noptions");
    // clang-format off
    description.add_options()
        ("help,h", "this text")
        ("version", "of this program, and of the ABI that it knows")
        ("data", po::value(&data)->value_name("DIR"),
         "the four MNIST files; without it the first of $CATENA_DATA/mnist, ~/.cache/catena/mnist "
         "and the digits that come with the program")
        ("epochs", po::value(&o.epochs)->default_value(o.epochs), "passes over the training images")
        ("batch", po::value(&o.batch)->default_value(o.batch), "images in a minibatch")
        ("model", po::value(&o.model)->default_value(o.model), "mlp or cnn")
        ("units", po::value(&o.units)->default_value(o.units), "units of each hidden layer")
        ("optimizer", po::value(&o.optimizer)->default_value(o.optimizer), "sgd or adam")
        ("lr", po::value(&o.lr), "step size; without it 0.01 for sgd, 0.001 for adam")
        ("dropout", po::value(&o.dropout)->default_value(o.dropout), "share dropped after each ReLU")
        ("seed", po::value(&o.seed), "of weights, order and dropout; without it $CATENA_SEED, else 0")
        ("device", po::value(&o.device)->value_name("NAME"),
         "such as cpu:0 or cuda:0; without it the first that is there")
        ("record", po::bool_switch(&o.record),
         "let the device do again, by itself, what it recorded of the first steps")
        ("threads", po::value(&o.threads), "without it as many as suit the device")
        ("plugins", po::value(&o.plugins)->value_name("DIR"),
         "take plugins from DIR alone; may be given several times")
        ("save", po::value(&save)->value_name("FILE"),
         "write a snapshot (.npz) after each epoch and when interrupted")
        ("resume", po::value(&resume)->value_name("FILE"), "go on from a snapshot of the same options")
        ("deterministic", po::bool_switch(&o.deterministic),
         "the same result for any number of threads");
    // clang-format on
    po::variables_map values;
    po::store(
        po::command_line_parser(argc, argv)
            .options(description)
            .positional({})
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run(),
        values);
    po::notify(values);
    if (values.count("help")) {
        std::cout << description;
        return {};
    }
    if (values.count("version")) {
        std::cout << "catena-train-mnist " CATENA_VERSION ", ABI " CATENA_ABI_VERSION "\n";
        return {};
    }
    if (values.count("data")) o.data = data;
    if (!values.count("lr") && o.optimizer == "adam") o.lr = 0.001;
    if (!values.count("seed")) {
        const std::uint64_t seed = catena::initial_seed();
        o.seed = static_cast<std::int64_t>(seed);
        require(o.seed >= 0, "seed", "at most 2^63 - 1 in CATENA_SEED", seed);
    }
    o.save = save;
    o.resume = resume;
    require(o.epochs >= 0, "epochs", "0 or more", o.epochs);
    require(o.batch >= 1, "batch", "1 or more", o.batch);
    require(o.model == "mlp" || o.model == "cnn", "model", "mlp or cnn", o.model);
    require(o.units >= 1, "units", "1 or more", o.units);
    require(o.optimizer == "sgd" || o.optimizer == "adam", "optimizer", "sgd or adam", o.optimizer);
    require(std::isfinite(o.lr) && o.lr > 0, "lr", "a number above 0", o.lr);
    require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    require(o.seed >= 0, "seed", "0 or more", o.seed);
    require(!values.count("threads") || o.threads >= 1, "threads", "1 or more", o.threads);
    return o;
}
