// Tests of the report of parameters that no visit() lists.
#include <catena/catena.hpp>

#include "temporary.hpp"
#include "two_parameters.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <thread>

using namespace catena;
namespace F = catena::functions;

namespace {

// What body logs, with file 2 in a file meanwhile.
std::string logged(const std::function<void()>& body) {
    const TemporaryFolder folder;
    std::fflush(stderr);
    const int before = dup(2);
    const int file = open((folder.path / "log").c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(file, 2);
    body();
    std::fflush(stderr);
    dup2(before, 2);
    close(before);
    close(file);
    return read_file(folder.path / "log");
}

struct Forgetful : Chain {
    links::Linear listed{3, 4}, forgotten{4, 2};
    Parameter scale{1, {}};
    bool lists_all = false;
    void visit(Visitor& v) override {
        v("listed", listed);
        if (lists_all) v("forgotten", forgotten)("scale", scale);
    }
    Variable operator()(const Variable& x) const override {
        return F::sum(forgotten(listed(x)) * F::broadcast_to(scale, {1, 2}));
    }
};

}  // namespace

TEST_CASE("parameters that no visit() lists are reported at the first update") {
    const Variable x = as_variable(Array::ones({1, 3}));
    const auto step = [&](Forgetful& net, Optimizer& optimizer) {
        optimizer.cleargrads();
        net(x).backward();
        optimizer.update();
    };
    const std::string said =
        "[update] parameters: expected visit() of a link to list each parameter";
    {
        Forgetful net;
        optimizers::SGD optimizer(0.1);
        optimizer.setup(net);
        const std::string text = logged([&] {
            step(net, optimizer);
            step(net, optimizer);
        });
        const std::size_t first = text.find(said);
        REQUIRE(first != text.npos);
        CHECK(text.find(said, first + 1) == text.npos);  // once
        for (const char* shape : {"(2, 4)", "(2,)", "()"}) contains(text, shape);
        CHECK(text.find("(4, 3)") == text.npos);
        optimizer.setup(net);
        const using_config debug(&Config::debug, true);
        for (int i = 0; i < 2; ++i)
            contains(error_of<GraphError>([&] { step(net, optimizer); }), said);
        net.lists_all = true;
        optimizer.setup(net);
        CHECK_NOTHROW(step(net, optimizer));
    }
    const using_config debug(&Config::debug, true);
    Forgetful left_over;  // without a gradient
    {
        // Two optimizers: each gives gradients to the parameters of the other.
        Forgetful a, b;
        a.lists_all = b.lists_all = true;
        optimizers::SGD first, second;
        first.setup(a);
        second.setup(b);
        (a(x) * b(x)).backward();
        CHECK_NOTHROW(first.update());
        CHECK_NOTHROW(second.update());
        // A part trains, another is frozen, or only used for a loss of its own.
        Forgetful frozen;
        for (const Parameter* each : {&frozen.forgotten.W, &frozen.forgotten.b, &frozen.scale})
            each->set_requires_grad(false);
        optimizers::SGD third;
        third.setup(frozen);
        CHECK_NOTHROW(step(frozen, third));
        // Parameters of another thread are not reported here.
        Forgetful of_this_thread;
        of_this_thread(x).backward();
        std::thread([] {
            Forgetful other, net;
            other(as_variable(Array::ones({1, 3}))).backward();
            net.lists_all = true;
            optimizers::SGD optimizer;
            optimizer.setup(net);
            const using_config debug_here(&Config::debug, true);
            CHECK_THROWS_AS(optimizer.update(), GraphError);
            other.lists_all = true;
            other.cleargrads();
            CHECK_NOTHROW(optimizer.update());
        }).join();
        of_this_thread.lists_all = true;
        of_this_thread.cleargrads();
        // A leaf with a gradient that is no Parameter, and a list of parameters.
        const Variable plain(Array::ones({}));
        (plain * 2).backward();
        CHECK_NOTHROW(third.update());
        Forgetful by_hand;
        optimizers::SGD fourth;
        fourth.setup(by_hand.collect_parameters());
        CHECK_NOTHROW(step(by_hand, fourth));
        by_hand.lists_all = true;
        by_hand.cleargrads();
    }
    {
        Forgetful gone;
        gone(x).backward();
    }
    Two two;
    optimizers::SGD last;
    last.setup(two);
    two.set_grad();
    CHECK_NOTHROW(last.update());
}
