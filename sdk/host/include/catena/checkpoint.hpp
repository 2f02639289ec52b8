// Activation checkpointing: a call whose intermediate arrays are computed twice instead of kept.
#pragma once

#include <catena/lists.hpp>

namespace catena {

// Whether backward() runs the function of a checkpoint again: links do not update statistics then.
bool in_recomputation() noexcept;

namespace functions {

// Returns function(x...). The graph keeps the inputs and none of the arrays in between; backward()
// calls the function again, with the same random numbers and in the same mode, and adds gradients
// to the parameters that the function uses. It must return the same for the same inputs. Gradients
// of higher order throw UnsupportedError. (Chen et al., 2016.)
//     const Variable y = F::checkpoint([&](const Variable& x) { return block(x); }, x);
Variables checkpoint(std::function<Variables(const Variables&)> function, VariableList x);

template <class Function, std::convertible_to<Variable>... X>
    requires(std::convertible_to<std::invoke_result_t<const Function&, const X&...>, Variable>)
Variable checkpoint(Function function, const X&... x) {
    const auto call = [function = std::move(function)](const Variables& v) -> Variables {
        const auto spread = [&]<std::size_t... i>(std::index_sequence<i...>) {
            return Variables{function(v[i]...)};
        };
        return spread(std::index_sequence_for<X...>());
    };
    return checkpoint(std::function<Variables(const Variables&)>(call), {x...})[0];
}

}  // namespace functions
}  // namespace catena
