// Tests of MultiNodeOptimizer: N ranks train as one does.
#include "training.hpp"

#include "temporary.hpp"

using namespace training;

namespace {

constexpr double bound = 2e-5;

void check_ranks(const std::vector<Values>& ranks, const Values& expected, double limit = bound) {
    for (const Values& own : ranks) {
        CHECK(own == ranks[0]);  // the same bits
        CHECK(difference(expected, own) <= limit);
    }
}

}  // namespace

TEST_CASE("ranks that divide a minibatch train as one rank does") {
    for (const char* rule : {"sgd", "adam", "momentum_sgd", "adam_w"}) {
        const Values alone = train_alone(rule, 50);
        for (const int ranks : {1, 2, 4}) {
            CAPTURE(rule);
            CAPTURE(ranks);
            check_ranks(train(rule, 50, ranks), alone);
            check_ranks(train(rule, 50, ranks, {.bucket_bytes = 400}), alone);
            check_ranks(train(rule, 50, ranks, {.shard = true}), alone);
        }
    }
    const Values alone = train_alone("adam", 50);
    check_ranks(train("adam", 50, 3, {.bucket_bytes = 1, .overlap = false, .shard = true}), alone);
    check_ranks(train("adam", 50, 2, {.accumulate = 4}), alone);
    check_ranks(train("adam", 50, 2, {.accumulate = 2, .shard = true}), alone);
}

TEST_CASE("the same number of ranks gives the same bits in each run") {
    for (const MultiNodeOptions& options :
         {MultiNodeOptions{}, {.shard = true}, {.wire = Dtype::bfloat16}, {.accumulate = 2}}) {
        const auto first = train("adam", 20, 4, options);
        for (int i = 0; i < 3; ++i) CHECK(train("adam", 20, 4, options) == first);
    }
}

TEST_CASE("sharded state gives the same bits as full state") {
    CHECK(train("adam", 20, 2, {.shard = true}) == train("adam", 20, 2));
    CHECK(train("adam", 20, 4, {.shard = true}) == train("adam", 20, 4));
    const auto clip = [](Optimizer& o) {
        o.add_hook([](const Optimizer& each) { each.clip_grads(0.05); });
        o.set_group([](const auto& p) { return p.variable.ndim() < 2; }, {.rate = 0.5});
    };
    const auto full = train("adam", 20, 4, {}, clip);
    CHECK(difference(full[0], train("adam", 20, 4, {.shard = true}, clip)[0]) < 1e-6);
    CHECK(difference(full[0], train("adam", 20, 4)[0]) > 1e-3);
}

TEST_CASE("pairwise sums give the same bits for 1, 2 and 4 ranks") {
    const auto run = [](int ranks, std::int64_t accumulate, bool shard) {
        return train("adam", 20, ranks,
                     {.accumulate = accumulate, .shard = shard, .pairwise = true})[0];
    };
    const Values one = run(1, 4, false);
    CHECK(run(2, 2, false) == one);
    CHECK(run(4, 1, false) == one);
    CHECK(run(4, 1, true) == one);
    CHECK(run(2, 2, true) == one);
    CHECK(difference(train_alone("adam", 20), one) <= bound);
    const Values eight = run(1, 8, false);
    CHECK(run(4, 2, false) == eight);
    CHECK(run(2, 4, true) == eight);
}

TEST_CASE("gradients in half precision on the wire train about the same") {
    const Values alone = train_alone("sgd", 50);
    for (const Dtype wire : {Dtype::float16, Dtype::bfloat16})
        for (const bool shard : {false, true}) {
            const auto ranks = train("sgd", 50, 4, {.wire = wire, .shard = shard});
            check_ranks(ranks, alone, 5e-3);
            CHECK(difference(alone, ranks[0]) > 1e-7);  // they were rounded
        }
}

TEST_CASE("with double buffering, updates use the gradients of the previous step") {
    // One rank, by hand: g(w_t) is applied to w_{t+1}.
    seed(3);
    Net net;
    optimizers::SGD sgd;
    sgd.setup(net);
    std::vector<Array> before;
    for (int step = 0; step < 20; ++step) {
        const Batch batch(step, batch_size);
        sgd.cleargrads();
        F::softmax_cross_entropy(net(as_variable(batch.x)), as_variable(batch.t)).backward();
        std::vector<Array> own = net.gradients();
        if (!before.empty()) {
            for (std::size_t i = 0; i < before.size(); ++i) net.parameters()[i].set_grad(before[i]);
            sgd.update();
        }
        before = own;
    }
    check_ranks(train("sgd", 20, 2, {.double_buffering = true}), values_of(net));
    check_ranks(train("sgd", 20, 4, {.bucket_bytes = 500, .double_buffering = true, .shard = true}),
                values_of(net));
}

TEST_CASE("a branch that some or all ranks do not take") {
    const Net first = new_net();
    for (const bool shard : {false, true}) {
        run_ranks(3, [&](const Communicator& comm) {
            Net net = deep_copy(first);
            const auto start = values_of(net);
            optimizers::SGD sgd;
            MultiNodeOptimizer multi(sgd, comm, {.bucket_bytes = 300, .shard = shard});
            multi.setup(net);
            net.skips = true;
            learn(net, sgd, Batch(0, 4));
            CHECK(values_of(net).at("l2/W") == start.at("l2/W"));  // no rank has a gradient
            CHECK(values_of(net).at("l1/W") != start.at("l1/W"));
            net.skips = comm.rank() != 1;
            learn(net, sgd, Batch(1, 4));
            CHECK(values_of(net).at("l2/W") != start.at("l2/W"));
            const Array& own = net.l2.W.data();
            const Array all = Array::empty({3, own.size()});
            comm.allgather(own, all).wait();
            for (int rank = 0; rank < 3; ++rank)
                CHECK(all.view(rank * own.size(), own.shape()).to_vector<double>() ==
                      values_of(net).at("l2/W"));
        });
    }
}

TEST_CASE("minibatches of different sizes are weighted") {
    const Values alone = train_alone("sgd", 10);
    std::vector<Values> result(2);
    const Net first = new_net();
    run_ranks(2, [&](const Communicator& comm) {
        Net net = deep_copy(first);
        optimizers::SGD sgd;
        MultiNodeOptimizer multi(sgd, comm);
        multi.setup(net);
        for (int step = 0; step < 10; ++step) {
            const Batch all(step, batch_size);  // rank 1 has no example in every third step
            const std::int64_t at = step % 3 == 0 ? 16 : 5;
            const std::int64_t own = comm.rank() == 0 ? at : 16 - at;
            multi.set_weight(static_cast<double>(own) * 2 / 16);
            multi.cleargrads();
            if (own > 0) {
                const std::int64_t begin = comm.rank() == 0 ? 0 : at;
                const Batch part{all.x.view(begin * 6, {own, 6}), all.t.view(begin, {own})};
                F::softmax_cross_entropy(net(as_variable(part.x)), as_variable(part.t)).backward();
            }
            multi.update();
        }
        result[static_cast<std::size_t>(comm.rank())] = values_of(net);
    });
    check_ranks(result, alone);
}

TEST_CASE("state per rank falls with the number of ranks") {
    run_ranks(4, [](const Communicator& comm) {
        struct Big : Chain {
            links::Linear a{300, 400}, b{400, 3};
            void visit(Visitor& v) override { v("a", a)("b", b); }
        } net;
        optimizers::Adam full, shared;
        full.setup(net);
        const MultiNodeOptimizer whole(full, Communicator());
        MultiNodeOptimizer multi(shared, comm, {.shard = true});
        multi.setup(net);
        CHECK(static_cast<double>(multi.state_bytes()) <=
              1.05 / 4 * static_cast<double>(whole.state_bytes()));
        CHECK(whole.state_bytes() == 2 * 4 * net.count_parameters());
    });
}

TEST_CASE("norms are those of the mean gradient, and a step can be given up") {
    const Net first = new_net();
    const auto backward = [](const Net& net, const Batch& batch) {
        F::softmax_cross_entropy(net(as_variable(batch.x)), as_variable(batch.t)).backward();
    };
    const Net alone = deep_copy(first);
    optimizers::SGD sgd_alone;
    sgd_alone.setup(alone);
    backward(alone, Batch(0, batch_size));
    const double norm = sgd_alone.compute_grads_norm();
    sgd_alone.update();
    const Values once = values_of(alone);
    run_ranks(2, [&](const Communicator& comm) {
        for (const bool shard : {false, true}) {
            Net net = deep_copy(first);
            optimizers::SGD sgd;
            MultiNodeOptimizer multi(sgd, comm, {.shard = shard});
            multi.setup(net);
            for (const std::int64_t step : {1, 0}) {  // the first one is given up
                if (step == 1) sgd.cleargrads();
                else net.cleargrads();
                backward(net, Batch(step, batch_size).part(comm.rank(), 2));
                const double own = sgd.compute_grads_norm();
                CHECK((own == doctest::Approx(norm).epsilon(1e-5)) == (step == 0));
            }
            sgd.update();
            CHECK(difference(once, values_of(net)) < bound);
        }
    });
}

TEST_CASE("wrong use throws, on every rank") {
    run_ranks(2, [](const Communicator& comm) {
        Net net;
        optimizers::SGD sgd;
        MultiNodeOptimizer multi(sgd, comm);
        multi.setup(net);
        const auto backward = [&] {
            const Batch own(0, 4);
            F::softmax_cross_entropy(net(as_variable(own.x)), as_variable(own.t)).backward();
        };
        backward();
        backward();
        CHECK(
            error_of<InvalidError>([&] { sgd.update(); }).starts_with("[MultiNodeOptimizer] l3/"));
    });
    CHECK(error_of<Error>([] {
              run_ranks(2, [](const Communicator& comm) {
                  links::Linear net(3, comm.rank() + 2);
                  bcast_data(comm, net);
              });
          }).find("expected the values of rank 0, W (2, 3) float32, got W (3, 3) float32") !=
          std::string::npos);
    optimizers::SGD sgd;
    CHECK_THROWS_AS(MultiNodeOptimizer(sgd, {}, {.bucket_bytes = 0}), InvalidError);
    CHECK_THROWS_AS(MultiNodeOptimizer(sgd, {}, {.wire = Dtype::int32}), InvalidError);
    CHECK_THROWS_AS(MultiNodeOptimizer(sgd, {}, {.accumulate = 0}), InvalidError);
    CHECK(error_of<UnsupportedError>([] {
              run_ranks(2, [](const Communicator& comm) {
                  Net net;
                  optimizers::Lamb lamb;
                  MultiNodeOptimizer multi(lamb, comm, {.shard = true});
                  multi.setup(net);
                  learn(net, lamb, Batch(0, 4));
              });
          }).find("this process updates only a part of the parameter") != std::string::npos);
}

TEST_CASE("calls at the wrong time throw") {
    const Net first = new_net();
    run_ranks(2, [&](const Communicator& comm) {
        const Batch own = Batch(0, batch_size).part(comm.rank(), 2);
        const auto backward = [&](const Net& net) {
            F::softmax_cross_entropy(net(as_variable(own.x)), as_variable(own.t)).backward();
        };
        {
            Net net = deep_copy(first);
            optimizers::SGD sgd;
            MultiNodeOptimizer multi(sgd, comm, {.bucket_bytes = 100});
            multi.setup(net);
            backward(net);
            CHECK(error_of<InvalidError>([&] { multi.set_weight(0.5); }) ==
                  "[MultiNodeOptimizer] weight: expected it before backward(), got 0.5 after "
                  "gradients with 1 were sent");
            multi.set_weight(1);  // as it is
            multi.update();
            multi.set_weight(0.5);
        }
        Net net = deep_copy(first);
        optimizers::SGD sgd;
        MultiNodeOptimizer multi(sgd, comm, {.double_buffering = true});
        multi.setup(net);
        multi.request_stop();
        backward(net);
        CHECK_THROWS_AS(sgd.clip_grads(1), InvalidError);
        multi.update();
        CHECK(multi.stop_requested());
        // After a setup() that throws, there is nothing to update.
        multi.setup(net);
        CHECK_FALSE(multi.stop_requested());
        Net other = deep_copy(first);
        other.l1.W.set_grad_hook([] {});
        CHECK_THROWS_AS(multi.setup(other), InvalidError);
        multi.update();
        multi.setup(net);
        learn(net, sgd, own);
    });
}

TEST_CASE("operations of the net may come between the buckets") {
    struct Normalized : Chain {
        links::Linear l1{6, 30}, l2{30, 30}, l3{30, 5};
        links::BatchNormalization norm{30};
        bool skips = false;
        void visit(Visitor& v) override { v("l1", l1)("norm", norm)("l2", l2)("l3", l3); }
        Variable operator()(const Variable& x) const override {
            const Variable h = F::relu(norm(l1(x)));
            return l3(skips ? h : F::tanh(l2(h)));
        }
    } const first;
    run_ranks(2, [&](const Communicator& comm) {
        Normalized net = deep_copy(first);
        create_multi_node_bn(comm, net);
        optimizers::SGD sgd;
        MultiNodeOptimizer multi(sgd, comm, {.bucket_bytes = 100});
        multi.setup(net);
        for (int step = 0; step < 4; ++step) {
            net.skips = comm.rank() == step % 2;
            const Batch own = Batch(step, batch_size).part(comm.rank(), 2);
            const Variable loss =
                F::softmax_cross_entropy(net(as_variable(own.x)), as_variable(own.t));
            multi.cleargrads();
            loss.backward();
            multi.update();
        }
    });
}

TEST_CASE("parameters that require no gradient are not sent or changed") {
    const Net first = new_net();
    run_ranks(2, [&](const Communicator& comm) {
        for (const bool shard : {false, true}) {
            Net net = deep_copy(first);
            for (const Variable& each : net.l3.parameters()) each.set_requires_grad(false);
            optimizers::Adam adam;
            MultiNodeOptimizer multi(adam, comm, {.bucket_bytes = 100, .shard = shard});
            multi.setup(net);
            learn(net, adam, Batch(0, 8).part(comm.rank(), 2));
            CHECK(values_of(net).at("l3/W") == values_of(first).at("l3/W"));
            CHECK(values_of(net).at("l1/W") != values_of(first).at("l1/W"));
        }
    });
    CHECK(error_of<Error>([&] {
              run_ranks(2, [&](const Communicator& comm) {
                  Net net = deep_copy(first);
                  net.l3.W.set_requires_grad(comm.rank() == 0);
                  optimizers::SGD sgd;
                  MultiNodeOptimizer(sgd, comm).setup(net);
              });
          })
              .find("expected the values of rank 0, l3/W requires a gradient, got l3/W without a "
                    "gradient") != std::string::npos);
}

TEST_CASE("with accumulation, hooks see the mean gradient and other uses throw") {
    const auto clip = [](Optimizer& o) {
        o.add_hook([](const Optimizer& each) { each.clip_grads(0.05); });
    };
    const auto whole = train("sgd", 10, 2, {}, clip);
    CHECK(difference(whole[0], train("sgd", 10, 2, {.accumulate = 2}, clip)[0]) < bound);
    CHECK(difference(whole[0], train("sgd", 10, 2, {.accumulate = 2, .shard = true}, clip)[0]) <
          bound);
    const Net first = new_net();
    run_ranks(2, [&](const Communicator& comm) {
        Net net = deep_copy(first);
        optimizers::SGD sgd;
        MultiNodeOptimizer multi(sgd, comm, {.accumulate = 2});
        multi.setup(net);
        CHECK_THROWS_AS((void)sgd.compute_grads_norm(), InvalidError);
        CHECK_THROWS_AS(sgd.scale_grads(2), InvalidError);
    });
}

TEST_CASE("a step that all ranks give up, and gradients changed after they were sent") {
    const Net first = new_net();
    const Values once = train("sgd", 1, 2)[0];
    run_ranks(2, [&](const Communicator& comm) {
        Net net = deep_copy(first);
        optimizers::SGD sgd;
        MultiNodeOptimizer multi(sgd, comm, {.bucket_bytes = 300});
        multi.setup(net);
        const auto backward = [&](std::int64_t step) {
            const Batch own = Batch(step, batch_size).part(comm.rank(), 2);
            F::softmax_cross_entropy(net(as_variable(own.x)), as_variable(own.t)).backward();
        };
        net.skips = comm.rank() == 1;
        backward(1);
        net.skips = false;
        multi.cleargrads();
        backward(0);
        multi.update();
        CHECK(values_of(net) == once);
        multi.cleargrads();
        backward(0);
        net.l1.W.set_grad(net.l1.W.grad() * 0);
        CHECK(error_of<InvalidError>([&] {
                  multi.update();
              }).starts_with("[MultiNodeOptimizer] l1/W: expected the gradient that was sent"));
    });
}

TEST_CASE("hooks of the user, a second wrapper, and one that was destroyed") {
    const Net first = new_net();
    run_ranks(2, [&](const Communicator& comm) {
        Net net = deep_copy(first);
        net.l1.W.set_grad_hook([] {});
        optimizers::SGD sgd;
        {
            MultiNodeOptimizer multi(sgd, comm, {.shard = true});
            CHECK_THROWS_AS(multi.setup(net), InvalidError);
            net.l1.W.set_grad_hook({});
            multi.setup(net);
            CHECK_THROWS_AS(MultiNodeOptimizer(sgd, {}), InvalidError);
            learn(net, sgd, Batch(0, 8).part(comm.rank(), 2));
        }
        CHECK_THROWS_AS(sgd.update(), InvalidError);
        sgd.setup(net);
        learn(net, sgd, Batch(0, 8));
        CHECK_FALSE(net.l1.W.node().grad_hook);
    });
}

TEST_CASE("pairwise sums in float16 do not overflow") {
    run_ranks(2, [](const Communicator& comm) {
        struct Scale : Chain {
            Parameter a{0, {3}};
            void visit(Visitor& v) override { v("a", a); }
        } net;
        optimizers::SGD sgd(1);
        MultiNodeOptimizer multi(sgd, comm, {.wire = Dtype::float16, .pairwise = true});
        multi.setup(net);
        F::sum(net.a * 40000).backward();
        multi.update();
        CHECK(net.a.data().to_vector<float>() == std::vector<float>(3, -40000));
    });
}

TEST_CASE("without a plugin, a group of one rank trains as the optimizer alone") {
    seed(3);
    Net net;
    optimizers::Adam adam;
    MultiNodeOptimizer multi(adam, {}, {.shard = true});
    multi.setup(net);
    for (int step = 0; step < 20; ++step) learn(net, adam, Batch(step, batch_size));
    CHECK(values_of(net) == train_alone("adam", 20));
}
