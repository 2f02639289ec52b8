// Looks for NaN in arrays of any device, around calls and steps of backward passes.
#include "diagnostics.hpp"

#include <catena/core/graph.hpp>

#include <cstring>

namespace catena {
namespace {

// By the bits: every exponent bit and one of the mantissa. No flag of the compiler changes that.
template <class Bits>
std::int64_t count(const void* data, std::int64_t n, Bits infinity) {
    const auto* bytes = static_cast<const char*>(data);
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        Bits bits;
        std::memcpy(&bits, bytes + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
        constexpr Bits no_sign = static_cast<Bits>(~Bits{0}) >> 1;
        found += (bits & no_sign) > infinity;
    }
    return found;
}

// NaNs among the elements; 0 if they are not floating.
std::int64_t count_nan(const Array& array) {
    if (!array || !is_floating(array.dtype()) || !(array.body()->block || array.body()->base))
        return 0;
    const std::int64_t n = array.size();
    if (n == 0) return 0;
    const auto copy = std::make_unique<char[]>(static_cast<std::size_t>(array.nbytes()));
    const void* const data = copy.get();
    array.to_host(array.dtype(), copy.get());
    switch (array.dtype()) {
        case Dtype::float16: return count<std::uint16_t>(data, n, 0x7c00);
        case Dtype::bfloat16: return count<std::uint16_t>(data, n, 0x7f80);
        case Dtype::float64: return count<std::uint64_t>(data, n, 0x7ff0000000000000);
        default: return count<std::uint32_t>(data, n, 0x7f800000);
    }
}

// "; the call was made at ...", or "".
std::string place(std::span<void* const> trace) {
    const std::string frames = diagnostics().to_string(trace);
    return frames.empty() ? "" : "; the call was made at" + frames;
}

}  // namespace

void CoreDiagnostics::check(const Array& array, std::string_view function, std::string_view what,
                            std::span<void* const> trace) {
    const std::int64_t n = count_nan(array);
    if (n == 0) return;
    raise<NanError>("[{}] {}: expected numbers, got NaN in {} of {} elements{}", function, what, n,
                    array.size(), place(trace));
}

void CoreDiagnostics::check_forward(const FunctionInfo& f, std::span<ArrayBody* const> x,
                                    std::span<const Array> y) {
    const catena_function& d = f.descriptor;
    std::string before;
    const auto check_port = [&](const Array& array, std::string_view port) {
        if (count_nan(array) == 0) return;
        for (std::uint32_t i = 0; i < x.size(); ++i) {
            if (!x[i] || f.is_mutated(i) || count_nan(Array(Ref(x[i]))) == 0) continue;
            before += (before.empty() ? " (NaN was in " : ", ") + f.input_name(i);
        }
        if (!before.empty()) before += " already)";
        check(array, d.name, fmt::format("forward: {}{}", port, before), stack());
    };
    for (std::uint32_t i = 0; i < y.size(); ++i) {
        if (!(d.outputs[i]->flags & CATENA_PORT_HIDDEN)) check_port(y[i], d.outputs[i]->name);
    }
    for (std::uint32_t i = 0; f.mutates && i < x.size(); ++i) {
        if (x[i] && f.is_mutated(i)) check_port(Array(Ref(x[i])), f.input_name(i));
    }
}

void CoreDiagnostics::backward(const GraphNode& node, std::span<void* const> trace,
                               const std::function<Array(std::size_t)>& gradient,
                               const std::function<void()>& step) {
    const auto check_inputs = [&](const char* when) {
        for (std::size_t i = 0; i < node.inputs().size(); ++i) {
            const std::string what =
                fmt::format("backward: gradient of {}{}", node.input_name(i), when);
            check(gradient(i), node.label(), what, trace);
        }
    };
    check_inputs(" before it is added to");
    try {
        step();
    } catch (const NanError& error) {  // in a function that the gradient is composed of
        raise<NanError>("{}\nin the backward of {}{}", error.what(), node.label(), place(trace));
    }
    check_inputs("");
}

}  // namespace catena
