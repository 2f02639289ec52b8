// gpu-speed: runs and times the work that speed.py requests on standard input.
//
// usage: gpu-speed [--device NAME] [--samples N] [--least MS]
//   --samples N  number of samples in a median; default 31; 0: nothing is timed
//   --least MS   minimum time of a sample; default 5
//
// A request is a line "WORK MODE NAME=NUMBER..."; MODE: eager or graph. The answer is a line with
// the median time of a step in ms, by the device's clock (nan: not timed), and results of the first
// ten steps.
#include "arguments.hpp"
#include "models.hpp"

#include <fmt/ranges.h>
#include <catena/models/gpt.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>

using namespace catena_bench;

namespace {

// Numbers from -1 to 1 that another program can generate as well.
Array numbers(const Shape& shape, std::int64_t series) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto k = static_cast<std::uint32_t>(i) * 2654435761u +
                       static_cast<std::uint32_t>(series) * 40503u;
        values[i] = static_cast<float>(k / 2147483648.0 - 1);
    }
    return Array::from(values, shape).to(Device::current());
}
// Sets each parameter by its index: weights keep the scale of their inputs, biases are small, and
// factors of normalizations are near 1.
void set_parameters(Link& model) {
    std::int64_t series = 0;
    for (const auto& [name, p] : model.collect_parameters()) {
        const Shape& shape = p.shape();
        const double inputs = static_cast<double>(shape.size()) / static_cast<double>(shape[0]);
        const double scale = shape.ndim() > 1 ? 1 / std::sqrt(inputs) : 0.1;
        Array value = F::mul(numbers(shape, series++), Array::full({}, scale));
        if (name.ends_with("gamma")) value += 1;
        p.data().copy_from(value);
    }
}

struct Sizes {
    std::map<std::string, std::int64_t> values;
    std::int64_t operator[](const std::string& name) const {
        const auto found = values.find(name);
        if (found == values.end()) throw InvalidError(name + ": expected a number, got none");
        return found->second;
    }
};

struct Work {
    std::function<void()> step;
    std::function<double()> value;                            // a number that the step computed
    std::function<bool()> is_recorded = [] { return true; };  // in mode graph
};

double mean_square(const Array& x) {
    return F::sum(F::mul(x, x)).item<double>() / static_cast<double>(x.size());
}

// A training step with SGD. loss_of(model, batch) returns the loss.
template <class Model, class Loss>
Work training(std::shared_ptr<Model> model, std::vector<Array> batch, bool graph, Loss loss_of) {
    struct Training {
        std::shared_ptr<Model> model;
        std::vector<Array> batch;
        std::vector<Array> loss;
        optimizers::SGD optimizer{0.1};
        std::unique_ptr<RecordedStep> recorded;
    };
    const auto t = std::make_shared<Training>();
    t->model = std::move(model);
    t->batch = std::move(batch);
    set_parameters(*t->model);
    t->optimizer.setup(*t->model);
    const auto learn = [=, t = t.get()](std::span<const Array> x) -> std::vector<Array> {
        Variable loss = loss_of(*t->model, x);
        t->optimizer.cleargrads();
        const Array value = loss.data();
        std::move(loss).backward();
        t->optimizer.update();
        return {value};
    };
    if (graph) t->recorded = std::make_unique<RecordedStep>(t->optimizer, learn, Stream::current());
    return {[=] { t->loss = t->recorded ? (*t->recorded)(t->batch) : learn(t->batch); },
            [=] { return t->loss[0].template item<double>(); },
            [=] { return t->recorded->recordings() > 0; }};
}

template <class Model>
Work classifier(std::shared_ptr<Model> model, const Array& x, bool graph) {
    return training(std::move(model), {x, labels({x.shape()[0]}, 10).to(x.device())}, graph,
                    [](Model& net, std::span<const Array> batch) {
                        return F::softmax_cross_entropy(net(as_variable(batch[0])),
                                                        as_variable(batch[1]));
                    });
}
Work mlp(const Sizes& n, bool graph) {
    return classifier(std::make_shared<Mlp>(static_cast<int>(n["units"])),
                      numbers({n["images"], 784}, 100), graph);
}
Work cnn(const Sizes& n, bool graph) {
    return classifier(std::make_shared<Cnn>(), numbers({n["images"], 1, 28, 28}, 100), graph);
}
Work language_model(const Sizes& n, bool graph) {
    const auto words = static_cast<int>(n["words"]);
    return training(std::make_shared<LanguageModel>(words, static_cast<int>(n["units"]), false),
                    {labels({n["length"], n["texts"]}, words).to(Device::current())}, graph,
                    [](LanguageModel& model, std::span<const Array> text) {
                        return model.loss(as_variable(text[0]));
                    });
}

// A transformer of GPT-2's layout, which learns one running text that is cut into rows.
Work gpt(const Sizes& n, bool graph) {
    const std::int64_t tokens = n["texts"] * n["length"];
    const Array text = labels({tokens + 1}, n["words"]).to(Device::current());
    const auto rows = [&](std::int64_t begin) {
        return F::get_item(text, {begin}, {begin + tokens}).reshape({n["texts"], n["length"]});
    };
    return training(std::make_shared<models::Gpt>(models::Gpt::Sizes{.words = n["words"],
                                                                     .context = n["length"],
                                                                     .units = n["units"],
                                                                     .layers = n["layers"],
                                                                     .heads = n["heads"]}),
                    {rows(0), rows(1)}, graph,
                    [](const models::Gpt& model, std::span<const Array> batch) {
                        return model.loss(as_variable(batch[0]), as_variable(batch[1]));
                    });
}

// The body itself, or a recording of it.
Work body_of(std::function<void()> body, std::function<double()> value, bool graph) {
    if (!graph) return {std::move(body), std::move(value)};
    return {[capture = Capture(Stream::current(), body)] { capture.launch(); }, std::move(value)};
}
Work convolution(const Sizes& n, bool graph) {
    const Shape shape = {n["images"], n["channels"], n["side"], n["side"]};
    const auto conv = std::make_shared<links::Convolution2D>(n["channels"], n["channels"], 3, 1, 1);
    set_parameters(*conv);
    const auto both_ways = [conv, x = Variable(numbers(shape, 100)), gy = numbers(shape, 101)] {
        conv->cleargrads();
        x.cleargrad();
        Variable y = (*conv)(x);
        y.set_grad(gy);
        std::move(y).backward();
    };
    return body_of(
        both_ways, [=] { return mean_square(conv->W.grad()); }, graph);
}
Work softmax_cross_entropy(const Sizes& n, bool graph) {
    const Variable x(numbers({n["rows"], n["classes"]}, 100));
    const Variable t = as_variable(labels({n["rows"]}, n["classes"]).to(x.device()));
    const auto both_ways = [=] {
        x.cleargrad();
        Variable loss = F::softmax_cross_entropy(x, t);
        std::move(loss).backward();
    };
    const auto rows = static_cast<double>(n["rows"]);
    return body_of(
        both_ways, [=] { return rows * rows * mean_square(x.grad()); }, graph);
}
Work adam(const Sizes& n, bool graph) {
    struct State {
        explicit State(std::int64_t size) : p(as_parameter(numbers({size}, 0))) {
            p.set_grad(numbers({size}, 100));
            optimizer.setup({{"p", p}});
        }
        Variable p;
        optimizers::Adam optimizer;
        std::unique_ptr<RecordedStep> recorded;
    };
    const auto s = std::make_shared<State>(n["parameters"]);
    const auto update = [s = s.get()](std::span<const Array>) -> std::vector<Array> {
        s->optimizer.update();
        return {};
    };
    if (graph)
        s->recorded = std::make_unique<RecordedStep>(s->optimizer, update, Stream::current());
    return {[=] { s->recorded ? (*s->recorded)({}) : update({}); },
            [=] { return mean_square(s->p.data()); }};
}

Work make(const std::string& name, const Sizes& n, bool graph) {
    if (name == "mlp") return mlp(n, graph);
    if (name == "cnn") return cnn(n, graph);
    if (name == "language_model") return language_model(n, graph);
    if (name == "gpt") return gpt(n, graph);
    if (name == "convolution") return convolution(n, graph);
    if (name == "softmax_cross_entropy") return softmax_cross_entropy(n, graph);
    if (name == "adam") return adam(n, graph);
    throw InvalidError("expected a work, got '" + name + "'");
}

// Returns the median time of a step in milliseconds.
double median(const std::function<void()>& step, std::size_t samples, double least) {
    if (samples == 0) return std::numeric_limits<double>::quiet_NaN();
    const Stream stream = Stream::current();
    Event begin(stream.device()), end(stream.device());
    const auto time_of = [&](int steps) {
        begin.record(stream);
        for (int i = 0; i < steps; ++i) step();
        end.record(stream);
        end.synchronize();
        return end.elapsed_since(begin) / steps;
    };
    time_of(5);  // warm-up: memory, plans
    const int steps = static_cast<int>(std::clamp(least / std::max(time_of(5), 1e-6), 1.0, 1000.0));
    std::vector<double> times;
    for (std::size_t i = 0; i < samples; ++i) times.push_back(time_of(steps));
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(samples / 2));
    return times[samples / 2];
}

std::string answer(const std::string& question, std::size_t samples, double least) {
    std::istringstream words(question);
    std::string name, mode, setting;
    words >> name >> mode;
    if (mode != "eager" && mode != "graph")
        throw InvalidError("expected eager or graph, got '" + mode + "'");
    Sizes sizes;
    while (words >> setting) {
        const std::size_t sign = setting.find('=');
        if (sign == std::string::npos)
            throw InvalidError("expected NAME=NUMBER, got '" + setting + "'");
        sizes.values[setting.substr(0, sign)] = std::stoll(setting.substr(sign + 1));
    }
    const bool graph = mode == "graph";
    const Work work = make(name, sizes, graph);
    std::vector<double> values;
    for (int i = 0; i < 10; ++i) {
        work.step();
        values.push_back(work.value());
    }
    if (graph && !work.is_recorded())
        throw InvalidError("expected a recording of the step, got none");
    return fmt::format("{} {}", median(work.step, samples, least), fmt::join(values, " "));
}

int run(const Arguments& arguments) {
    const Device device = Device::get(arguments.text("device"));
    const using_device scope(device);
    const auto samples = arguments.number<std::size_t>("samples");
    for (std::string line; std::getline(std::cin, line);) {
        const using_stream stream{Stream(device)};
        std::cout << answer(line, samples, arguments.number<double>("least")) << std::endl;
        device.release_cached();
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    return run(Arguments(argc, argv, {{"device", "cuda:0"}, {"samples", "31"}, {"least", "5"}}));
} catch (const std::exception& error) {
    fmt::print(stderr, "gpu-speed: {}\n", error.what());
    return 2;
}
