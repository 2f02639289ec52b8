// Says the one thing that is wrong where there is one.
#include "dispatch/dispatch_errors.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits.hpp>

#include <algorithm>

namespace catena {
namespace {

using Row = std::vector<std::string>;

// "a", "a or b", "a, b or c".
std::string any_of(const Row& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
    }
    return text;
}

// The first tensor of a type variable.
std::string port_of(const FunctionEntry& f, int type, std::span<ArrayBody* const> x) {
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (x[i] && f.input_type[f.port(i)] == type) return f.input_name(i);
    }
    const auto y = std::find(f.output_type.begin(), f.output_type.end(), type);
    return y == f.output_type.end() ? "dtype"
                                    : f.descriptor.outputs[y - f.output_type.begin()]->name;
}

// Throws if the dtype of one type variable is in no row, naming those that go with the others.
void check_dtypes(const FunctionEntry& f, std::span<ArrayBody* const> x,
                  const std::vector<Row>& rows, const Row& wanted) {
    for (std::size_t t = 0; t < wanted.size() && !rows.empty(); ++t) {
        Row all, fitting;
        for (const Row& row : rows) {
            const auto add = [&](Row& list) {
                if (std::find(list.begin(), list.end(), row[t]) == list.end())
                    list.push_back(row[t]);
            };
            add(all);
            Row same = row;
            same[t] = wanted[t];
            if (same == wanted) add(fitting);
        }
        if (std::find(all.begin(), all.end(), wanted[t]) != all.end()) continue;
        Row& expected = fitting.empty() ? all : fitting;
        sort_dtypes(expected);
        throw DtypeError(fmt::format("[{}] {}: expected {}, got {}{}", f.descriptor.name,
                                     port_of(f, static_cast<int>(t), x), any_of(expected),
                                     wanted[t], wanted[t] == "bool" ? ": cast it" : ""));
    }
}

}  // namespace

std::string describe_inputs(const FunctionEntry& f, std::span<ArrayBody* const> x) {
    std::string text;
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (!x[i]) continue;
        text +=
            fmt::format("{}{} {} {}", text.empty() ? "" : ", ", f.input_name(i),
                        shape_to_string(x[i]->meta.shape, x[i]->meta.ndim), name(x[i]->meta.dtype));
    }
    return text.empty() ? "no inputs" : text;
}

void throw_arity(const FunctionEntry& f, std::size_t got) {
    const std::string most = f.variadic ? "or more" : fmt::format("to {}", f.descriptor.n_inputs);
    throw InvalidError(
        fmt::format("[{}] inputs: expected {}{}, got {}", f.descriptor.name, f.min_inputs,
                    !f.variadic && f.min_inputs == f.descriptor.n_inputs ? "" : " " + most, got));
}

void throw_shape(const FunctionEntry& f, const char* what, const catena_meta& meta,
                 std::span<ArrayBody* const> x) {
    const bool countable = meta.ndim >= 0 && meta.ndim <= CATENA_MAX_NDIM;
    throw ShapeError(fmt::format(
        "[{}] {}: expected a shape that an array can have, got {} ({})", f.descriptor.name, what,
        countable ? shape_to_string(meta.shape, meta.ndim) : fmt::format("{} axes", meta.ndim),
        describe_inputs(f, x)));
}

void throw_saved(const FunctionEntry& f, const catena_meta& meta) {
    throw DtypeError(fmt::format("[{}] saved: expected a dtype of 8 to 64 bits, got {}",
                                 f.descriptor.name, name(meta.dtype)));
}

void throw_scratch(const catena_function& f, std::uint64_t bytes) {
    throw MemoryError(fmt::format("[{}] plan(): scratch_bytes: expected at most {}, got {}", f.name,
                                  largest_memory, bytes));
}

void throw_no_kernel(const FunctionEntry& f, std::span<ArrayBody* const> x,
                     const DeviceState& device, std::uint64_t key, bool declined) {
    Row wanted;
    for (int t = 0; t < f.type_vars; ++t)
        wanted.emplace_back(name(static_cast<Dtype>(key >> (4 * t) & 15)));
    std::vector<Row> rows;
    // Variants and instruction sets of a plugin are one entry.
    std::vector<std::vector<KernelInfo>> places;
    for (KernelInfo& k : kernels_of(f.descriptor.name)) {
        if (k.phase != CATENA_PHASE_FORWARD) continue;
        if (k.device == device.backend.table->name)
            rows.insert(rows.end(), k.dtypes.begin(), k.dtypes.end());
        const auto place = std::find_if(places.begin(), places.end(), [&](const auto& p) {
            return p[0].device == k.device && p[0].plugin == k.plugin;
        });
        if (place == places.end()) places.push_back({std::move(k)});
        else place->push_back(std::move(k));
    }
    if (!declined) check_dtypes(f, x, rows, wanted);
    std::string have;
    for (const auto& place : places) {
        Row needs;  // what every kernel of it asks of the device
        for (const KernelInfo& k : place) needs.push_back(k.isa);
        const bool anywhere = std::find(needs.begin(), needs.end(), "") != needs.end();
        have += fmt::format("\n  {} {}: {}{}", place[0].device, place[0].plugin,
                            dtypes_to_string(f.descriptor, place),
                            anywhere ? "" : fmt::format(" (needs {})", any_of(needs)));
    }
    // A kernel that was meant for this function has a name with a slip in it.
    for (const KernelsWithoutFunction& k : Registry::get().kernels_without_function()) {
        if (k.guess == f.descriptor.name) {
            have += fmt::format("\n  {} has kernels for {}, a function that no plugin has",
                                k.plugin, k.function);
        }
    }
    if (rows.empty() && !places.empty()) {
        have += fmt::format("\n  CATENA_FALLBACK={} or using_fallback runs such calls there",
                            places[0][0].device);
    }
    throw UnsupportedError(fmt::format(
        "[{}] kernel: expected one for {} on {}, got none{}; there is:{}", f.descriptor.name,
        describe_inputs(f, x), device.name, declined ? " whose supports() says yes" : "",
        have.empty() ? " nothing" : have));
}

}  // namespace catena
