// The options of catena-train-mnist: help texts and checks.
#include "options.hpp"

namespace po = boost::program_options;
using catena::Program;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data;
    // clang-format off
    program.options().add_options()
        ("dataset", Program::value(o.dataset), "mnist or fashion-mnist")
        ("data", po::value(&data)->value_name("DIR"),
         "folder of its four files; default: the first of $CATENA_DATA/DATASET, ~/.cache/catena/DATASET "
         "and, for mnist, the included digits")
        ("epochs", Program::value(o.epochs), "passes over the training images")
        ("batch", Program::value(o.batch), "images per minibatch")
        ("model", Program::value(o.model),
         "mlp, cnn, or two-column: two columns of layers on two devices, connected in two places")
        ("units", Program::value(o.units), "units of each hidden layer")
        ("dropout", Program::value(o.dropout), "dropout ratio after each ReLU")
        ("record", po::bool_switch(&o.record),
         "record a step and replay it as a graph of kernels on a GPU; no effect on other devices");
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
