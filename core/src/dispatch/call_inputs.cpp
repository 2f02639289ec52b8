// Checks of a call's inputs.
#include "dispatch/call_inputs.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

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
    const std::uint32_t least = f.min_inputs, most = f.descriptor.n_inputs;
    const std::string expected = f.variadic      ? fmt::format("{} or more", least)
                                 : least == most ? fmt::format("{}", least)
                                                 : fmt::format("{} to {}", least, most);
    throw InvalidError(
        fmt::format("[{}] inputs: expected {}, got {}", f.descriptor.name, expected, got));
}

void throw_shape(const FunctionEntry& f, const char* what, const catena_meta& meta,
                 std::span<ArrayBody* const> x) {
    const bool countable = meta.ndim >= 0 && meta.ndim <= CATENA_MAX_NDIM;
    throw ShapeError(fmt::format(
        "[{}] {}: expected a shape that an array can have, got {} ({})", f.descriptor.name, what,
        countable ? shape_to_string(meta.shape, meta.ndim) : fmt::format("{} axes", meta.ndim),
        describe_inputs(f, x)));
}

namespace {

[[noreturn]] void throw_missing(const FunctionEntry& f, std::uint32_t i) {
    throw InvalidError(
        fmt::format("[{}] {}: expected an array, got none", f.descriptor.name, f.input_name(i)));
}

[[noreturn]] void throw_elsewhere(const FunctionEntry& f, std::span<ArrayBody* const> x,
                                  std::uint32_t i) {
    std::uint32_t first = 0;
    while (!x[first]) ++first;
    throw DeviceError(fmt::format("[{}] {}: expected {} as {}, got {}", f.descriptor.name,
                                  f.input_name(i), x[first]->device->name, f.input_name(first),
                                  x[i]->device->name));
}

}  // namespace

// Local variables are faster here than members.
ForwardInputs::ForwardInputs(const FunctionEntry& f, std::span<ArrayBody* const> x) : key(f) {
    metas.resize_for_overwrite(x.size());
    tensors.resize_for_overwrite(x.size());
    const catena_meta** const all_metas = metas.data();
    const catena_tensor** const all_tensors = tensors.data();
    TypeKey types(f);
    DeviceState* found = nullptr;
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        ArrayBody* const body = x[i];
        all_metas[i] = body ? &body->meta : nullptr;
        all_tensors[i] = body ? &body->tensor : nullptr;
        if (!body) {
            if (!(f.input_flags(i) & CATENA_PORT_OPTIONAL)) throw_missing(f, i);
            continue;
        }
        if (!found) found = body->device;
        else if (body->device != found) throw_elsewhere(f, x, i);
        types.add(f.input_type[f.port(i)], body->meta, i, true);
    }
    key = types;
    device = found ? found : Device::current().state();
}

std::string TypeKey::name_of(std::uint32_t i, bool input) const {
    return input ? f_->input_name(i) : f_->descriptor.outputs[i]->name;
}

void TypeKey::unknown(const catena_meta& meta, std::uint32_t i, bool input) {
    throw DtypeError(fmt::format("[{}] {}: expected a dtype of catena, got {}", f_->descriptor.name,
                                 name_of(i, input), name(meta.dtype)));
}

void TypeKey::mismatch(int type, const catena_meta& meta, std::uint32_t i, bool input) {
    const auto of_type = [&](const std::vector<int>& types) {
        return static_cast<std::uint32_t>(std::ranges::find(types, type) - types.begin());
    };
    const std::uint32_t first = of_type(f_->input_type);
    const bool of_input = first < f_->input_type.size();
    throw DtypeError(fmt::format(
        "[{}] {}: expected {} as {}, got {}", f_->descriptor.name, name_of(i, input),
        name(static_cast<Dtype>(bits_ >> (4 * type) & 15)),
        name_of(of_input ? first : of_type(f_->output_type), of_input), name(meta.dtype)));
}

}  // namespace catena
