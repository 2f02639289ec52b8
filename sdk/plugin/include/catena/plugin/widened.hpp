// Two-byte dtypes: every kernel for float32 also serves float16 and bfloat16. Tensors are converted
// to float32 in scratch memory, the kernel runs on the copies, and results are rounded.
//
// Functions need no code for this. In each of its dtype rows, the first float becomes half
// precision. Other types do not change, so statistics with their own type variable stay float32
// (Inference::wide() is their dtype). `static constexpr unsigned widened = 0b101;` selects other
// type variables by their position in the row; 0 selects none. A function that has rows with half
// precision itself is not changed.
#pragma once

#include "catena/plugin/half.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin::detail {

using Run = decltype(catena_kernel::run);
using Plan = decltype(catena_kernel::plan);

// Runs or plans a float32 kernel on copies of the call's halves. isa's instructions convert them.
catena_status run_on_copies(catena_ctx* ctx, const catena_call& call, Run inner, Isa isa) noexcept;
catena_status plan_on_copies(catena_ctx* ctx, const catena_call& call, catena_plan& plan,
                             Plan inner) noexcept;

template <Run inner, Isa isa>
catena_status CATENA_CALL run_widened(catena_ctx* ctx, const catena_call* call) noexcept {
    return run_on_copies(ctx, *call, inner, isa);
}
template <Plan inner>
catena_status CATENA_CALL plan_widened(catena_ctx* ctx, const catena_call* call,
                                       catena_plan* plan) noexcept {
    return plan_on_copies(ctx, *call, *plan, inner);
}

}  // namespace catena::plugin::detail
