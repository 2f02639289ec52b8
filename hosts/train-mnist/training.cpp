// Creates the models, runs training steps, and evaluates the model.
#include "training.hpp"

#include <catena/models.hpp>

#include <fmt/format.h>

using namespace catena;
using models::Classifier;
namespace F = catena::functions;

namespace {

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

}  // namespace

Training::Training(const Options& options, const Program& program, const Mnist& mnist)
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

std::vector<Array> Training::learn(std::span<const Array> batch) {
    const Variable x = as_variable(batch[0]), t = as_variable(batch[1]);
    const auto [loss, y] = model().loss(x, t);
    draw_once(loss);
    optimizer->cleargrads();
    weigh(loss, batches_.weight()).backward();
    optimizer->update();
    return {loss.data(), F::accuracy(y.data(), batch[1])};
}

// Trains each replica on a part of the minibatch. The gradient is the mean of the replicas'
// gradients, weighted by the sizes of their parts.
void Training::learn_side_by_side(std::span<const Array> batch) {
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

void Training::spread() {
    threads_.run([&](std::size_t i) {
        if (i > 0) replicas_[i]->copy_parameters_from(model());
    });
}

void Training::step() {
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

void Training::visit(Visitor& v) {
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

Summary Training::evaluate(const Program& program) const {
    const auto body = [&](std::span<const Array> batch) {
        program.stop_if_interrupted();
        const Variable t = as_variable(batch[1]);
        const auto [loss, y] = model().loss(as_variable(batch[0]), t);
        return std::vector{loss.data(), F::accuracy(y, t).data()};
    };
    return over_all(Evaluator(test_, 1000, {"loss", "accuracy"}, body, device_, share())());
}

void Training::complete(const Program& program) {
    program.print(fmt::format("test accuracy: {:.4f}", evaluate(program).mean("accuracy")));
}
