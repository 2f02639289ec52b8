// Selects the dtype in which a function computes if its inputs have different floating dtypes.
#include "promotion.hpp"

#include <algorithm>

namespace catena::python {

Mixing mixing_of(std::span<const std::string_view> parameters) {
    const auto has = [&](std::string_view name) {
        return std::ranges::find(parameters, name) != parameters.end();
    };
    if (has("operands") || (has("a") && has("b"))) return Mixing::widest;
    const bool has_weights = has("W") || has("gamma");
    return has_weights && parameters.front() == "x" ? Mixing::of_x : Mixing::refused;
}

std::optional<Dtype> common_floating_dtype(std::span<const Variable* const> inputs) {
    const auto width = [](Dtype dtype) {
        return dtype == Dtype::float64 ? 3 : dtype == Dtype::float32 ? 2 : 1;
    };
    std::optional<Dtype> widest;
    bool differ = false;
    for (const Variable* const input : inputs) {
        if (input == nullptr || !*input || !is_floating(input->dtype())) continue;
        const Dtype dtype = input->dtype();
        if (!widest) widest = dtype;
        if (dtype == *widest) continue;
        differ = true;
        if (width(dtype) == width(*widest)) widest = Dtype::float32;  // float16 and bfloat16
        else if (width(dtype) > width(*widest)) widest = dtype;
    }
    return differ ? widest : std::nullopt;
}

Variable cast_if_floating(const Variable& x, Dtype dtype) {
    return !is_floating(x.dtype()) || x.dtype() == dtype ? x : functions::cast(x, dtype);
}

}  // namespace catena::python
