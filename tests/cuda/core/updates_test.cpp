// Updates of many tensors in few launches, for every kernel that has these (catena.many.draft/1): the
// bits of one call for each tensor, and the numbers of the CPU in float64.
#include "gpu.hpp"

#include <catena/abi/ext/draft/many.h>
#include <catena/capture.hpp>
#include <catena/forward_each.hpp>
#include <catena/testing/example.hpp>

#include <cmath>

using testing::Example;

namespace {

using Call = std::vector<Array>;  // the inputs

// The numbers that `index` stands for, in [low, high), at an address that is aligned or not.
Array drawn(const Shape& shape, const Example::Input& range, Dtype dtype, std::uint64_t index,
            bool aligned) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    std::uint64_t state = (index + 1) * 0x9e3779b97f4a7c15u;
    for (double& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = range.low + (range.high - range.low) * std::ldexp(double(state >> 32), -32);
    }
    const Array source = Array::from(values, shape).astype(dtype).to(gpu());
    if (aligned) return source;
    const Array array = Array::empty({shape.size() + 1}, dtype, gpu()).view(1, shape);
    array.copy_from(source);
    return array;
}

// Calls with tensors of the given sizes, the last of them not aligned. The inputs of another shape than
// the first one's in the example keep that shape.
std::vector<Call> calls_of(const Example& example, const std::vector<Dtype>& dtypes,
                           const std::vector<std::int64_t>& sizes) {
    std::vector<Call> calls;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        Call call;
        for (std::size_t i = 0; i < example.inputs.size(); ++i) {
            const Example::Input& in = example.inputs[i];
            const bool whole = in.shape == example.inputs[0].shape;
            call.push_back(in.present
                               ? drawn(whole ? Shape{sizes[k]} : Shape(std::span(in.shape)), in,
                                       dtypes[i], 16 * k + i, !whole || k + 1 < sizes.size())
                               : Array());
        }
        while (!call.back()) call.pop_back();
        calls.push_back(std::move(call));
    }
    return calls;
}
// Copies in float64 on the host.
std::vector<Call> wide(const std::vector<Call>& calls) {
    std::vector<Call> result = calls;
    for (Call& call : result)
        for (Array& x : call)
            if (x) x = x.to(Device::get("cpu")).astype(Dtype::float64).copy();
    return result;
}

// The example's attributes in step 0, 1 or 2; "t" counts the steps.
std::vector<Attribute> attributes_of(const Example& example, std::int64_t step) {
    std::vector<Attribute> result;
    for (const auto& [name, value] : example.attrs.list()) {
        if (value.kind == CATENA_ATTR_FLOAT) result.emplace_back(name, value.v.f);
        else if (value.kind == CATENA_ATTR_BOOL) result.emplace_back(name, value.v.i != 0);
        else if (std::string(name) == "t") result.emplace_back(name, value.v.i + step);
        else result.emplace_back(name, value.v.i);
    }
    return result;
}

void update_each(const PluginFunction& f, const std::vector<Call>& calls,
                 AttributeMemory* memory = nullptr) {
    forward_each(
        f, calls.size(), [&](std::size_t i) { return std::span<const Array>(calls[i]); }, memory);
}
void update_one_by_one(const PluginFunction& f, const std::vector<Call>& calls) {
    for (const Call& call : calls) f.forward(call, std::span<Array>());
}

double precision(Dtype dtype) {
    return std::ldexp(1.0, dtype == Dtype::float64   ? -52
                           : dtype == Dtype::float32 ? -23
                           : dtype == Dtype::float16 ? -10
                                                     : -7);
}
double tolerance(Dtype dtype) {
    return dtype == Dtype::float64   ? 1e-12
           : dtype == Dtype::float32 ? 2e-5
           : dtype == Dtype::float16 ? 4e-3
                                     : 2e-2;
}
// How many numbers differ from those wanted; relative to these, or to 0.25 where these are small.
std::size_t wrong(const std::vector<double>& got, const std::vector<double>& wanted, double share) {
    REQUIRE(got.size() == wanted.size());
    std::size_t n = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!(std::abs(got[i] - wanted[i]) <= share * std::max(std::abs(wanted[i]), 0.25))) ++n;
    return n;
}
// Whether the compiler may fuse other products and sums in the kernel for many tensors than in the one
// for one: a * b + c * d has two ways. nvcc does so here, and a GPU's assembler may elsewhere.
bool is_fused_differently(const catena_function& function) {
    return !emulated || std::string(function.name) == "catena.rmsprop_graves_update";
}

// Three steps of both: with attributes in memory, with those of the call, and recorded. Returns the
// number of launches that the recording has.
std::uint64_t compare(const catena_function& function, const Example& example,
                      const std::vector<Dtype>& dtypes, const std::vector<std::int64_t>& sizes) {
    const auto together = calls_of(example, dtypes, sizes),
               alone = calls_of(example, dtypes, sizes);
    const auto expected = wide(together);
    std::vector<PluginFunction> steps;
    for (const std::int64_t step : {0, 1, 2})
        steps.emplace_back(function.name, attributes_of(example, step));
    AttributeMemory memory;
    update_each(steps[0], together, &memory);
    update_each(steps[1], together);
    const Capture capture(
        Stream(gpu()), [&] { update_each(steps[0], together, &memory); }, 0);
    memory.write(steps[2]);
    capture.launch();
    for (const PluginFunction& step : steps) {
        update_one_by_one(step, alone);
        update_one_by_one(step, expected);
    }
    for (std::size_t k = 0; k < sizes.size(); ++k)
        for (std::size_t i = 0; i < together[k].size(); ++i) {
            if (!together[k][i]) continue;
            const std::string port = function.inputs[i]->name;
            CAPTURE(port);
            CAPTURE(sizes[k]);
            const auto got = together[k][i].to_vector<double>();
            const auto one = alone[k][i].to_vector<double>();
            if (is_fused_differently(function))
                CHECK(wrong(got, one, 16 * precision(dtypes[i])) == 0);
            else CHECK(wrong(got, one, 0) == 0);
            CHECK(wrong(got, expected[k][i].to_vector<double>(), tolerance(dtypes[i])) == 0);
        }
    return capture.size();
}

// The dtypes of the inputs in a row of the kernel's.
std::vector<Dtype> dtypes_of(const catena_function& function, const catena_kernel& kernel,
                             std::uint32_t row) {
    std::vector<std::string> variables;
    std::vector<std::size_t> columns;
    for (std::uint32_t i = 0; i < function.n_inputs; ++i) {
        const auto found = std::ranges::find(variables, function.inputs[i]->type_var);
        columns.push_back(static_cast<std::size_t>(found - variables.begin()));
        if (found == variables.end()) variables.emplace_back(function.inputs[i]->type_var);
    }
    std::vector<Dtype> result(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
        REQUIRE(from_abi(kernel.types[row * variables.size() + columns[i]], result[i]));
    return result;
}

// Examples whose tensors have axes: in others, a scalar for all looks like a tensor.
std::vector<Example> examples_of(const catena_function& function) {
    std::vector<Example> result;
    for (const char* const* text = function.examples; text != nullptr && *text != nullptr; ++text)
        if (Example example = testing::parse_example(function, *text);
            !example.inputs[0].shape.empty())
            result.push_back(std::move(example));
    return result;
}

// Calls body(function, dtypes) for each kernel and dtype that updates tensors together.
void for_each_update(const auto& body) {
    const auto tables = [] { return gpu().extensions(CATENA_MANY_DRAFT_1); };
    for (const std::string& name : function_names())
        for (const KernelTable& kernel : kernel_tables(name))
            if (std::ranges::any_of(tables(), [&](const void* table) {
                    return static_cast<const catena_many*>(table)->has(kernel.table) != 0;
                }))
                for (std::uint32_t row = 0; row < kernel.table->n_types; ++row)
                    body(function_descriptor(name),
                         dtypes_of(function_descriptor(name), *kernel.table, row));
}

}  // namespace

TEST_CASE("tensors that are updated together have the bits of those that are updated one by one") {
    int updates = 0;
    for_each_update([&](const catena_function& function, const std::vector<Dtype>& dtypes) {
        ++updates;
        const auto examples = examples_of(function);
        CAPTURE(std::string(function.name));
        CAPTURE(name(dtypes[0]));
        CHECK(!examples.empty());
        for (const Example& example : examples)
            CHECK(compare(function, example, dtypes, {1, 3, 0, 257, 1000, 1000}) == 1);
    });
    CHECK(updates >= 64);  // 16 functions in 4 dtypes
}

TEST_CASE("more tensors than a launch takes, and one that needs several blocks") {
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < 300; ++i) sizes.push_back(i == 150 ? 20000 : i % 5);
    for_each_update([&](const catena_function& function, const std::vector<Dtype>& dtypes) {
        if (std::string(function.name) != "catena.sgd_update") return;
        CAPTURE(name(dtypes[0]));
        const std::uint64_t launches = compare(function, examples_of(function)[0], dtypes, sizes);
        CHECK(launches > 1);
        CHECK(launches < 5);
    });
}
