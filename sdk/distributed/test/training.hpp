// A small net, data for it, and training with a communicator.
#pragma once

#include <catena/catena.hpp>
#include <catena/distributed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <map>

namespace training {

using namespace catena;
using namespace catena::distributed;
namespace F = catena::functions;

struct Net : Chain {
    links::Linear l1{6, 30}, l2{30, 20}, l3{20, 5};
    bool skips = false;  // l2's branch
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("l3", l3); }
    Variable operator()(const Variable& x) const override {
        const Variable h = F::relu(l1(x));
        return l3(skips ? F::get_item(h, {slice(), slice(0, 20)}) : F::tanh(l2(h)));
    }
};

// Examples of a minibatch: the same for every number of ranks.
struct Batch {
    Array x, t;
    Batch(std::int64_t step, std::int64_t size) {
        std::vector<float> values;
        std::vector<std::int32_t> labels;
        for (std::int64_t i = 0; i < size; ++i) {
            for (int j = 0; j < 6; ++j)
                values.push_back(static_cast<float>(
                    std::sin(static_cast<double>(step * 131 + i * 17 + j * 7) * 0.37)));
            labels.push_back(static_cast<std::int32_t>((step + 3 * i) % 5));
        }
        x = Array::from(values, {size, 6});
        t = Array::from(labels, {size});
    }
    Batch(Array inputs, Array labels) : x(std::move(inputs)), t(std::move(labels)) {}
    double weight(std::int64_t parts) const {
        return static_cast<double>(x.shape()[0] * parts) / 16;
    }
    Batch part(std::int64_t i, std::int64_t parts) const {
        const std::int64_t n = x.shape()[0], begin = n * i / parts, end = n * (i + 1) / parts;
        return {x.view(begin * 6, {end - begin, 6}), t.view(begin, {end - begin})};
    }
};

using Values = std::map<std::string, std::vector<double>>;

inline Values values_of(const Link& net) {
    Values result;
    for (const auto& [name, variable] : net.collect_parameters())
        result[name] = variable.data().to_vector<double>();
    return result;
}

// The largest difference, in units of the largest value.
inline double difference(const Values& a, const Values& b) {
    double largest = 0, difference = 0;
    for (const auto& [name, values] : a)
        for (std::size_t i = 0; i < values.size(); ++i) {
            largest = std::max(largest, std::abs(values[i]));
            difference = std::max(difference, std::abs(values[i] - b.at(name)[i]));
        }
    return difference / largest;
}

inline void learn(const Net& net, Optimizer& optimizer, const Batch& batch) {
    const Variable loss = F::softmax_cross_entropy(net(as_variable(batch.x)), as_variable(batch.t));
    optimizer.cleargrads();
    loss.backward();
    optimizer.update();
}

constexpr std::int64_t batch_size = 16;

// Threads share the random numbers, so a net is made before they start.
inline Net new_net() {
    seed(3);
    return {};
}

// Trains a net on one rank, without a communicator.
inline Values train_alone(const std::string& rule, int steps) {
    const Net net = new_net();
    const auto optimizer = optimizers::make(rule);
    optimizer->setup(net);
    for (int step = 0; step < steps; ++step) learn(net, *optimizer, Batch(step, batch_size));
    return values_of(net);
}

// Trains on `ranks` ranks, which divide the minibatches. Returns the parameters of every rank.
inline std::vector<Values> train(const std::string& rule, int steps, int ranks,
                                 const MultiNodeOptions& options = {},
                                 const std::function<void(Optimizer&)>& prepare = {}) {
    std::vector<Values> result(static_cast<std::size_t>(ranks));
    const Net first = new_net();
    run_ranks(ranks, [&](const Communicator& comm) {
        Net net = deep_copy(first);
        for (const auto& [name, variable] : net.collect_parameters())  // rank 0's are used
            if (comm.rank() > 0) variable.data().fill(comm.rank());
        const auto optimizer = optimizers::make(rule);
        MultiNodeOptimizer multi(*optimizer, comm, options);
        multi.setup(net);
        if (prepare) prepare(*optimizer);
        for (int step = 0; step < steps; ++step) {
            const Batch own = Batch(step, batch_size).part(comm.rank(), comm.size());
            for (std::int64_t i = 0; i < options.accumulate; ++i) {
                const Batch part = own.part(i, options.accumulate);
                multi.set_weight(part.weight(ranks * options.accumulate));
                learn(net, *optimizer, part);
            }
        }
        result[static_cast<std::size_t>(comm.rank())] = values_of(net);
    });
    return result;
}

}  // namespace training
