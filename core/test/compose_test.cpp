// Tests of functions that are compositions of functions.
#include "toys.hpp"

#include "graph/call.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

using Compose = decltype(catena_function::compose);

catena_function& composed(toys::Plugin& plugin, const char* name,
                          std::initializer_list<toys::Port> inputs, Compose compose,
                          std::initializer_list<toys::Port> outputs = {{"y"}}) {
    catena_function& f = plugin.function(name, inputs, outputs, nullptr);
    f.compose = compose;
    return f;
}

catena_status store(const catena_compose_call* c, catena_var* y) {
    c->y[0] = y;
    return y ? CATENA_OK : CATENA_E_INTERNAL;
}

// y = w (x0 - x1)^2, without subtraction among the toys: x0 + (-1) x1
catena_status distance(catena_ctx* ctx, const catena_compose_call* c) {
    catena_var* const minus =
        toys::call(ctx, "toy.scale", {c->x[1]}, {{"factor", toys::number(-1)}});
    catena_var* const d = minus ? toys::call(ctx, "toy.add", {c->x[0], minus}) : nullptr;
    catena_var* y = d ? toys::call(ctx, "toy.mul", {d, d}) : nullptr;
    if (y && c->n_x > 2 && c->x[2]) y = toys::call(ctx, "toy.mul", {y, c->x[2]});
    return store(c, y);
}

const toys::Plugin& plugin() {
    static toys::Plugin& made = *[] {
        auto* p = new toys::Plugin("test.compose");
        composed(*p, "compose.distance", {{"x0"}, {"x1"}, {"w", CATENA_PORT_OPTIONAL}}, distance);
        composed(*p, "compose.nested", {{"a"}, {"b"}}, [](catena_ctx* ctx, const auto* c) {
            catena_var* const d = toys::call(ctx, "compose.distance", {c->x[0], c->x[1], nullptr});
            return store(c, d ? toys::call(ctx, "toy.mul", {d, c->x[0]}) : nullptr);
        });
        auto& again =
            composed(*p, "compose.again", {{"x0"}, {"x1"}, {"w", CATENA_PORT_OPTIONAL}}, distance);
        again.flags |= CATENA_FUNCTION_RECOMPUTED;
        auto& own = composed(*p, "compose.own", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            return store(c, toys::call(ctx, "toy.mul", {c->x[0], c->x[0]}));
        });
        own.retain_x = 1;
        own.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
            // x gy instead of 2 x gy shows that it is used
            g->gx[0] = toys::call(ctx, "toy.mul", {g->gy[0], g->x[0]});
            return g->gx[0] ? CATENA_OK : CATENA_E_INTERNAL;
        };
        auto& fast = composed(*p, "compose.fast", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            return store(c, toys::call(ctx, "toy.mul", {c->x[0], c->x[0]}));
        });
        p->kernel("compose.fast", [](catena_ctx*, const catena_call* c) -> catena_status {
            ++seen("compose.fast").forward;
            for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i)
                toys::put(*c->y[0], i, toys::get(*c->x[0], i) * toys::get(*c->x[0], i));
            return CATENA_OK;
        });
        p->types(p->kernel("compose.fast", toys::say_back<7>, CATENA_PHASE_BACKWARD),
                 {{Dtype::float32}});
        static_cast<void>(fast);
        // s = x + x, y = s x, where s has no gradient of its own
        composed(*p, "compose.parts", {{"x"}},
                 [](catena_ctx* ctx, const auto* c) -> catena_status {
                     c->y[0] = toys::call(ctx, "toy.add", {c->x[0], c->x[0]});
                     c->y[1] = toys::call(ctx, "toy.mul", {c->y[0], c->x[0]});
                     return c->y[1] ? CATENA_OK : CATENA_E_INTERNAL;
                 },
                 {{"s", CATENA_PORT_NON_DIFFERENTIABLE}, {"y"}});
        composed(*p, "compose.loop", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            return store(c, toys::call(ctx, "compose.through", {c->x[0]}));
        });
        composed(*p, "compose.through", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            return store(c, toys::call(ctx, "compose.loop", {c->x[0]}));
        });
        composed(*p, "compose.input", {{"x"}},
                 [](catena_ctx*, const auto* c) { return store(c, c->x[0]); });
        composed(*p, "compose.nothing", {{"x"}},
                 [](catena_ctx*, const auto*) -> catena_status { return CATENA_OK; });
        composed(
            *p, "compose.first",
            {{"x"}, {"n", CATENA_PORT_HOST | CATENA_PORT_NON_DIFFERENTIABLE, "I"}},
            [](catena_ctx* ctx, const auto* c) {
                const void* elements = nullptr;
                if (const auto s = host_table().read(ctx, c->x[1], &elements)) return s;
                return store(
                    c, toys::call(ctx, "toy.scale", {c->x[0]},
                                  {{"factor", toys::number(static_cast<double>(
                                                  *static_cast<const std::int64_t*>(elements)))}}));
            });
        composed(*p, "compose.peek", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            const void* elements = nullptr;
            return host_table().read(ctx, c->x[0], &elements);
        });
        p->function("compose.draw", {{"x"}}, {{"y"}}, toys::infer_same).flags =
            CATENA_FUNCTION_STOCHASTIC | CATENA_FUNCTION_NOT_DIFFERENTIABLE;
        p->kernel("compose.draw", [](catena_ctx* ctx, const catena_call* c) -> catena_status {
            std::uint64_t seed = 0, offset = 0;
            const auto n = static_cast<std::uint64_t>(toys::count(*c->y[0]));
            if (const auto s = host_table().philox(ctx, n, &seed, &offset)) return s;
            for (std::uint64_t i = 0; i < n; ++i)
                toys::put(*c->y[0], static_cast<std::int64_t>(i),
                          static_cast<double>(offset + i + 1));
            return CATENA_OK;
        });
        auto& noise = composed(*p, "compose.noise", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            catena_var* const a = toys::call(ctx, "compose.draw", {c->x[0]});
            return store(c, a ? toys::call(ctx, "toy.mul", {a, c->x[0]}) : nullptr);
        });
        noise.flags |= CATENA_FUNCTION_RECOMPUTED | CATENA_FUNCTION_STOCHASTIC;
        composed(*p, "compose.count", {{"x"}}, [](catena_ctx* ctx, const auto* c) {
            return store(c, toys::call(ctx, "toy.mul", {c->x[0], c->x[0]}));
        }).flags |= CATENA_FUNCTION_NOT_DIFFERENTIABLE;
        p->add();
        return p;
    }();
    return made;
}

PluginFunction function(const char* name) {
    plugin();
    return PluginFunction(name);
}

// Returns the gradients of the sum of y.
std::vector<Values> gradients(const Variable& y, std::initializer_list<Variable> x) {
    for (const Variable& v : x) v.cleargrad();
    toys::sum.first({&y}).backward();
    std::vector<Values> all;
    for (const Variable& v : x) all.push_back(v.grad() ? values(v.grad()) : Values{});
    return all;
}

}  // namespace

TEST_CASE("a composition has values and gradients of any order from its parts") {
    const Variable x0(doubles({1, 4})), x1(doubles({3, 1})), w(doubles({2, 0.5}));
    const Variable y = function("compose.distance")(x0, x1);
    CHECK(values(y.data()) == Values{4, 9});
    CHECK(gradients(y, {x0, x1}) == std::vector<Values>{{-4, 6}, {4, -6}});
    const Variable weighted = function("compose.distance")(x0, x1, w);
    CHECK(values(weighted.data()) == Values{8, 4.5});
    CHECK(gradients(weighted, {w}) == std::vector<Values>{{4, 9}});
    const Variable first =
        grad({function("compose.distance")(x0, x1)}, {x0}, {as_variable(doubles({1, 1}))}, {},
             {.enable_double_backprop = true})[0];
    CHECK(gradients(first, {x0, x1}) == std::vector<Values>{{2, 2}, {-2, -2}});
    // float32 as well, arrays, and no graph without need
    CHECK(values(function("compose.distance").forward({{floats({5}), floats({2})}})[0]) ==
          Values{9});
    CHECK(!function("compose.distance")(as_variable(doubles({1})), as_variable(doubles({2})))
               .creator());
}

TEST_CASE("the calls of a composition belong to its group") {
    const Variable x0(doubles({1})), x1(doubles({3}));
    const Variable y = function("compose.nested")(x0, x1);
    REQUIRE(y.creator()->group());
    CHECK(y.creator()->label() == "toy.mul");
    CHECK(y.creator()->group()->name == "compose.nested");
    CHECK(!y.creator()->group()->outer);
    const GraphNode* const inner = y.creator()->inputs()[0]->creator.get();
    CHECK(inner->group()->name == "compose.distance");
    CHECK(inner->group()->outer.get() == y.creator()->group());
    CHECK(!toys::mul.first({&x0, &x1}).creator()->group());
    CHECK(!running_group());
}

TEST_CASE("a composition that is recomputed keeps its inputs alone") {
    const Variable x0(doubles({1, 4})), x1(doubles({3, 1}));
    const Variable y = function("compose.again")(x0, x1);
    CHECK(y.creator()->label() == "compose.again");
    CHECK(y.rank() == 1);
    CHECK(gradients(y, {x0, x1}) == std::vector<Values>{{-4, 6}, {4, -6}});
    const Variable first =
        grad({function("compose.again")(x0, x1)}, {x0}, {as_variable(doubles({1, 1}))}, {},
             {.enable_double_backprop = true})[0];
    CHECK(gradients(first, {x0, x1}) == std::vector<Values>{{2, 2}, {-2, -2}});
}

TEST_CASE("gradients with a graph of a recomputed composition are those of its own inputs") {
    const Variable a(doubles({1, 2})), two(doubles({2, 2}));
    const auto first = [&](const Variable& y, const Variable& x) {
        return values(
            grad({y}, {x}, {as_variable(doubles({1, 1}))}, {}, {.enable_double_backprop = true})[0]
                .data());
    };
    for (const char* name : {"compose.distance", "compose.again"}) {
        CAPTURE(name);
        const Variable b = toys::mul.first({&a, &two});  // b = 2 a, so the distance is a^2
        CHECK(first(function(name)(a, b), a) == Values{2, 4});
        CHECK(first(function(name)(a, a), a) == Values{0, 0});
        CHECK(first(function(name)(b, two, two), a) == Values{0, 16});
    }
}

TEST_CASE("a result without a gradient does not cut the graph of other results") {
    const Variable x(doubles({3}));
    const std::vector<Variable> all = function("compose.parts")({&x});
    CHECK(!all[0].requires_grad());
    CHECK(!all[0].creator());
    CHECK(gradients(all[1], {x})[0] == Values{12});  // y = 2 x^2
}

TEST_CASE("a composition that is recomputed draws the same random numbers again") {
    const Variable x(doubles({1, 2, 3}));
    const Variable y = function("compose.noise")(x);
    const Values drawn = values(y.data());
    const RandomState before = random_state(x.device());
    const Values gx = gradients(y, {x})[0];
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(gx[i] == doctest::Approx(drawn[i] / values(x.data())[i]));
    CHECK(random_state(x.device()).offset == before.offset);
    CHECK(values(function("compose.noise")(x).data()) != drawn);
}

TEST_CASE("a composition can bring its own gradient") {
    const Variable x(doubles({3}));
    const Variable y = function("compose.own")(x);
    CHECK(y.creator()->label() == "compose.own");
    CHECK(gradients(y, {x}) == std::vector<Values>{{3}});
}

TEST_CASE("kernels are used where there are some; the setting runs the composition") {
    const Variable x(floats({3}));
    seen("compose.fast").clear();
    const Variable y = function("compose.fast")(x);
    CHECK(seen("compose.fast").forward == 1);
    CHECK(values(y.data()) == Values{9});
    CHECK(gradients(y, {x}) == std::vector<Values>{{7}});  // of the backward kernel
    // no backward kernel for float64: the composition's gradient
    const Variable x64(doubles({3}));
    CHECK(gradients(function("compose.fast")(x64), {x64}) == std::vector<Values>{{6}});
    CHECK(seen("compose.fast").forward == 2);
    // a gradient of higher order is that of the composition, too
    const Variable first =
        grad({function("compose.fast")(x)}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    CHECK(gradients(first, {x}) == std::vector<Values>{{2}});
    seen("compose.fast").clear();
    const using_config scope(&Config::compositions, true);
    CHECK(gradients(function("compose.fast")(x), {x}) == std::vector<Values>{{6}});
    CHECK(seen("compose.fast").forward == 0);
}

TEST_CASE("shapes and dtypes without computing") {
    const Array x = Array::without_memory({1'000'000'000, 1000}, Dtype::float64);
    for (const char* name : {"compose.distance", "compose.nested", "toy.mul"}) {
        const Array inputs[] = {x, x};
        const std::vector<Array> y = function(name).infer(inputs);
        CHECK(y[0].shape() == x.shape());
        CHECK(y[0].dtype() == Dtype::float64);
    }
    // of a function with kernels and no infer()
    const Array one[] = {x};
    CHECK(function("compose.fast").infer(one)[0].shape() == x.shape());
    const Array different[] = {x, Array::without_memory({2}, Dtype::float64)};
    CHECK_THROWS_AS(function("compose.distance").infer(different), ShapeError);
}

TEST_CASE("errors of inner calls are errors of the composition") {
    const Variable x0(doubles({1, 4})), x1(doubles({3, 1, 2})), f(floats({1, 2}));
    CHECK(toys::what<ShapeError>([&] {
              function("compose.nested")(x0, x1);
          }).starts_with("[compose.nested] "));
    CHECK(toys::what<DtypeError>([&] { function("compose.distance")(x0, f); }) ==
          "[compose.distance] x1: expected float64 as x0, got float32");
    CHECK(toys::what<InvalidError>([&] { function("compose.loop")(x0); }) ==
          "[compose.loop] compose: expected calls that do not lead back to it, got compose.loop > "
          "compose.through > compose.loop");
    CHECK(
        toys::what<InternalError>([&] { function("compose.input")(x0); }) ==
        "[compose.input] compose: y: expected a result of one of its calls, got another variable");
    CHECK(toys::what<InternalError>([&] { function("compose.nothing")(x0); }) ==
          "[compose.nothing] compose: y: expected a result of one of its calls, got none");
    CHECK(!running_group());
}

TEST_CASE("compositions read the elements of host inputs alone") {
    const Variable x(doubles({1, 2}));
    const Array n = Array::from<std::int64_t>({3}, {1});
    CHECK(values(function("compose.first")(x, as_variable(n)).data()) == Values{3, 6});
    const Array inputs[] = {x.data(), n};
    CHECK(function("compose.first").infer(inputs)[0].shape() == Shape{2});
    const Array unknown[] = {x.data(), Array::without_memory({1}, Dtype::int64)};
    CHECK(toys::what<InvalidError>([&] { function("compose.first").infer(unknown); }) ==
          "[compose.first] n: expected elements, got only the shape (1,)");
    CHECK(toys::what<InvalidError>([&] { function("compose.peek")(x); }) ==
          "[compose.peek] read(): expected an input of CATENA_PORT_HOST within compose()");
}

TEST_CASE("functions without a gradient record none") {
    const Variable x(doubles({3}));
    const Variable y = function("compose.count")(x);
    CHECK(!y.creator());
    CHECK(!y.requires_grad());
}

TEST_CASE("compositions with volatile variables") {
    const Variable x(doubles({3}), true);
    const Variable y = function("compose.distance")(x, Variable(doubles({1}), true));
    CHECK(y.is_volatile());
    CHECK(!y.creator());
    CHECK_THROWS_AS(function("compose.distance")(x, Variable(doubles({1}))), GraphError);
}
