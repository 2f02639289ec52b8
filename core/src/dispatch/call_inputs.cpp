// What is said of inputs that do not go together.
#include "dispatch/call_inputs.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

void check_present(const FunctionEntry& f, std::span<ArrayBody* const> x) {
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (!x[i] && !(f.descriptor.inputs[f.port(i)]->flags & CATENA_PORT_OPTIONAL)) {
            throw InvalidError(fmt::format("[{}] {}: expected an array, got none",
                                           f.descriptor.name, f.input_name(i)));
        }
    }
}

DeviceState& common_device(const FunctionEntry& f, std::span<ArrayBody* const> x) {
    DeviceState* device = nullptr;
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (!x[i]) continue;
        if (!device) {
            device = x[i]->device;
            first = i;
        } else if (x[i]->device != device) {
            throw DeviceError(fmt::format("[{}] {}: expected {} as {}, got {}", f.descriptor.name,
                                          f.input_name(i), device->name, f.input_name(first),
                                          x[i]->device->name));
        }
    }
    return device ? *device : *Device::current().state();
}

void TypeKey::unknown(const catena_meta& meta, std::uint32_t i, bool input) {
    throw DtypeError(fmt::format(
        "[{}] {}: expected a dtype of catena, got {}", f_.descriptor.name,
        input ? f_.input_name(i) : std::string(f_.descriptor.outputs[i]->name), name(meta.dtype)));
}

void TypeKey::mismatch(int type, const catena_meta& meta, std::uint32_t i, bool input) {
    const auto of_type = [&](const std::vector<int>& types) {
        return static_cast<std::size_t>(std::find(types.begin(), types.end(), type) -
                                        types.begin());
    };
    const std::size_t first = of_type(f_.input_type);
    throw DtypeError(fmt::format(
        "[{}] {}: expected {} as {}, got {}", f_.descriptor.name,
        input ? f_.input_name(i) : std::string(f_.descriptor.outputs[i]->name),
        name(static_cast<Dtype>(bits_ >> (4 * type) & 15)),
        first < f_.input_type.size() ? f_.input_name(static_cast<std::uint32_t>(first))
                                     : f_.descriptor.outputs[of_type(f_.output_type)]->name,
        name(meta.dtype)));
}

}  // namespace catena
