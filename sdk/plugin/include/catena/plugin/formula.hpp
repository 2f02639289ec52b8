// Kernels that are written as formulas and compiled at run time, for the device of the call.
// abi/ext/kernels.h describes formulas, sdk/doc/kernels.md shows examples.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <initializer_list>
#include <optional>
#include <span>

#include "catena/abi/ext/kernels.h"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// Optional parts of a formula. The strings must live as long as the formula.
struct FormulaOptions {
    const char* reduce_type = nullptr;  // reduction: type of a and b; null: the first output's type
    const char* preamble = nullptr;     // before the kernel: includes, types, functions
    const char* loop_prep = nullptr;    // elementwise: before the loop over a thread's elements
    const char* after_loop = nullptr;   // elementwise: after this loop
    const char* const* options = nullptr;  // for the compiler; NULL-terminated
};

// An argument of a call: a tensor, or a number for an input that is not raw.
class FormulaArgument {
public:
    FormulaArgument(const catena_tensor* tensor) { operand_.tensor = tensor; }
    template <class N>
        requires(std::is_arithmetic_v<N>)
    FormulaArgument(N number) {
        operand_.dtype = dtype_of<Given<N>>();
        if constexpr (std::is_floating_point_v<N>) operand_.number.f = static_cast<double>(number);
        else operand_.number.i = static_cast<std::int64_t>(number);
    }
    const catena_operand& operand() const { return operand_; }

private:
    template <class N>
    using Given =
        std::conditional_t<std::is_floating_point_v<N> || std::is_same_v<N, bool>, N,
                           std::conditional_t<(sizeof(N) > 4), std::int64_t, std::int32_t>>;
    catena_operand operand_ = {};
};

// The index range of a call, if it is not that of its plain arrays.
struct FormulaRange {
    // The axes of a reduction; negative ones count from the last.
    std::optional<std::span<const std::int32_t>> axes = {};
    bool keepdims = false;            // keeps reduced axes, with extent 1
    std::optional<Shape> shape = {};  // the index range itself, if all arrays are raw
};

// A constant of the plugin:
//     constinit const Formula cube("T x", "T y", "y = x * x * x", "cube");
//     constinit const Formula norm = Formula::reduction("T x", "T y", "x * x", "a + b",
//                                                       "y = sqrt(a)", "0", "norm");
//     ... cube.run(call.context(), call.raw(), {call.raw().x[0]}, {call.raw().y[0]});
class Formula {
public:
    // An elementwise formula: `operation` has statements for each element.
    constexpr Formula(const char* inputs, const char* outputs, const char* operation,
                      const char* name, const FormulaOptions& options = {})
        : Formula(CATENA_FORMULA_ELEMENTWISE, inputs, outputs, operation, name, options) {}

    // map: the value of an element; reduce: joins a and b; finish: computes the outputs from a;
    // identity: the neutral value, or nullptr if there is none.
    static constexpr Formula reduction(const char* inputs, const char* outputs, const char* map,
                                       const char* reduce, const char* finish, const char* identity,
                                       const char* name, const FormulaOptions& options = {}) {
        return Formula(CATENA_FORMULA_REDUCTION, inputs, outputs, map, name, options, reduce,
                       finish, identity);
    }

    // Call it in a kernel. Throws Error; CATENA_E_UNSUPPORTED if no plugin compiles formulas or the
    // device has no compiler. Reductions use the call's scratch memory, which plan() must request.
    void run(catena_ctx* ctx, const catena_call& call, std::initializer_list<FormulaArgument> x,
             std::initializer_list<catena_tensor*> y, const FormulaRange& range = {}) const {
        const Arguments arguments(*this, x);
        const catena_formula_call c = arguments.call(call, y, range);
        check_status(table().run(ctx, kernel(ctx), &c));
    }
    // Call it in plan(). Returns the bytes of scratch memory that run() needs; 0 if elementwise.
    std::uint64_t scratch_bytes(catena_ctx* ctx, const catena_call& call,
                                std::initializer_list<FormulaArgument> x,
                                std::initializer_list<catena_tensor*> y,
                                const FormulaRange& range = {}) const {
        const Arguments arguments(*this, x);
        const catena_formula_call c = arguments.call(call, y, range);
        std::array<catena_meta*, CATENA_MAX_PORTS> none{};  // infers no output: all are given
        std::uint64_t bytes = 0;
        check_status(table().infer(ctx, kernel(ctx), &c, none.data(), &bytes));
        return bytes;
    }

private:
    struct Arguments {
        Arguments(const Formula& formula, std::initializer_list<FormulaArgument> x) : n(x.size()) {
            if (n > operands.size())
                fail(CATENA_E_INVALID, formula.source_.name, "inputs", "at most 32", n);
            std::transform(x.begin(), x.end(), operands.begin(),
                           [](const FormulaArgument& a) { return a.operand(); });
        }
        catena_formula_call call(const catena_call& from, std::initializer_list<catena_tensor*> y,
                                 const FormulaRange& range) const {
            return {
                .struct_size = sizeof(catena_formula_call),
                .flags = (range.axes ? std::uint32_t{CATENA_FORMULA_AXES} : 0) |
                         (range.keepdims ? std::uint32_t{CATENA_FORMULA_KEEPDIMS} : 0) |
                         (range.shape ? std::uint32_t{CATENA_FORMULA_SHAPE} : 0),
                .x = operands.data(),
                .y = y.begin(),
                .n_x = static_cast<std::uint32_t>(n),
                .n_y = static_cast<std::uint32_t>(y.size()),
                .axes = range.axes ? range.axes->data() : nullptr,
                .shape = range.shape ? range.shape->data() : nullptr,
                .n_axes = range.axes ? static_cast<std::int32_t>(range.axes->size()) : 0,
                .ndim = range.shape ? static_cast<std::int32_t>(range.shape->size()) : 0,
                .dev = from.dev,
                .stream = from.stream,
                .scratch = from.scratch,
                .scratch_bytes = from.scratch_bytes,
            };
        }
        std::array<catena_operand, CATENA_MAX_PORTS> operands{};
        std::size_t n;
    };

    constexpr Formula(std::int32_t kind, const char* inputs, const char* outputs,
                      const char* operation, const char* name, const FormulaOptions& options,
                      const char* reduce = nullptr, const char* finish = nullptr,
                      const char* identity = nullptr)
        : source_{.struct_size = sizeof(catena_formula),
                  .kind = kind,
                  .name = name,
                  .inputs = inputs,
                  .outputs = outputs,
                  .operation = operation,
                  .preamble = options.preamble,
                  .loop_prep = options.loop_prep,
                  .after_loop = options.after_loop,
                  .reduce = reduce,
                  .finish = finish,
                  .identity = identity,
                  .reduce_type = options.reduce_type,
                  .options = options.options,
                  .flags = 0,
                  .reserved = 0} {}

    const catena_kernels& table() const {
        const void* found = *host().extensions(nullptr, CATENA_KERNELS_1);
        if (found == nullptr)
            fail(CATENA_E_UNSUPPORTED, source_.name, CATENA_KERNELS_1, "a plugin that offers it",
                 "none");
        return *static_cast<const catena_kernels*>(found);
    }
    const catena_formula_kernel* kernel(catena_ctx* ctx) const {
        const catena_formula_kernel* made = kernel_.load(std::memory_order_acquire);
        if (made != nullptr) return made;
        check_status(table().create(ctx, &source_, &made));
        kernel_.store(made, std::memory_order_release);
        return made;
    }

    catena_formula source_;
    mutable std::atomic<const catena_formula_kernel*> kernel_ = nullptr;
};

}  // namespace catena::plugin
