// World, conform() and check() with compositions.
#include <doctest/doctest.h>

#include <catena/testing.hpp>
#include <catena/testing/sample.hpp>

using namespace catena::testing;

namespace {

World& world() {
    static World all(COMPOSED);
    return all;
}

const Array a = Array::from<double>({1, 4}, {2});
const Array b = Array::from<double>({3, 1}, {2});
const Array one = Array::from<double>({1, 1}, {2});

std::vector<double> numbers(const Array& array) { return array.numbers(); }
using Numbers = std::vector<double>;

}  // namespace

TEST_CASE("values and gradients of a composition come from its parts") {
    const auto y = world().forward("composed.distance", {a, b});
    CHECK(numbers(y[0]) == Numbers{8, 18});
    CHECK(numbers(world().forward("composed.distance", {a, b, b}, {set("margin", 1.0)})[0]) ==
          Numbers{12, 9});
    CHECK(world().ran() == "org.example.composed");
    const auto gx = world().gradient("composed.distance", {a, b}, y, {one});
    CHECK(numbers(gx[0]) == Numbers{-8, 12});
    CHECK(numbers(gx[1]) == Numbers{8, -12});
    CHECK(!gx[2]);
    const auto second = world().second("composed.distance", {a, b}, y, {one}, {one, Array()});
    CHECK(numbers(second[0]) == Numbers{4, 4});
    CHECK(numbers(second[1]) == Numbers{-4, -4});
    CHECK(numbers(second[3]) == Numbers{-8, 12});  // of gy
}

TEST_CASE("an input that is passed twice gets its gradient once") {
    const auto y = world().forward("composed.both", {a, a});
    const auto gx = world().gradient("composed.both", {a, a}, y, {one, one});
    CHECK(numbers(gx[0]) == Numbers{1, 1});
    CHECK(numbers(gx[1]) == Numbers{0, 0});
}

TEST_CASE("shapes and dtypes of a composition, without elements") {
    const auto meta = [](Dims shape) { return meta_of(shape, dtype_of<float>()); };
    const catena_meta huge = meta({1 << 30, 1 << 30});
    const auto y = world().infer("composed.both", {huge, huge});
    REQUIRE(y.size() == 2);
    CHECK(y[0].shape[1] == 1 << 30);
    CHECK(catena::plugin::same(y[1].dtype, dtype_of<float>()));
    CHECK_THROWS_WITH(world().infer("composed.both", {meta({2, 3}), meta({3, 2})}),
                      "[composed.both] b.shape: expected (2, 3), got (3, 2)");
    CHECK_THROWS_WITH(
        world().infer("composed.pieces", {meta({7, 2}), meta_of({3}, dtype_of<std::int64_t>())}),
        "[composed.pieces] lengths: expected elements, got only the shape (3,)");
    const std::vector<Array> inputs = {Array::without_memory({7, 2}, dtype_of<float>()),
                                       Array::from<std::int32_t>({3, 4}, {2})};
    CHECK(world().infer("composed.pieces", inputs)[0].shape[0] == 2);
}

TEST_CASE("errors of the parts are errors of the composition") {
    CHECK_THROWS_WITH(
        world().forward("composed.unlike", {a, a.to(dtype_of<float>())}),
        "[composed.unlike] b: expected float64 as the others of its type, got float32");
    CHECK_THROWS_WITH(world().forward("composed.distance", {a, Array::random<double>({3}, 1)}),
                      "[composed.distance] b.shape: expected broadcastable to (2,), got (3,)");
    CHECK_THROWS_WITH(
        world().forward("composed.outer", {a}),
        "[composed.outer] in catena.reshape: shape: expected 2 elements of x (2,), got "
        "(5,)");
    CHECK_THROWS_WITH(world().forward("composed.loop", {a}),
                      "[composed.loop] compose: expected calls that do not lead back to it, got "
                      "composed.loop > composed.loop");
    CHECK_THROWS_WITH(world().forward("composed.peek", {a}),
                      "[composed.peek] read(): expected an input of CATENA_PORT_HOST within "
                      "compose()");
    CHECK(world().forward("composed.distance", {a, b}).size() == 1);  // as before
}

TEST_CASE("kernels where there are some, the composition for other dtypes and on request") {
    const std::size_t before = world().runs();
    world().forward("composed.square", {a.to(dtype_of<float>())});
    CHECK(world().runs() == before + 1);
    Options options;
    options.composition = true;
    CHECK(numbers(world().forward("composed.kernel", {a.to(dtype_of<float>())})[0]) ==
          Numbers{2, 17});
    CHECK(numbers(world().forward("composed.kernel", {a.to(dtype_of<float>())}, {}, options)[0]) ==
          Numbers{1, 16});
    CHECK(numbers(world().forward("composed.kernel", {a})[0]) == Numbers{1, 16});
}

TEST_CASE("conform() of compositions: right ones, and each wrong part") {
    for (const char* name : {"composed.distance", "composed.both", "composed.pieces",
                             "composed.noise", "composed.square"}) {
        const Report report = conform(world(), name);
        CHECK(report.failures() == "");
        CHECK(report[Check::gradient].verdict == Verdict::passed);
        CHECK(report[Check::second_order].verdict == Verdict::passed);
        CHECK(report[Check::dtypes].verdict == Verdict::passed);
        CHECK(report[Check::backward].verdict == Verdict::passed);
    }
    const auto failures = [](const char* name) { return conform(world(), name).failures(); };
    const auto starts = [&](const char* name, const std::string& start) {
        const std::string all = failures(name);
        INFO(all);
        CHECK(all.find(start) != std::string::npos);
    };
    starts("composed.shape",
           "of org.example.composed of \"x=(3,4)\": [composed.shape] compose: y: expected float64 "
           "(12,) as infer() gives, got float64 (3, 4)");
    starts("composed.kernel", "composed.kernel: dtypes: forward float32 ''");
    starts("composed.backward", "composed.backward: backward: backward float32 ''");
    starts("composed.gradient", "composed.gradient: gradient: of x of");
    starts("composed.gradient", "or float64 for '' or 'composition'");
}

TEST_CASE("check() of a composition, with elements as an input") {
    CHECK(check(world(), {.function = "composed.pieces",
                          .inputs = {Array::from<double>({1, 2, 3}, {3}),
                                     Array::from<std::int64_t>({1, 2}, {2})},
                          .expected = {Array::from<double>({1, 5}, {2})}}) == "");
    CHECK(check(world(), {.function = "composed.pieces",
                          .inputs = {Array::from<double>({1, 2, 3}, {3}),
                                     Array::from<std::int64_t>({1, 3}, {2})},
                          .error = "[composed.pieces] lengths: expected at most the rows of x"}) ==
          "");
}

TEST_CASE("examples with lists of elements") {
    const catena_function& f = world().function("composed.pieces");
    const Example e = parse_example(f, "x=(7,2) lengths=[3,2,2]");
    CHECK(e.inputs[1].elements == std::vector<std::int64_t>{3, 2, 2});
    CHECK(text_of(f, e) == "x=(7,2) lengths=[3,2,2]");
    const Sample sample = make_sample(world(), f, e, 1);
    CHECK(numbers(sample.x[1]) == Numbers{3, 2, 2});
    CHECK_THROWS_WITH(parse_example(f, "x=(7,2) lengths=3"),
                      "[composed.pieces] example \"x=(7,2) lengths=3\": expected a shape (2,3) or "
                      "elements [1,2], got '3'");
    // A function of floats alone refuses lists of integers.
    const catena_function& exp = world().function("catena.exp");
    CHECK_THROWS_AS(make_sample(world(), exp, parse_example(exp, "x=[1,2]"), 1), Failure);
}
