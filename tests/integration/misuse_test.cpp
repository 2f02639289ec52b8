// Tests of invalid calls: errors name the function and the argument, and nothing crashes.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include <random>

namespace F = catena::functions;
using namespace catena;

namespace {

template <class Error>
std::string what(const auto& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

// Generates random calls, most of them invalid.
class Fuzzer {
public:
    explicit Fuzzer(unsigned start) : engine_(start) {}

    int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
    std::int64_t number() {
        constexpr std::int64_t list[] = {-3, -2, -1, 0, 1, 2, 3, 4, 6};
        return list[below(9)];
    }
    Shape shape() {
        static const Shape usual[] = {
            {},     {1}, {4},       {2, 3},       {3, 2}, {3, 4}, {4, 1},    {2, 3, 4},
            {2, 0}, {0}, {1, 1, 3}, {2, 3, 2, 2}, {4, 4}, {3, 3}, {2, 3, 1}, {1, 2, 1, 2, 1}};
        return usual[below(16)];
    }
    Array array(Dtype dtype) {
        const Shape s = shape();
        std::vector<double> values(static_cast<std::size_t>(s.size()));
        for (double& value : values) {
            value = is_floating(dtype)
                        ? std::uniform_real_distribution<double>(-2, 2)(engine_)
                        : static_cast<double>(below(6) - (dtype == Dtype::uint8 ? 0 : 2));
        }
        return Array::from(values, s).astype(dtype);
    }
    Dtype dtype() {
        constexpr Dtype list[] = {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::int64,
                                  Dtype::uint8,   Dtype::float16, Dtype::bool8};
        return list[below(7)];
    }
    AttributeValue value(const catena_attr_spec& spec) {
        switch (below(12) ? spec.kind : 1 + below(7)) {  // sometimes a wrong kind
            case CATENA_ATTR_INT: return number();
            case CATENA_ATTR_FLOAT: return static_cast<double>(number()) / 2;
            case CATENA_ATTR_BOOL: return below(2) == 1;
            case CATENA_ATTR_STRING:
                if (spec.choices && below(4)) return std::string(spec.choices[0]);
                return std::string("nonsense");
            case CATENA_ATTR_INTS: {
                std::vector<std::int64_t> list(static_cast<std::size_t>(below(4)));
                for (auto& item : list) item = number();
                return list;
            }
            case CATENA_ATTR_FLOATS:
                return std::vector<double>(static_cast<std::size_t>(below(3)), 0.5);
            default: return dtype();
        }
    }

private:
    std::mt19937 engine_;
};

}  // namespace

TEST_CASE("the six kinds of mistakes") {
    const Variable x(Array::ones({5, 3})), W(Array::ones({2, 4}));
    CHECK(what<ShapeError>([&] {
              (void)F::linear(x, W);
          }).find("[catena.linear] x.shape[1:]: expected 4") == 0);
    const Variable d(Array::ones({5, 3}, Dtype::float64));
    CHECK(what<DtypeError>([&] { (void)F::add(x, d); }) ==
          "[catena.add] x1: expected float32 as x0, got float64");
    const Variable i(Array::ones({5, 3}, Dtype::int32));
    CHECK(what<DtypeError>([&] { (void)F::relu(i); }) ==
          "[catena.relu] x: expected float16, bfloat16, float32 or float64, got int32");
    CHECK(what<DtypeError>([&] { (void)F::relu(x > 0); }).ends_with(", got bool: cast it"));
    const auto devices = Device::list();
    if (std::find(devices.begin(), devices.end(), "cpu:1") != devices.end()) {
        const Variable far(x.data().to(Device::get("cpu:1")));
        CHECK(what<DeviceError>([&] { (void)F::add(x, far); }) ==
              "[catena.add] x1: expected cpu:0 as x0, got cpu:1");
    }
    CHECK(what<InvalidError>([&] { (void)F::dropout(x, 1.5); }) ==
          "[catena.dropout] attribute 'ratio': expected 0 to 1, got 1.5");
    const Variable v(x.data(), true);
    CHECK(what<GraphError>([&] {
              (void)F::add(x, v);
          }).find("[catena.add] x0: expected a volatile variable") == 0);
    CHECK(what<GraphError>([&] {
              F::relu(x).backward();
          }).find("[backward] grad of the start: expected one to be set for shape (5, 3)") == 0);
    const Variable t(Array::full({5}, 3, Dtype::int32));  // valid classes are 0 to 2
    CHECK(what<ValueError>([&] {
              (void)F::softmax_cross_entropy(x, t);
          }).find("[catena.softmax_cross_entropy] t") == 0);
}

TEST_CASE("senseless calls end in an error that names the function, or in a result") {
    Fuzzer fuzz(2026);
    int errors = 0;
    int results = 0;
    for (const std::string& name : function_names()) {
        const catena_function& d = function_descriptor(name);
        for (int attempt = 0; attempt < 400; ++attempt) {
            const Dtype common = fuzz.below(3) ? Dtype::float32 : fuzz.dtype();
            std::vector<Variable> inputs;
            const int n = fuzz.below(15) ? static_cast<int>(d.n_inputs) : fuzz.below(5);
            for (int i = 0; i < n; ++i) {
                const bool labels =
                    i < static_cast<int>(d.n_inputs) &&
                    std::string_view(d.inputs[i]->type_var) != d.inputs[0]->type_var;
                const Dtype dtype = !fuzz.below(10) ? fuzz.dtype() : labels ? Dtype::int32 : common;
                inputs.emplace_back(fuzz.below(20) ? Variable(fuzz.array(dtype)) : Variable());
            }
            std::vector<Attribute> attributes;
            for (std::uint32_t i = 0; i < d.n_attrs; ++i) {
                const bool required = d.attrs[i]->flags & CATENA_ATTR_REQUIRED;
                if (fuzz.below(30) && (required || fuzz.below(2))) {
                    attributes.emplace_back(d.attrs[i]->name, fuzz.value(*d.attrs[i]));
                }
            }
            std::string call = name;
            for (const Variable& input : inputs) {
                call += input ? " " + std::string(to_string(input.shape())) + " " +
                                    std::string(catena::name(input.dtype()))
                              : std::string(" none");
            }
            INFO(call);
            std::vector<Variable> y;
            try {
                std::vector<const Variable*> pointers;
                for (const Variable& input : inputs) pointers.push_back(&input);
                y = PluginFunction(name, attributes)(pointers);
                ++results;
            } catch (const Error& error) {
                ++errors;
                const std::string text = error.what();
                INFO(text);
                CHECK(text.find("[" + name + "]") == 0);
                continue;
            }
            if (y.empty() || !y[0].creator()) continue;
            for (const bool composed : {false, true}) {
                for (const Variable& input : inputs) {
                    if (input) input.cleargrad();  // each pass starts without gradients
                }
                y[0].set_grad(Array::ones(y[0].shape(), y[0].dtype(), y[0].device()));
                CHECK_NOTHROW(y[0].backward(false, composed));
            }
            for (const Variable& input : inputs) {
                if (input && input.grad()) CHECK(input.grad().shape() == input.shape());
            }
        }
    }
    CHECK(errors > 1000);
    CHECK(results > 1000);
}
