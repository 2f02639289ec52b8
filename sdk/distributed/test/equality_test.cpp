// Ranks that divide minibatches train an image net and language models as one process does.
#include "ranks.hpp"
#include "training.hpp"

#include <catena/models.hpp>

using namespace training;

namespace {

constexpr std::int64_t batch = 16;
constexpr int steps = 50;

Dataset images() {
    auto pixels = numbers({200, 2, 8, 8}, 1).to_vector<float>();
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < 200; ++i) {
        labels.push_back(static_cast<std::int32_t>(i % 5));
        pixels[i * 128 + i % 5 * 20] += 3;  // depends on the label
    }
    return {{Array::from(std::span<const float>(pixels), {200, 2, 8, 8}),
             Array::from(std::span<const std::int32_t>(labels), {200})}};
}

template <bool normalizes>
struct ImageNet : Chain {
    links::Convolution2D conv1{2, 4, 3, 1, 1}, conv2{4, 6, 3, 1, 1};
    links::BatchNormalization norm1{4}, norm2{6};
    links::Linear out{24, 5};
    void visit(Visitor& v) override {
        v("conv1", conv1)("conv2", conv2)("out", out);
        if constexpr (normalizes) v("norm1", norm1)("norm2", norm2);
    }
    Variable operator()(const Variable& x) const override {
        const auto block = [](const Variable& h, const links::BatchNormalization& norm) {
            return F::max_pooling_2d(F::relu(normalizes ? norm(h) : h), {2});
        };
        return out(block(conv2(block(conv1(x), norm1)), norm2));
    }
};

// A net and what it reads. The learning rates make each net learn within 50 steps.
template <bool normalizes>
struct Images {
    using Net = ImageNet<normalizes>;
    static Net make() { return {}; }
    static std::unique_ptr<Optimizer> optimizer() {
        return std::make_unique<optimizers::SGD>(0.05);
    }

    Net net;
    Minibatches reader{images(), batch, 5};
    Variable loss() {
        const Arrays part = reader.next();
        return F::softmax_cross_entropy(net(as_variable(part[0])), as_variable(part[1]));
    }
};

constexpr std::int64_t words = 11;

std::vector<std::int32_t> text() {
    const auto noise = numbers({3000}, 2).to_vector<double>();
    std::vector<std::int32_t> tokens = {1};
    for (const double x : noise) tokens.push_back((3 * tokens.back() + 1 + (x > 1)) % words);
    return tokens;
}

// The largest differences are in the biases of keys: their gradients are zero but for rounding, which
// AdamW enlarges.
struct Transformer {
    using Net = models::Gpt;
    static Net make() {
        return Net({.words = words, .context = 8, .units = 16, .layers = 2, .heads = 2});
    }
    static std::unique_ptr<Optimizer> optimizer() { return std::make_unique<optimizers::AdamW>(); }

    Net net;
    RandomWindows reader{text(), batch, 8, 5};
    Variable loss() {
        const TextBatch part = reader.next();
        return net.loss(as_variable(part.by_text(part.x)), as_variable(part.by_text(part.t)));
    }
};

struct Recurrent {
    using Net = models::LanguageModel;
    static Net make() { return Net({.words = words, .units = 16}); }
    static std::unique_ptr<Optimizer> optimizer() {
        return std::make_unique<optimizers::Adam>(0.01);
    }

    Net net;
    RunningText reader{text(), batch, 6};
    Net::State state = {};
    Variable loss() {
        const TextBatch part = reader.next();
        if (part.begins) state = net.begin(part.rows[0]);
        else state.unchain_backward();
        return net.loss(part, state);
    }
};

struct Trained {
    Values parameters;
    double first_loss = 0, last_loss = 0;
};

// Without catena::distributed.
template <class Task>
Trained train_task(const typename Task::Net& start) {
    Task task{deep_copy(start)};
    const auto optimizer = Task::optimizer();
    optimizer->setup(task.net);
    Trained result;
    for (int step = 0; step < steps; ++step) {
        const Variable loss = task.loss();
        optimizer->cleargrads();
        loss.backward();
        optimizer->update();
        (step == 0 ? result.first_loss : result.last_loss) = loss.item();
    }
    result.parameters = values_of(task.net);
    return result;
}

template <class Task>
std::vector<Values> train_task(const typename Task::Net& start, int ranks,
                               const MultiNodeOptions& options = {}) {
    std::vector<Values> result(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](const Communicator& comm) {
        Task task{deep_copy(start)};
        task.reader.set_share({comm.rank(), comm.size(), ranks * options.accumulate});
        create_multi_node_bn(comm, task.net);
        const auto optimizer = Task::optimizer();
        MultiNodeOptimizer multi(*optimizer, comm, options);
        multi.setup(task.net);
        for (std::int64_t i = 0; i < steps * options.accumulate; ++i) {
            const Variable loss = task.loss();
            multi.set_weight(task.reader.weight());
            multi.cleargrads();
            loss.backward();
            multi.update();
        }
        result[static_cast<std::size_t>(comm.rank())] = values_of(task.net);
    });
    return result;
}

template <class Task>
typename Task::Net new_task_net() {
    seed(3);
    return Task::make();
}

template <class Task>
void check_equality() {
    const auto start = new_task_net<Task>();
    const Trained alone = train_task<Task>(start);
    CHECK(alone.last_loss < 0.8 * alone.first_loss);
    for (const int ranks : {1, 2, 4}) {
        CAPTURE(ranks);
        const auto all = train_task<Task>(start, ranks);
        for (const Values& own : all) CHECK(own == all[0]);
        CHECK(difference(alone.parameters, all[0]) <= 2e-5);
    }
}

template <class Task>
void check_bits() {
    const auto start = new_task_net<Task>();
    const auto one = train_task<Task>(start, 1, {.accumulate = 4, .pairwise = true})[0];
    CHECK(train_task<Task>(start, 2, {.accumulate = 2, .pairwise = true})[0] == one);
    CHECK(train_task<Task>(start, 4, {.accumulate = 1, .pairwise = true})[0] == one);
    CHECK(difference(train_task<Task>(start).parameters, one) <= 2e-5);
}

}  // namespace

TEST_CASE("a convolutional net") { check_equality<Images<false>>(); }
TEST_CASE("a convolutional net with batch normalization over all ranks") {
    check_equality<Images<true>>();
}
TEST_CASE("a transformer with AdamW") { check_equality<Transformer>(); }
TEST_CASE("a recurrent net that keeps its state") { check_equality<Recurrent>(); }
TEST_CASE("deterministic bits do not depend on the number of ranks") {
    check_bits<Images<false>>();
    check_bits<Transformer>();
}
