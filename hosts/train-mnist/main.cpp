// catena-train-mnist: trains nets on handwritten digits or Fashion-MNIST.
#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/models.hpp>
#include <catena/trainer.hpp>

#include <fmt/ranges.h>

using namespace catena;
using models::Classifier;
namespace F = catena::functions;
namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace {

struct Options {
    std::string dataset = "mnist";
    std::filesystem::path data;
    std::int64_t epochs = 20;
    std::int64_t batch = 100;
    std::string model = "mlp";
    std::int64_t units = 100;
    OptimizerOptions optimizer{"sgd"};
    double dropout = 0;
    bool record = false;
};

constexpr std::int64_t classes = 10;

// Returns the names of a data set's classes, one per line.
std::string names_of(const std::string& dataset) {
    if (dataset == "mnist") return "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    return "T-shirt/top\nTrouser\nPullover\nDress\nCoat\nSandal\nShirt\nSneaker\nBag\nAnkle boot\n";
}

std::unique_ptr<Classifier> make_model(const Options& o, const Shape& image,
                                       const std::vector<Device>& devices) {
    if (o.model == "cnn") return std::make_unique<models::Cnn>(image, classes, o.units, o.dropout);
    if (o.model == "mlp") return std::make_unique<models::Mlp>(image, classes, o.units, o.dropout);
    return std::make_unique<models::TwoColumnMlp>(image, classes, o.units, devices.front(),
                                                  devices.back());
}

// Returns a model for each device, all with equal parameters, or one model for two-column.
std::vector<std::unique_ptr<Classifier>> make_replicas(const Options& options, const Shape& image,
                                                       const std::vector<Device>& devices) {
    std::vector<std::unique_ptr<Classifier>> replicas;
    replicas.push_back(make_model(options, image, devices));
    for (std::size_t i = 1; i < devices.size() && options.model != "two-column"; ++i) {
        replicas.push_back(make_model(options, image, devices));
        replicas[i]->to(devices[i]);
        replicas[i]->copy_parameters_from(*replicas[0]);
    }
    return replicas;
}

// Returns the device of the minibatches: host memory if step() divides them among the devices.
Device device_of_batches(const Options& options, const std::vector<Device>& devices) {
    return devices.size() == 1 || options.model == "two-column" ? devices[0] : cuda::host();
}

class Training final : public Trainer {
public:
    // Creates a model on each device, or one two-column model.
    Training(const Options& options, const Program& program, const Mnist& mnist)
        : Trainer(options.optimizer, program,
                  {.unit = "images",
                   .scores = {"loss", "accuracy"},
                   .columns = {"train loss", "test loss", "train accuracy", "test accuracy"}}),
          options_(options),
          classes_(names_of(options.dataset)),
          test_(mnist.test),
          device_(program.devices()[0]),
          batches_(mnist.train, options.batch, static_cast<std::uint64_t>(program.seed()), true,
                   device_of_batches(options, program.devices())),
          replicas_(make_replicas(options, mnist.image, program.devices())),
          random_(program.devices().begin(), program.devices().end()),
          threads_({program.devices().begin(), program.devices().begin() + std::ssize(replicas_)}),
          recorded_(*optimizer, [this](std::span<const Array> batch) { return learn(batch); }) {
        batches_.set_share(share());
        set_up(model());
    }

    // Copies the first model's parameters to the others; call it after loading.
    void spread() {
        threads_.run([&](std::size_t i) {
            if (i > 0) replicas_[i]->copy_parameters_from(model());
        });
    }
    void visit(Visitor& v) override {
        Trainer::visit(v);
        v.require("about/net", options_.model).require("about/units", options_.units);
        v.require("about/classes", classes_);
        v.require("about/height", model().image_shape()[1]);
        v.require("about/width", model().image_shape()[2]);
        v.require("options/batch", options_.batch);
        v.require("options/dropout", fmt::format("{}", options_.dropout));
        v("model", model())("batches", batches_);
        // Dropout masks depend on the number of devices; without dropout, any number may resume.
        const bool drops = options_.dropout > 0;
        if (drops) v.require("options/devices", std::ssize(random_));
        for (std::size_t i = 0; i < (drops ? random_.size() : 1); ++i)
            v(i == 0 ? "random" : fmt::format("random{}", i), random_[i]);
    }
    models::Classifier& model() const { return *replicas_[0]; }

private:
    void step() override {
        const auto batch = batches_.next();
        if (batch[1].size() == 0) {  // the last minibatch has fewer images than there are processes
            optimizer->cleargrads();
            return optimizer->update();
        }
        if (replicas_.size() > 1) return learn_side_by_side(batch);
        std::vector<Array> result = options_.record ? recorded_(batch) : learn(batch);
        if (options_.record) {  // the next step overwrites these arrays
            for (Array& each : result) each = each.copy();
        }
        score.add(result, static_cast<double>(batch[1].size()));
    }
    Place place() const override {
        return {batches_.epoch(), batches_.position(), batches_.size()};
    }
    const Link& net() const override { return model(); }
    Report report(const Program& program) override { return compare(evaluate(program), "test"); }
    void complete(const Program& program) override {
        program.print(fmt::format("test accuracy: {:.4f}", evaluate(program).mean("accuracy")));
    }
    // Returns means over the test images, without dropout and without a graph. Throws Interrupted.
    Summary evaluate(const Program& program) const {
        const auto body = [&](std::span<const Array> batch) {
            program.stop_if_interrupted();
            const Variable t = as_variable(batch[1]);
            const auto [loss, y] = model().loss(as_variable(batch[0]), t);
            return std::vector{loss.data(), F::accuracy(y, t).data()};
        };
        return over_all(Evaluator(test_, 1000, {"loss", "accuracy"}, body, device_, share())());
    }
    std::vector<Array> learn(std::span<const Array> batch) {
        const Variable x = as_variable(batch[0]), t = as_variable(batch[1]);
        const auto [loss, y] = model().loss(x, t);
        draw_once(loss);
        optimizer->cleargrads();
        weigh(loss, batches_.weight()).backward();
        optimizer->update();
        return {loss.data(), F::accuracy(y.data(), batch[1])};
    }
    // Trains each replica on a part of the minibatch, and weighs their gradients by its size.
    void learn_side_by_side(std::span<const Array> batch) {
        const std::int64_t n = batch[0].shape()[0], parts = std::ssize(replicas_);
        std::vector<std::int64_t> ends;
        for (std::int64_t i = 1; i < parts; ++i) ends.push_back(n * i / parts);
        const std::vector<Array> x = F::split_axis(batch[0], ends, 0);
        const std::vector<Array> t = F::split_axis(batch[1], ends, 0);
        std::vector<std::vector<Array>> results(replicas_.size());
        threads_.run([&](std::size_t i) {
            replicas_[i]->cleargrads();
            const std::int64_t own = x[i].shape()[0];
            if (own == 0) return;
            const Device device = threads_.devices()[i];
            const Variable labels = as_variable(t[i].to(device));
            const auto [loss, y] = replicas_[i]->loss(as_variable(x[i].to(device)), labels);
            if (i == 0) draw_once(loss);
            results[i] = {loss.data(), F::accuracy(y.data(), labels.data())};
            (loss * (static_cast<double>(own) / static_cast<double>(n))).backward();
        });
        for (std::size_t i = 1; i < replicas_.size(); ++i)
            optimizer->accumulate_grads(replicas_[i]->gradients());
        optimizer->update();
        spread();
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (!results[i].empty()) score.add(results[i], static_cast<double>(x[i].shape()[0]));
        }
    }

    Options options_;
    std::string classes_;  // one class per line
    Dataset test_;
    Device device_;
    Minibatches batches_;
    std::vector<std::unique_ptr<models::Classifier>> replicas_;  // only [0] is updated
    std::vector<RandomStream> random_;                           // for dropout, one per device
    DeviceThreads threads_;
    RecordedStep recorded_;
};

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
