// Tests every plugin function in the core by its examples: gradients of three orders against finite
// differences in float64, kernels against compositions, float32 against float64.
#include <catena/catena.hpp>
#include <catena/gradient_check.hpp>
#include <catena/testing/example.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>

namespace F = catena::functions;
using namespace catena;
using gradient_check::assert_allclose;
using gradient_check::VariableFunction;
using testing::Example;

namespace {

std::mt19937 engine(1);

// Returns the elements of the example, integers in [low, high] (0 or 1 without a range), or reals that
// float32 represents exactly.
Array draw(const Example::Input& in, Dtype dtype) {
    const Shape shape(in.shape);
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    std::uniform_real_distribution<double> real(in.low, in.high);
    std::uniform_int_distribution<int> whole(in.ranged ? static_cast<int>(in.low) : 0,
                                             in.ranged ? static_cast<int>(in.high) : 1);
    for (double& v : values)
        v = is_floating(dtype) ? static_cast<float>(real(engine)) : double(whole(engine));
    if (in.elements.size() == values.size()) std::ranges::copy(in.elements, values.begin());
    return Array::from(values, shape).astype(dtype);
}
Array any(const Shape& shape) { return draw({true, {shape.begin(), shape.end()}}, Dtype::float64); }

std::vector<Attribute> attributes_of(const Example& example) {
    std::vector<Attribute> list;
    for (const catena_named_value& a : example.attrs.list()) {
        const catena_value& value = a.value;
        const auto add = [&](auto v) { list.emplace_back(a.name, v); };
        if (value.kind == CATENA_ATTR_INT) add(value.v.i);
        else if (value.kind == CATENA_ATTR_FLOAT) add(value.v.f);
        else if (value.kind == CATENA_ATTR_BOOL) add(value.v.i != 0);
        else if (value.kind == CATENA_ATTR_STRING) add(value.v.s);
        else if (value.kind == CATENA_ATTR_INTS)
            add(std::vector<std::int64_t>(value.v.ints, value.v.ints + value.n));
        else if (value.kind == CATENA_ATTR_FLOATS)
            add(std::vector<double>(value.v.floats, value.v.floats + value.n));
        else if (Dtype dtype{}; from_abi(value.v.dtype, dtype)) add(dtype);
    }
    return list;
}

// An example as a function of its inputs, with the same attributes and random numbers in each call.
class Subject {
public:
    Subject(const catena_function& f, const Example& example)
        : f_(f), example_(example), function_(f.name, attributes_of(example)) {
        for (std::uint32_t i = 0; i < f.n_attrs; ++i)
            chooses_ = chooses_ || f.attrs[i]->kind == CATENA_ATTR_DTYPE;
        find_dtypes();
        for (std::size_t i = 0; i < inputs.size(); ++i)
            constants.push_back(!is_floating(inputs[i].dtype()) ||
                                (flags(i) & CATENA_PORT_NON_DIFFERENTIABLE) != 0);
        for (const Variable& y : (*this)(variables(inputs))) gy.push_back(any(y.shape()));
    }

    std::vector<Variable> operator()(const std::vector<Variable>& given) const {
        seed(7);
        std::vector<const Variable*> pointers;
        auto next = given.begin();
        for (const Example::Input& in : example_.inputs)
            pointers.push_back(in.present ? &*next++ : nullptr);
        std::vector<Variable> y;
        const std::vector<Variable> all = function_(pointers);
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((f_.outputs[i]->flags & (CATENA_PORT_HIDDEN | CATENA_PORT_NON_DIFFERENTIABLE)) == 0)
                y.push_back(all[i]);
        return y;
    }
    // Returns the gradients of sum(gy * y) for the inputs, as a function of the inputs and gy.
    std::vector<Variable> gradient(const std::vector<Variable>& given) const {
        const auto gy_begin = given.begin() + static_cast<std::ptrdiff_t>(inputs.size());
        const std::vector<Variable> x(given.begin(), gy_begin);
        Variable total;
        auto next = gy_begin;
        for (const Variable& y : (*this)(x)) {
            const Variable product = F::sum(y * *next++);
            total = total.node_ref() ? total + product : product;
        }
        for (const Variable& v : given) v.cleargrad();
        total.backward(false, true);
        std::vector<Variable> gx;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const Variable g = x[i].grad_variable();
            if (!constants[i])
                gx.push_back(g.node_ref() ? g
                                          : as_variable(Array::zeros(x[i].shape(), x[i].dtype())));
        }
        for (const Variable& v : given) v.cleargrad();
        return gx;
    }
    // Returns the outputs, then the gradients, with floating inputs converted to a dtype.
    std::vector<Array> run(Dtype dtype, bool composed) const {
        std::vector<Variable> x;
        for (const Array& a : inputs)
            x.emplace_back(is_floating(a.dtype()) && !chooses_ ? a.astype(dtype) : a);
        const std::vector<Variable> y = (*this)(x);
        for (std::size_t i = 0; i < y.size(); ++i) y[i].set_grad(gy[i].astype(y[i].dtype()));
        y.at(0).backward(false, composed);
        std::vector<Array> results;
        for (const Variable& output : y) results.push_back(output.data());
        for (std::size_t i = 0; i < x.size(); ++i)
            if (!constants[i])  // an empty result gives no gradient
                results.push_back(x[i].grad() || y[0].size() > 0
                                      ? x[i].grad()
                                      : Array::zeros(x[i].shape(), x[i].dtype()));
        return results;
    }

    std::vector<Array> inputs;  // float64 or integers; missing inputs are left out
    std::vector<bool> constants;
    std::vector<Array> gy;

private:
    static std::vector<Variable> variables(const std::vector<Array>& arrays) {
        std::vector<Variable> list;
        for (const Array& a : arrays) list.push_back(as_variable(a));
        return list;
    }
    std::uint32_t flags(std::size_t present) const {
        for (std::size_t port = 0;; ++port)
            if (example_.inputs.at(port).present && present-- == 0)
                return f_.inputs[std::min<std::size_t>(port, f_.n_inputs - 1)]->flags;
    }
    // Finds dtypes for the inputs' type variables that the function accepts, float64 first.
    void find_dtypes() {
        static constexpr Dtype dtypes[] = {Dtype::float64, Dtype::int32, Dtype::uint8, Dtype::int64,
                                           Dtype::bool8};
        std::vector<std::string> vars;
        for (std::uint32_t i = 0; i < f_.n_inputs; ++i)
            if (std::find(vars.begin(), vars.end(), f_.inputs[i]->type_var) == vars.end())
                vars.emplace_back(f_.inputs[i]->type_var);
        std::string refused;
        // Three bits of a choice are the dtype of a variable.
        for (std::size_t choice = 0; choice >> 3 * vars.size() == 0; ++choice) {
            const auto dtype_of_var = [&](std::size_t var) { return choice >> 3 * var & 7; };
            bool valid = true;
            for (std::size_t var = 0; var < vars.size(); ++var)
                valid = valid && dtype_of_var(var) < std::size(dtypes);
            if (!valid) continue;
            inputs.clear();
            for (std::size_t i = 0; i < example_.inputs.size(); ++i) {
                const auto port = std::min<std::size_t>(i, f_.n_inputs - 1);
                const auto var = std::find(vars.begin(), vars.end(), f_.inputs[port]->type_var);
                if (example_.inputs[i].present)
                    inputs.push_back(
                        draw(example_.inputs[i],
                             dtypes[dtype_of_var(static_cast<std::size_t>(var - vars.begin()))]));
            }
            try {
                (void)(*this)(variables(inputs));
                return;
            } catch (const Error& error) {
                refused += std::string(error.what()) + "\n";
            }
        }
        throw InvalidError("no dtypes will do:\n" + refused);
    }

    const catena_function& f_;
    const Example example_;
    PluginFunction function_;
    bool chooses_ = false;  // an attribute sets the output dtype
};

void check_orders(const Subject& f) {
    gradient_check::Options options;
    options.eps = 1e-5;
    options.atol = 1e-7;
    options.rtol = 1e-6;
    options.no_grads = f.constants;
    check_backward(f, f.inputs, f.gy, options);
    std::vector<Array> ggx;
    for (std::size_t i = 0; i < f.inputs.size(); ++i)
        if (!f.constants[i]) ggx.push_back(any(f.inputs[i].shape()));
    check_double_backward(f, f.inputs, f.gy, ggx, options);

    std::vector<Array> all = f.inputs;
    all.insert(all.end(), f.gy.begin(), f.gy.end());
    std::vector<Array> gggx;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (i >= f.inputs.size() || !f.constants[i]) gggx.push_back(any(all[i].shape()));
    options.no_grads.resize(all.size());
    check_double_backward([&](const std::vector<Variable>& v) { return f.gradient(v); }, all, ggx,
                          gggx, options);
}

void check_kernels(const Subject& f) {
    const auto exact = f.run(Dtype::float64, false);
    const auto composed = f.run(Dtype::float64, true);
    const auto single = f.run(Dtype::float32, false);
    const auto single_composed = f.run(Dtype::float32, true);
    for (std::size_t i = 0; i < exact.size(); ++i) {
        REQUIRE(exact[i]);
        assert_allclose(composed.at(i), exact[i], 1e-12, 1e-12);
        assert_allclose(single.at(i), exact[i], 1e-5, 1e-4);
        assert_allclose(single_composed.at(i), exact[i], 1e-5, 1e-4);
    }
}

// Checks the call with empty inputs, if the function accepts it.
void check_empty(const catena_function& f, Example example) {
    for (Example::Input& in : example.inputs)
        if (!in.shape.empty()) in.shape[0] = 0;
    std::optional<Subject> subject;
    try {
        subject.emplace(f, example);
    } catch (const InvalidError&) {
        return;
    }
    check_kernels(*subject);
}

}  // namespace

TEST_CASE("every function by its examples") {
    int checked = 0;
    for (const std::string& name : function_names()) {
        const catena_function& f = function_descriptor(name);
        if ((f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0) continue;
        CHECK_MESSAGE((f.examples != nullptr && f.examples[0] != nullptr), name);
        for (std::size_t i = 0; f.examples != nullptr && f.examples[i] != nullptr; ++i) {
            const std::string call = f.examples[i];
            INFO(name << " " << call);
            const Example example = testing::parse_example(f, f.examples[i]);
            CHECK_NOTHROW(check_orders(Subject(f, example)));
            CHECK_NOTHROW(check_kernels(Subject(f, example)));
            CHECK_NOTHROW(check_empty(f, example));
            ++checked;
        }
    }
    CHECK(checked > 100);
}
