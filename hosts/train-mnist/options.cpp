// Options of catena-train-mnist: their texts, and what is allowed.
#include "options.hpp"

namespace po = boost::program_options;
using catena::Program;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data;
    // clang-format off
    program.options().add_options()
        ("dataset", Program::value(o.dataset), "mnist or fashion-mnist")
        ("data", po::value(&data)->value_name("DIR"),
         "its four files; without it the first of $CATENA_DATA/DATASET, ~/.cache/catena/DATASET and, for "
         "mnist, the digits that come with the program")
        ("epochs", Program::value(o.epochs), "passes over the training images")
        ("batch", Program::value(o.batch), "images in a minibatch")
        ("model", Program::value(o.model),
         "mlp, cnn, or two-column: two nets of layers, each on a device of its own, that meet twice")
        ("units", Program::value(o.units), "units of each hidden layer")
        ("dropout", Program::value(o.dropout), "share dropped after each ReLU")
        ("record", po::bool_switch(&o.record),
         "record a step and replay it: on a GPU a graph of kernels, elsewhere nothing changes");
    // clang-format on
    o.optimizer.add_to(program);
    program.add_training_options();
    program.allow_several_devices();
    if (!program.parse(argc, argv)) return false;
    o.data = data;
    program.require(o.dataset == "mnist" || o.dataset == "fashion-mnist", "dataset",
                    "mnist or fashion-mnist", o.dataset);
    program.require_at_least("epochs", o.epochs, 0);
    program.require_at_least("batch", o.batch, 1);
    program.require_at_least("units", o.units, 1);
    program.require(o.model == "mlp" || o.model == "cnn" || o.model == "two-column", "model",
                    "mlp, cnn or two-column", o.model);
    o.optimizer.check(program);
    program.require(o.model != "two-column" || o.dropout == 0, "dropout", "0 for two-column",
                    o.dropout);
    program.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    return true;
}
