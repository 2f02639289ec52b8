// Options of catena-train-mnist: their texts, and what is allowed.
#include "options.hpp"

#include <cmath>

namespace po = boost::program_options;
using catena::Program;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data;
    // clang-format off
    program.options().add_options()
        ("dataset", po::value(&o.dataset)->default_value(o.dataset), "mnist or fashion-mnist")
        ("data", po::value(&data)->value_name("DIR"),
         "its four files; without it the first of $CATENA_DATA/DATASET, ~/.cache/catena/DATASET and, for "
         "mnist, the digits that come with the program")
        ("epochs", po::value(&o.epochs)->default_value(o.epochs), "passes over the training images")
        ("batch", po::value(&o.batch)->default_value(o.batch), "images in a minibatch")
        ("model", po::value(&o.model)->default_value(o.model),
         "mlp, cnn, or two-column: two nets of layers, each on a device of its own, that meet twice")
        ("units", po::value(&o.units)->default_value(o.units), "units of each hidden layer")
        ("optimizer", po::value(&o.optimizer)->default_value(o.optimizer), "sgd or adam")
        ("lr", po::value(&o.lr), "step size; without it 0.01 for sgd, 0.001 for adam")
        ("dropout", po::value(&o.dropout)->default_value(o.dropout), "share dropped after each ReLU")
        ("record", po::bool_switch(&o.record),
         "let the device do again, by itself, what it recorded of the first steps");
    // clang-format on
    program.add_training_options();
    program.allow_several_devices();
    if (!program.parse(argc, argv)) return false;
    o.data = data;
    if (!program.given("lr") && o.optimizer == "adam") o.lr = 0.001;
    program.require(o.dataset == "mnist" || o.dataset == "fashion-mnist", "dataset",
                    "mnist or fashion-mnist", o.dataset);
    program.require(o.epochs >= 0, "epochs", "0 or more", o.epochs);
    program.require(o.batch >= 1, "batch", "1 or more", o.batch);
    program.require(o.model == "mlp" || o.model == "cnn" || o.model == "two-column", "model",
                    "mlp, cnn or two-column", o.model);
    program.require(o.units >= 1, "units", "1 or more", o.units);
    program.require(o.optimizer == "sgd" || o.optimizer == "adam", "optimizer", "sgd or adam",
                    o.optimizer);
    program.require(std::isfinite(o.lr) && o.lr > 0, "lr", "a number above 0", o.lr);
    program.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    return true;
}
