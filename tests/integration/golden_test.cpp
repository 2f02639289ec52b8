// Compares every function and optimizer with stored reference values in float32 and float64, and halves with
// float64. GOLDEN_DEVICE: the device; GOLDEN_FOLDER: the folder of the values, if it was moved.
#include "npz.hpp"

#include <catena/catena.hpp>
#include <catena/gradient_check.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>

using namespace catena;
using gradient_check::assert_allclose;
using nlohmann::json;
namespace F = catena::functions;

namespace {

Device device() {
    const char* name = std::getenv("GOLDEN_DEVICE");
    return name == nullptr ? Device::current() : Device::get(name);
}
std::filesystem::path folder() {
    const char* name = std::getenv("GOLDEN_FOLDER");
    return name == nullptr ? GOLDEN : name;
}
std::vector<json> cases() {
    std::vector<json> list;
    std::ifstream file(folder() / "MANIFEST.jsonl");
    for (std::string line; std::getline(file, line);) list.push_back(json::parse(line));
    return list;
}
// Reads the arrays of a case. Floating arrays are rounded to `rounded`, then converted to `dtype`.
class Values {
public:
    Values(const json& entry, Dtype dtype, Dtype rounded = Dtype::float64)
        : arrays_(read_npz(folder() / (entry.at("case").get<std::string>() + ".npz"))),
          dtype_(dtype),
          rounded_(rounded) {}

    bool has(const std::string& name) const { return arrays_.contains(name); }
    Array operator()(const std::string& name) const {
        const NpyArray& npy = arrays_.at(name);
        const Shape shape{std::span(npy.shape)};
        if (npy.descr == "<i4") return make<std::int32_t>(npy, shape).to(device());
        if (npy.descr == "<i8") return make<std::int64_t>(npy, shape).to(device());
        REQUIRE(npy.descr == "<f4");
        return make<float>(npy, shape).astype(rounded_).astype(dtype_).to(device());
    }

private:
    template <class T>
    static Array make(const NpyArray& npy, const Shape& shape) {
        REQUIRE(npy.bytes.size() == static_cast<std::size_t>(shape.size()) * sizeof(T));
        const Array array = Array::empty(shape, dtype_of<T>);
        std::copy(npy.bytes.begin(), npy.bytes.end(),
                  reinterpret_cast<std::byte*>(array.host<T>().data()));
        return array;
    }

    Npz arrays_;
    Dtype dtype_, rounded_;
};

PluginFunction function_of(const std::string& function, const json& attrs) {
    std::vector<Attribute> attributes;
    for (const auto& item : attrs.items()) {
        const std::string& name = item.key();
        const json& value = item.value();
        if (value.is_boolean()) attributes.emplace_back(name, value.get<bool>());
        else if (value.is_number_integer())
            attributes.emplace_back(name, value.get<std::int64_t>());
        else if (value.is_number()) attributes.emplace_back(name, value.get<double>());
        else if (value.is_string()) attributes.emplace_back(name, value.get<std::string>());
        else attributes.emplace_back(name, value.get<std::vector<std::int64_t>>());
    }
    return PluginFunction(function, attributes);
}

struct Case {
    Case(const json& from, Dtype dtype, Dtype rounded = Dtype::float64)
        : entry(from), values(from, dtype, rounded), rtol(from.at("rtol")), atol(from.at("atol")) {
        const catena_function& f =
            function_descriptor("catena." + from.at("function").get<std::string>());
        for (const std::string name : from.at("inputs")) {
            const Array value = values("in_" + name);
            // For halves, statistics (type variable S) are float32.
            const auto& port = *f.inputs[std::min<std::size_t>(inputs.size(), f.n_inputs - 1)];
            const bool stays = item_size(dtype) < 4 && port.type_var == std::string_view("S");
            inputs.emplace_back(
                name, Variable(stays && is_floating(value.dtype()) ? value.astype(Dtype::float32)
                                                                   : value));
        }
    }
    bool differentiable(const std::string& name) const {
        const json& names = entry.at("differentiable");
        return std::find(names.begin(), names.end(), name) != names.end();
    }
    std::vector<Variable> call() const {
        std::vector<const Variable*> pointers;
        for (const auto& [name, variable] : inputs) pointers.push_back(&variable);
        return function_of("catena." + entry.at("function").get<std::string>(),
                           entry.at("attrs"))(pointers);
    }
    void check(const Array& actual, const std::string& name, double widen = 1) const {
        INFO(name);
        REQUIRE(actual);
        CHECK(actual.shape() == values(name).shape());
        CHECK_NOTHROW(assert_allclose(actual, values(name), widen * atol, widen * rtol));
    }

    const json& entry;
    Values values;
    double rtol;
    double atol;
    std::vector<std::pair<std::string, Variable>> inputs;
};

// Returns sum(y * gy) over all outputs, of which the stored values are the gradients.
Variable weighted(const std::vector<Variable>& y, const std::vector<Variable>& gy) {
    Variable total;
    for (std::size_t i = 0; i < gy.size(); ++i) {
        const Variable part = F::sum(F::mul(y.at(i), gy[i]));
        total = total ? F::add(total, part) : part;
    }
    return total;
}

std::vector<Variable> output_gradients(const Case& c) {
    std::vector<Variable> gy;
    for (const std::string name : c.entry.at("outputs")) {
        if (c.values.has("gy_" + name)) gy.push_back(as_variable(c.values("gy_" + name)));
    }
    return gy;
}

// Checks values and gradients. composed: gradients as compositions of functions, not by kernels.
void check_first_order(const Case& c, bool composed) {
    const auto y = c.call();
    const std::vector<Variable> gy = output_gradients(c);
    std::size_t i = 0;
    for (const std::string name : c.entry.at("outputs")) c.check(y.at(i++).data(), "out_" + name);
    if (c.entry.at("differentiable").empty()) return;
    weighted(y, gy).backward(false, composed);
    for (const auto& [name, variable] : c.inputs) {
        if (c.differentiable(name)) c.check(variable.grad(), "gx_" + name);
        else if (!is_floating(variable.dtype())) CHECK_FALSE(variable.grad());
    }
}

void check_second_order(const Case& c) {
    std::vector<Variable> gy, gx, ggx;
    for (const std::string name : c.entry.at("outputs")) gy.emplace_back(c.values("gy_" + name));
    weighted(c.call(), gy).backward(false, true);
    for (const auto& [name, variable] : c.inputs) {
        if (!c.values.has("ggx_" + name)) continue;
        gx.push_back(variable.grad_variable());
        ggx.push_back(as_variable(c.values("ggx_" + name)));
    }
    for (const auto& [name, variable] : c.inputs) variable.cleargrad();
    for (const Variable& variable : gy) variable.cleargrad();
    weighted(gx, ggx).backward();
    const auto check = [&](const Variable& variable, const std::string& name) {
        if (!c.values.has(name)) return;
        const Array none = Array::zeros(variable.shape(), variable.dtype(), device());
        c.check(variable.grad() ? variable.grad() : none, name, 10);
    };
    for (const auto& [name, variable] : c.inputs) check(variable, "gg_" + name);
    std::size_t i = 0;
    for (const std::string name : c.entry.at("outputs")) check(gy[i++], "ggy_" + name);
}

// Allows 8 roundings of the largest value: sums are in float32, intermediate arrays in halves.
void check_rounded(const Array& actual, const Array& expected, Dtype half) {
    const double unit = half == Dtype::float16 ? 0x1p-11 : 0x1p-8;
    double largest = 0;
    const Array wide = actual.astype(Dtype::float64);
    const Array exact = expected.astype(Dtype::float64);
    for (const double value : exact.to_vector<double>())
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    CHECK_NOTHROW(assert_allclose(wide, exact, 8 * unit * largest, 8 * unit));
}
// Compares results in a half with those in float64 for the same inputs.
void check_half(const json& entry, Dtype half) {
    const Case low(entry, half), exact(entry, Dtype::float64, half);
    const auto y = low.call(), expected = exact.call();
    for (std::size_t i = 0; i < entry.at("outputs").size(); ++i)
        check_rounded(y.at(i).data(), expected.at(i).data(), half);
    if (entry.at("differentiable").empty()) return;
    weighted(y, output_gradients(low)).backward();
    weighted(expected, output_gradients(exact)).backward();
    for (std::size_t i = 0; i < low.inputs.size(); ++i) {
        const auto& [input, variable] = low.inputs[i];
        if (!low.differentiable(input)) continue;
        INFO(input);
        check_rounded(variable.grad(), exact.inputs[i].second.grad(), half);
    }
}

// An optimizer's update with its inputs: param, grad and states, which start at zero.
struct Update {
    Update(const json& from, const Values& values)
        : name("catena." + from.at("optimizer").get<std::string>() + "_update"),
          entry(from),
          inputs{values("param0"), Array()} {
        while (inputs.size() < function_descriptor(name).n_inputs) {
            inputs.push_back(Array::zeros(inputs[0].shape(), inputs[0].dtype(), device()));
        }
    }
    const Array& operator()(std::int64_t t, const Array& grad) {
        json attrs = entry.at("attrs");
        const catena_function& f = function_descriptor(name);
        for (std::uint32_t i = 0; i < f.n_attrs; ++i)
            if (f.attrs[i]->name == std::string("t")) attrs["t"] = t;
        inputs[1] = grad;
        function_of(name, attrs).forward(inputs);
        return inputs[0];
    }

    std::string name;
    const json& entry;
    std::vector<Array> inputs;
};

constexpr Dtype single_and_double[] = {Dtype::float32, Dtype::float64};
constexpr Dtype halves[] = {Dtype::float16, Dtype::bfloat16};
// Calls check(entry, dtype) for each case of a function. Returns the number of calls.
template <class Check>
int for_each_function(std::span<const Dtype> dtypes, const Check& check) {
    int checked = 0;
    for (const json& entry : cases()) {
        if (!entry.contains("function")) continue;
        for (const Dtype dtype : dtypes) {
            const std::string label = entry.at("case");
            INFO(label << " " << name(dtype));
            check(entry, dtype);
            ++checked;
        }
    }
    return checked;
}

}  // namespace

TEST_CASE("every kernel of the families is there for the device") {
    using Rows = std::set<std::pair<int, std::vector<std::string>>>;  // phase, dtypes
    int functions = 0;
    for (const std::string& function : function_names()) {
        CAPTURE(function);
        Rows here, there;
        for (const KernelInfo& k : kernels_of(function))
            for (const auto& dtypes : k.dtypes) {
                if (k.device == device().backend()) there.emplace(k.phase, dtypes);
                if (k.device == "cpu") here.emplace(k.phase, dtypes);
            }
        for (const auto& [phase, dtypes] : here) {
            CAPTURE(phase);
            CAPTURE(dtypes.at(0));
            CHECK(there.contains({phase, dtypes}));
        }
        functions += here.empty() ? 0 : 1;
    }
    CHECK(functions > 60);
}

TEST_CASE("functions: values and gradients") {
    const int checked = for_each_function(single_and_double, [](const json& entry, Dtype dtype) {
        CHECK_NOTHROW(check_first_order(Case(entry, dtype), false));
    });
    CHECK(checked >= 130);
}

TEST_CASE("functions in halves: values and gradients") {
    const int checked = for_each_function(
        halves, [](const json& entry, Dtype dtype) { CHECK_NOTHROW(check_half(entry, dtype)); });
    CHECK(checked >= 130);
}

TEST_CASE("functions: gradients as compositions, and second order") {
    int checked = 0;
    for_each_function(single_and_double, [&](const json& entry, Dtype dtype) {
        if (!entry.at("double").get<bool>()) return;
        CHECK_NOTHROW(check_first_order(Case(entry, dtype), true));
        CHECK_NOTHROW(check_second_order(Case(entry, dtype)));
        ++checked;
    });
    CHECK(checked >= 100);
}

TEST_CASE("optimizers: three updates") {
    for (const json& entry : cases()) {
        if (!entry.contains("optimizer")) continue;
        for (const Dtype dtype : single_and_double) {
            const std::string label = entry.at("case");
            INFO(label << " " << name(dtype));
            const Values values(entry, dtype);
            Update update(entry, values);
            for (int step = 1; step <= entry.at("steps").get<int>(); ++step) {
                const Array& param = update(step, values("grad" + std::to_string(step)));
                CHECK_NOTHROW(assert_allclose(param, values("param" + std::to_string(step)),
                                              entry.at("atol"), entry.at("rtol")));
            }
        }
    }
}
