// Every function against finite differences in float64, first and second order; kernels against
// compositions; float32 against float64.
#include <catena/catena.hpp>
#include <catena/gradient_check.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace catena;
using gradient_check::assert_allclose;

namespace {

// Numbers that float32 has exactly.
Array numbers(const Shape& shape, const auto& draw) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (double& value : values) value = static_cast<float>(draw());
    return Array::from(values, shape);
}
std::mt19937 engine(1);
double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
}
Array positive(const Shape& shape) {
    return numbers(shape, [] { return uniform(0.4, 1.6); });
}
Array any(const Shape& shape) {
    return numbers(shape, [] { return uniform(-1, 1); });
}
// Away from 0, where a function may have a kink.
Array apart(const Shape& shape) {
    return numbers(shape, [] { return uniform(0.2, 1.2) * (engine() % 2 ? 1 : -1); });
}
Array labels(const Shape& shape, int classes) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
    for (auto& value : values) value = static_cast<std::int32_t>(engine() % unsigned(classes));
    return Array::from(values, shape);
}
Array bytes(const Shape& shape) {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(shape.size()));
    for (auto& value : values) value = engine() % 2;
    return Array::from(values, shape);
}
using Ints = std::vector<std::int64_t>;

struct Sample {
    std::string function;
    std::vector<Array> inputs;
    std::vector<Attribute> attributes = {};
};

std::vector<Sample> samples() {
    std::vector<Sample> list;
    const auto with = [&](std::initializer_list<const char*> functions, auto... inputs) {
        for (const char* name : functions) list.push_back({name, {inputs...}});
    };
    for (const Shape& shape : {Shape{3, 4}, Shape{}, Shape{1}, Shape{2, 0}}) {
        with({"neg", "exp", "tanh", "sigmoid", "identity", "dropout"}, any(shape));
        with({"abs", "relu", "leaky_relu"}, apart(shape));
        with({"log", "sqrt"}, positive(shape));
        list.push_back({"leaky_relu", {apart(shape)}, {{"slope", -0.5}}});
        for (const char* name : {"add_constant", "mul_constant", "sub_from_constant"}) {
            list.push_back({name, {any(shape)}, {{"value", 2.5}}});
        }
        list.push_back({"div_from_constant", {apart(shape)}, {{"value", 2.5}}});
        list.push_back({"pow_const_var", {any(shape)}, {{"value", 2.5}}});
        list.push_back({"pow_var_const", {positive(shape)}, {{"value", 2.5}}});
        list.push_back({"pow_var_const", {apart(shape)}, {{"value", 3}}});
        list.push_back({"cast", {any(shape)}, {{"dtype", Dtype::float64}}});
        list.push_back({"apply_dropout", {any(shape), bytes(shape)}, {{"ratio", 0.25}}});
    }
    const Shape pairs[][2] = {
        {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{3, 1}, {1, 4}}, {{}, {2, 3}}, {{2, 3, 4}, {3, 1}}};
    for (const auto& [a, b] : pairs) {
        with({"add", "sub", "mul"}, any(a), any(b));
        with({"div"}, any(a), apart(b));
        with({"pow"}, positive(a), any(b));
        with({"maximum", "minimum"}, any(a), any(b));
        with({"where"}, numbers(b, [] { return engine() % 2; }), any(a), any(b));
    }
    with({"matmul"}, any({3, 4}), any({4, 2}));
    for (int i = 0; i < 4; ++i) {
        const bool ta = i & 1;
        const bool tb = i & 2;
        list.push_back({"matmul",
                        {any(ta ? Shape{4, 3} : Shape{3, 4}), any(tb ? Shape{2, 4} : Shape{4, 2})},
                        {{"transa", ta}, {"transb", tb}}});
    }
    with({"linear"}, any({5, 3}), any({2, 3}), any({2}));
    with({"linear"}, any({5, 3}), any({2, 3}));
    with({"linear"}, any({2, 3, 2}), any({4, 6}), any({4}));
    with({"sum", "transpose", "softmax"}, any({2, 3}));
    list.push_back({"sum", {any({2, 3, 4})}, {{"axis", Ints{0, -1}}}});
    list.push_back({"sum", {any({2, 3, 4})}, {{"axis", Ints{1}}, {"keepdims", true}}});
    list.push_back({"transpose", {any({2, 3, 4})}, {{"axes", Ints{2, 0, 1}}}});
    list.push_back({"sum_to", {any({2, 3, 4})}, {{"shape", Ints{3, 1}}}});
    list.push_back({"broadcast_to", {any({3, 1})}, {{"shape", Ints{2, 3, 4}}}});
    list.push_back({"reshape", {any({2, 6})}, {{"shape", Ints{3, -1}}}});
    with({"softmax_cross_entropy"}, any({4, 5}), labels({4}, 5));
    list.push_back({"softmax_cross_entropy", {any({6, 3}), labels({6}, 3)}, {{"ignore_label", 1}}});
    with({"softmax_cross_entropy"}, any({2, 3, 4}), labels({2, 4}, 3));
    with({"mean_squared_error"}, any({3, 4}), any({3, 4}));
    return list;
}

// A sample as a function of its inputs: the same call, the same random numbers.
struct Subject {
    explicit Subject(const Sample& s) : sample(s), function("catena." + s.function, s.attributes) {
        const catena_function& d = function.descriptor();
        for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
            hidden.push_back(d.outputs[i]->flags &
                             (CATENA_PORT_HIDDEN | CATENA_PORT_NON_DIFFERENTIABLE));
        }
        for (std::uint32_t i = 0; i < sample.inputs.size(); ++i) {
            const std::uint32_t port = std::min(i, d.n_inputs - 1);
            constants.push_back(!is_floating(sample.inputs[i].dtype()) ||
                                (d.inputs[port]->flags & CATENA_PORT_NON_DIFFERENTIABLE));
        }
    }

    std::vector<Variable> operator()(const std::vector<Variable>& inputs) const {
        seed(7);
        std::vector<const Variable*> pointers;
        for (const Variable& input : inputs) pointers.push_back(&input);
        std::vector<Variable> all = function(pointers);
        std::vector<Variable> shown;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!hidden[i]) shown.push_back(all[i]);
        }
        return shown;
    }

    // Outputs, then gradients, in a dtype.
    std::vector<Array> run(Dtype dtype, bool composed, const std::vector<Array>& gy) const {
        std::vector<Variable> inputs;
        for (const Array& input : sample.inputs) {
            inputs.emplace_back(is_floating(input.dtype()) ? input.astype(dtype) : input);
        }
        const std::vector<Variable> y = (*this)(inputs);
        std::vector<Array> results;
        for (const Variable& output : y) results.push_back(output.data());
        y.at(0).set_grad(gy[0].astype(y[0].dtype()));
        y[0].backward(false, composed);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (!constants[i]) results.push_back(inputs[i].grad());
        }
        return results;
    }

    const Sample& sample;
    PluginFunction function;
    std::vector<bool> hidden;
    std::vector<bool> constants;
};

std::string describe(const Sample& sample) {
    std::string text = sample.function;
    for (const Array& input : sample.inputs) text += " " + to_string(input.shape());
    return text;
}

void check_all(const Sample& sample) {
    const Subject subject(sample);
    std::vector<Array> gy;
    std::vector<Array> ggx;
    std::vector<Variable> inputs;
    for (const Array& input : sample.inputs) inputs.push_back(as_variable(input));
    for (const Variable& y : subject(inputs)) gy.push_back(any(y.shape()));
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
        if (!subject.constants[i]) ggx.push_back(any(sample.inputs[i].shape()));
    }
    if (gy.at(0).size() > 0) {
        gradient_check::Options options;
        options.eps = 1e-5;
        options.atol = 1e-7;
        options.rtol = 1e-6;
        options.no_grads = subject.constants;
        check_backward(subject, sample.inputs, gy, options);
        check_double_backward(subject, sample.inputs, gy, ggx, options);
    }
    const auto exact = subject.run(Dtype::float64, false, gy);
    const auto composed = subject.run(Dtype::float64, true, gy);
    const bool casts = sample.function == "cast";  // to float64, whatever comes
    const auto single = subject.run(casts ? Dtype::float64 : Dtype::float32, false, gy);
    const auto single_composed = subject.run(casts ? Dtype::float64 : Dtype::float32, true, gy);
    for (std::size_t i = 0; i < exact.size(); ++i) {
        REQUIRE(exact[i]);
        assert_allclose(composed.at(i), exact[i], 1e-12, 1e-12);
        CHECK(single.at(i).dtype() == (casts ? Dtype::float64 : Dtype::float32));
        assert_allclose(single[i], exact[i], 1e-5, 1e-4);
        assert_allclose(single_composed.at(i), exact[i], 1e-5, 1e-4);
    }
}

}  // namespace

TEST_CASE("gradients of first and second order") {
    for (const Sample& sample : samples()) {
        const std::string label = describe(sample);
        INFO(label);
        CHECK_NOTHROW(check_all(sample));
    }
}

TEST_CASE("functions without a sample are tried with plain numbers") {
    std::map<std::string, int> sampled;
    for (const Sample& sample : samples()) ++sampled["catena." + sample.function];
    for (const std::string& name : function_names()) {
        const catena_function& d = function_descriptor(name);
        if (sampled.contains(name) || (d.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE)) continue;
        Sample sample{name.substr(name.find('.') + 1), {}};
        for (std::uint32_t i = 0; i < d.n_inputs; ++i) sample.inputs.push_back(positive({3, 4}));
        try {
            std::vector<Variable> inputs;
            for (const Array& input : sample.inputs) inputs.push_back(as_variable(input));
            (void)Subject(sample)(inputs);
        } catch (const Error& error) {
            MESSAGE(name << ": no sample here, and plain numbers will not do: " << error.what());
            continue;
        }
        INFO(name);
        CHECK_NOTHROW(check_all(sample));
    }
}
