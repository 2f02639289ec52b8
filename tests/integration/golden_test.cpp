// Compares every function and optimizer with stored reference values in float32 and float64, and halves with
// float64. GOLDEN_DEVICE: the device; GOLDEN_FOLDER: the folder of the values, if it was moved.
#include "golden.hpp"
#include "npz.hpp"

#include <catena/core/tables.hpp>
#include <catena/gradient_check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
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
// A case: its manifest, and its arrays, whose names begin with `prefix`.
struct Entry {
    json manifest;
    std::shared_ptr<const Npz> arrays;
    std::string prefix;
};
// Reads the cases of MANIFEST.jsonl, with a file each, and of all files that contain a manifest.
std::vector<Entry> read_cases() {
    std::vector<Entry> list;
    std::ifstream file(folder() / "MANIFEST.jsonl");
    for (std::string line; std::getline(file, line);) {
        json manifest = json::parse(line);
        const std::string name = manifest.at("case");
        list.push_back(
            {std::move(manifest), std::make_shared<Npz>(read_npz(folder() / (name + ".npz"))), ""});
    }
    for (const auto& item : std::filesystem::directory_iterator(folder())) {
        if (item.path().extension() != ".npz") continue;
        const auto arrays = std::make_shared<Npz>(read_npz(item.path()));
        if (!arrays->contains("manifest")) continue;
        const std::vector<std::byte>& text = arrays->at("manifest").bytes;
        const char* const begin = reinterpret_cast<const char*>(text.data());
        const json manifest = json::parse(begin, begin + text.size());
        for (const json& entry : manifest.at("cases"))
            list.push_back({entry, arrays, entry.at("case").get<std::string>() + "/"});
    }
    return list;
}
const std::vector<Entry>& cases() {
    static const std::vector<Entry> list = read_cases();
    return list;
}
// Reads the arrays of a case. Floating arrays are rounded to `rounded`, then converted to `dtype`.
class Values {
public:
    Values(const Entry& entry, Dtype dtype, Dtype rounded = Dtype::float64)
        : entry_(entry), dtype_(dtype), rounded_(rounded) {}

    bool has(const std::string& name) const {
        return entry_.arrays->contains(entry_.prefix + name);
    }
    // Compares an array with the values of this name. The tolerances are those of float32; float64
    // is compared with all digits of values that are stored as float64.
    void check(const Array& actual, const std::string& name, double widen = 1) const {
        const json& entry = entry_.manifest;
        const bool exact =
            dtype_ == Dtype::float64 &&
            dtype_of_descr(entry_.arrays->at(entry_.prefix + name).descr) == Dtype::float64;
        const double atol = exact ? 1e-12 : entry.at("atol").get<double>();
        const double rtol = exact ? 1e-10 : entry.at("rtol").get<double>();
        CHECK_NOTHROW(assert_allclose(actual, (*this)(name), widen * atol, widen * rtol));
    }
    Array operator()(const std::string& name) const {
        const NpyArray& npy = entry_.arrays->at(entry_.prefix + name);
        const std::optional<Dtype> stored = dtype_of_descr(npy.descr);
        REQUIRE(stored);
        const Array array = to_array(npy, *stored, Device::get("cpu"));
        return (is_floating(*stored) ? array.astype(rounded_).astype(dtype_) : array).to(device());
    }

private:
    const Entry& entry_;
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
    Case(const Entry& from, Dtype dtype, Dtype rounded = Dtype::float64)
        : entry(from.manifest), values(from, dtype, rounded) {
        if (entry.value("host", false)) {
            const auto found = golden::host_functions.find(entry.at("function"));
            REQUIRE(found != golden::host_functions.end());
            host = found->second;
        }
        for (const std::string name : entry.at("inputs")) {
            const Array value = values("in_" + name);
            inputs.emplace_back(name,
                                Variable(stays(dtype, inputs.size()) && is_floating(value.dtype())
                                             ? value.astype(Dtype::float32)
                                             : value));
        }
    }
    // For halves, statistics (type variable S) are float32.
    bool stays(Dtype dtype, std::size_t input) const {
        if (host != nullptr || item_size(dtype) >= 4) return false;
        const catena_function& f =
            function_descriptor("catena." + entry.at("function").get<std::string>());
        const auto& port = *f.inputs[std::min<std::size_t>(input, f.n_inputs - 1)];
        return port.type_var == std::string_view("S");
    }
    bool differentiable(const std::string& name) const {
        const json& names = entry.at("differentiable");
        return std::find(names.begin(), names.end(), name) != names.end();
    }
    std::vector<Variable> call() const {
        std::vector<const Variable*> pointers;
        std::vector<Variable> x;
        for (const auto& [name, variable] : inputs) {
            pointers.push_back(&variable);
            x.push_back(variable);
        }
        const json& attrs = entry.at("attrs");
        if (host != nullptr) return host(x, attrs);
        return function_of("catena." + entry.at("function").get<std::string>(), attrs)(pointers);
    }
    void check(const Array& actual, const std::string& name, double widen = 1) const {
        INFO(name);
        REQUIRE(actual);
        const Array expected = values(name);
        CHECK(actual.shape() == expected.shape());
        if (is_floating(expected.dtype())) {
            values.check(actual, name, widen);
        } else {
            CHECK(actual.dtype() == expected.dtype());
            CHECK(actual.astype(Dtype::float64).to_vector<double>() ==
                  expected.astype(Dtype::float64).to_vector<double>());
        }
    }

    const json& entry;
    Values values;
    golden::HostFunction host = nullptr;  // of a case of the host
    std::vector<std::pair<std::string, Variable>> inputs;
};

// Returns sum(y * gy), of which the stored values are the gradients. A gy may be missing.
Variable weighted(const std::vector<Variable>& y, const std::vector<Variable>& gy) {
    Variable total;
    for (std::size_t i = 0; i < gy.size(); ++i) {
        if (!gy[i]) continue;
        const Variable part = F::sum(F::mul(y.at(i), gy[i]));
        total = total ? F::add(total, part) : part;
    }
    return total;
}

// The gradients of the outputs; empty for outputs without one, such as indices.
std::vector<Variable> output_gradients(const Case& c) {
    std::vector<Variable> gy;
    for (const std::string name : c.entry.at("outputs"))
        gy.push_back(c.values.has("gy_" + name) ? Variable(c.values("gy_" + name)) : Variable());
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
    std::vector<Variable> gx, ggx;
    const std::vector<Variable> gy = output_gradients(c);
    weighted(c.call(), gy).backward(false, true);
    for (const auto& [name, variable] : c.inputs) {
        if (!c.values.has("ggx_" + name)) continue;
        gx.push_back(variable.grad_variable());
        ggx.push_back(as_variable(c.values("ggx_" + name)));
    }
    for (const auto& [name, variable] : c.inputs) variable.cleargrad();
    for (const Variable& variable : gy)
        if (variable) variable.cleargrad();
    weighted(gx, ggx).backward();
    const auto check = [&](const Variable& variable, const std::string& name) {
        if (!c.values.has(name)) return;
        const Array none = Array::zeros(variable.shape(), variable.dtype(), device());
        c.check(variable.grad() ? variable.grad() : none, name, 10);
    };
    for (const auto& [name, variable] : c.inputs) check(variable, "gg_" + name);
    for (std::size_t i = 0; i < gy.size(); ++i)
        if (gy[i]) check(gy[i], "ggy_" + c.entry.at("outputs").at(i).get<std::string>());
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
void check_half(const Entry& entry, Dtype half) {
    const Case low(entry, half), exact(entry, Dtype::float64, half);
    const auto y = low.call(), expected = exact.call();
    for (std::size_t i = 0; i < expected.size(); ++i)
        check_rounded(y.at(i).data(), expected[i].data(), half);
    if (low.entry.at("differentiable").empty()) return;
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
    Update(const Entry& from, const Values& values)
        : name("catena." + from.manifest.at("optimizer").get<std::string>() + "_update"),
          entry(from.manifest),
          inputs{values("param0"), Array()} {
        const catena_function& f = function_descriptor(name);
        for (std::uint32_t i = 2; i < f.n_inputs; ++i) {
            const bool optional = (f.inputs[i]->flags & CATENA_PORT_OPTIONAL) != 0;
            if (!optional || entry.at("attrs").value("amsgrad", false))
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
    for (const Entry& entry : cases()) {
        if (!entry.manifest.contains("function")) continue;
        for (const Dtype dtype : dtypes) {
            const std::string label = entry.manifest.at("case");
            INFO(label << " " << name(dtype));
            check(entry, dtype);
            ++checked;
        }
    }
    return checked;
}

}  // namespace

TEST_CASE("every kernel of the families is there for the device, or else a composition") {
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
        if (there.empty() && function_descriptor(function).compose) continue;
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
    const int checked = for_each_function(single_and_double, [](const Entry& entry, Dtype dtype) {
        CHECK_NOTHROW(check_first_order(Case(entry, dtype), false));
    });
    CHECK(checked >= 130);
}

TEST_CASE("functions in halves: values and gradients") {
    const int checked = for_each_function(
        halves, [](const Entry& entry, Dtype dtype) { CHECK_NOTHROW(check_half(entry, dtype)); });
    CHECK(checked >= 130);
}

TEST_CASE("functions: gradients as compositions, and second order") {
    int checked = 0;
    for_each_function(single_and_double, [&](const Entry& entry, Dtype dtype) {
        if (!entry.manifest.at("double").get<bool>()) return;
        CHECK_NOTHROW(check_first_order(Case(entry, dtype), true));
        CHECK_NOTHROW(check_second_order(Case(entry, dtype)));
        ++checked;
    });
    CHECK(checked >= 100);
}

TEST_CASE("optimizers: three updates") {
    for (const Entry& entry : cases()) {
        if (!entry.manifest.contains("optimizer")) continue;
        for (const Dtype dtype : single_and_double) {
            const std::string label = entry.manifest.at("case");
            INFO(label << " " << name(dtype));
            const Values values(entry, dtype);
            Update update(entry, values);
            for (int step = 1; step <= entry.manifest.at("steps").get<int>(); ++step) {
                const Array& param = update(step, values("grad" + std::to_string(step)));
                values.check(param, "param" + std::to_string(step));
            }
        }
    }
}
