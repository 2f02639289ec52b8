// Tests a plugin whose kernel is a formula, and the table of formulas that plugins in C use.
#include <doctest/doctest.h>

#include <catena/abi/ext/kernels.h>
#include <catena/catena.hpp>

#include <cmath>
#include <cstdlib>
#include <optional>

using namespace catena;

TEST_CASE("a plugin's kernel runs a formula") {
    load_plugin(CATENA_TEST_CUBES);
    const PluginFunction cubes("org.example.cubes");
    const Array x = Array::from<float>({1, 2, 3}, {3});
    CHECK(cubes.forward({{x}})[0].to_vector<float>() == std::vector<float>{1, 8, 27});
    CHECK(cubes.forward({{x.astype(Dtype::float64)}})[0].to_vector<double>() ==
          std::vector<double>{1, 8, 27});
    CHECK(cubes.forward({{Array::zeros({0})}})[0].size() == 0);
    try {
        cubes.with({{"wrong", true}}).forward({{x}});
        FAIL("nothing was thrown");
    } catch (const InvalidError& error) {
        CHECK(std::string(error.what()).find("[wrong_cube] operation, line 1:") !=
              std::string::npos);
    }
}

// Runs on the device CATENA_TEST_DEVICE, if it is set.
TEST_CASE("a plugin's reduction: numbers, an array that is added to, scratch memory, gradients") {
    std::optional<using_device> scope;
    if (const char* name = std::getenv("CATENA_TEST_DEVICE")) scope.emplace(name);
    load_plugin(CATENA_TEST_RMS);
    const PluginFunction rms("org.example.root_mean_square");
    const Array x = Array::from<double>({1, 5, 7, 2, 2, 2}, {2, 3});
    const auto without = rms.with({{"eps", 0.0}});
    CHECK(without.forward({{x}})[0].shape() == Shape{2, 1});
    CHECK(without.forward({{x}})[0].to_vector<double>() == std::vector<double>{5, 2});
    CHECK(without.forward({{x.astype(Dtype::float16)}})[0].to_vector<float>() ==
          std::vector<float>{5, 2});
    CHECK(rms.with({{"eps", 11.0}}).forward({{x}})[0].to_vector<double>() ==
          std::vector<double>{6, std::sqrt(15.0)});
    const Array few = Array::full({1, 100'000}, 3);  // its sum is cut into pieces
    CHECK(without.forward({{few}})[0].to_vector<float>() == std::vector<float>{3});
    CHECK(rms.forward({{Array::zeros({0, 3})}})[0].shape() == Shape{0, 1});

    const auto f = [&](const Variables& v) -> Variables {
        return {rms({&v[0]})[0] + rms({&v[0]})[0]};
    };
    const Array gy = Array::from<double>({0.5, -2}, {2, 1});
    gradient_check::check_backward(f, {{x}}, {{gy}});
    gradient_check::check_double_backward(f, {{x}}, {{gy}}, {{x}});
}

TEST_CASE("tensors with strides of their own") {
    const auto& table = *static_cast<const catena_kernels*>(extension(CATENA_KERNELS_1));
    const auto run = [&](const char* code, std::int64_t rows, std::int64_t columns,
                         bool transposed) {
        catena_formula formula{};
        formula.struct_size = sizeof(formula);
        formula.kind = CATENA_FORMULA_ELEMENTWISE;
        formula.name = "strided";
        formula.inputs = "T x";
        formula.outputs = "T y";
        formula.operation = code;
        const catena_formula_kernel* kernel = nullptr;
        const Array x = Array::empty({rows, columns}), y = Array::empty({rows, columns});
        for (std::int64_t i = 0; i < x.size(); ++i)
            x.host<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i);
        ExtensionCall call(x.device());
        catena_tensor input = *call.reads(x);
        std::int64_t shape[] = {rows, columns}, strides[] = {1, rows};
        if (transposed) {  // x's memory as a (columns, rows) array, transposed
            input.flags &= ~std::uint32_t{CATENA_TENSOR_CONTIGUOUS};
            input.dl.shape = shape;
            input.dl.strides = strides;
        }
        catena_operand operand{};
        operand.tensor = &input;
        catena_tensor* output = call.writes(y);
        catena_formula_call c{};
        c.struct_size = sizeof(c);
        c.x = &operand;
        c.y = &output;
        c.n_x = c.n_y = 1;
        c.dev = call.dev();
        c.stream = call.stream();
        call.check(table.create(call.context(), &formula, &kernel), "create");
        call.check(table.run(call.context(), kernel, &c), "run");
        return y.to_vector<float>();
    };
    CHECK(run("y = x", 2, 3, false) == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(run("y = x", 2, 3, true) == std::vector<float>{0, 2, 4, 1, 3, 5});
    const std::vector<float> large = run("y = x", 200, 300, true);
    CHECK(large[1] == 200);
    CHECK(large[59999] == 59999);
    CHECK(large[300] == 1);
}

TEST_CASE("what is written must be writable, and there") {
    const auto& table = *static_cast<const catena_kernels*>(extension(CATENA_KERNELS_1));
    const Array x = Array::ones({2});
    ExtensionCall call(x.device());
    const catena_tensor* read_only = call.reads(x);
    catena_formula formula{};
    formula.struct_size = sizeof(formula);
    formula.name = "copied";
    formula.inputs = "T x";
    formula.outputs = "T y";
    formula.operation = "y = x";
    const catena_formula_kernel* kernel = nullptr;
    call.check(table.create(call.context(), &formula, &kernel), "create");
    catena_operand operand{};
    operand.tensor = read_only;
    catena_tensor* output = const_cast<catena_tensor*>(read_only);
    catena_formula_call c{};
    c.struct_size = sizeof(c);
    c.x = &operand;
    c.y = &output;
    c.n_x = c.n_y = 1;
    c.dev = call.dev();
    const catena_status status = table.run(call.context(), kernel, &c);
    CHECK(status == CATENA_E_INVALID);
    CHECK_THROWS_WITH_AS(call.check(status, "run"),
                         "[copied] y: expected an array that may be written, got a read-only one",
                         InvalidError);
    std::uint32_t n_x = 0, n_y = 0;
    table.arity(kernel, &n_x, &n_y);
    CHECK(n_x == 1);
    CHECK(n_y == 1);
}
