// FormulaKernel: creates kernels from formulas, and calls them through the extension's table.
#include "../support.hpp"

#include <catena/reduction.hpp>

#include <catena/abi/ext/compiled.h>
#include <catena/abi/ext/kernels.h>
#include <catena/loader/plugins.hpp>

namespace catena {
namespace {

constexpr std::size_t max_arguments = CATENA_MAX_PORTS;

const void* need_extension(const char* id, const char* what) {
    if (const void* found = extension(id)) return found;
    fail<PluginError>("no plugin {} ({})\n{}", what, id, to_string(plugin_report()));
}
const catena_kernels& table() {
    return *static_cast<const catena_kernels*>(
        need_extension(CATENA_KERNELS_1, "has kernels from formulas"));
}

const char* or_null(const char* text) { return text && *text ? text : nullptr; }

}  // namespace

FormulaKernel::FormulaKernel(const char* inputs, const char* outputs, const char* operation,
                             const char* name, const ElementwiseOptions& options)
    : table_(&table()), name_(name ? name : "") {
    catena_formula formula{};
    formula.kind = CATENA_FORMULA_ELEMENTWISE;
    formula.name = name;
    formula.inputs = inputs;
    formula.outputs = outputs;
    formula.operation = operation;
    formula.preamble = or_null(options.preamble.c_str());
    formula.loop_prep = or_null(options.loop_prep.c_str());
    formula.after_loop = or_null(options.after_loop.c_str());
    create(formula, options.options, options.keep);
}

FormulaKernel::FormulaKernel(const char* inputs, const char* outputs, const char* map,
                             const char* reduce, const char* finish, const char* identity,
                             const char* name, const ReductionOptions& options)
    : table_(&table()), name_(name ? name : "") {
    catena_formula formula{};
    formula.kind = CATENA_FORMULA_REDUCTION;
    formula.name = name;
    formula.inputs = inputs;
    formula.outputs = outputs;
    formula.operation = map;
    formula.reduce = reduce;
    formula.finish = or_null(finish);
    formula.identity = or_null(identity);
    formula.reduce_type = or_null(options.reduce_type.c_str());
    formula.preamble = or_null(options.preamble.c_str());
    create(formula, options.options, options.keep);
}

void FormulaKernel::create(catena_formula& formula, const std::vector<std::string>& options,
                           bool keep) {
    std::vector<const char*> list;
    for (const std::string& option : options) list.push_back(option.c_str());
    list.push_back(nullptr);
    formula.struct_size = sizeof(catena_formula);
    formula.options = list.data();
    if (keep) formula.flags |= CATENA_FORMULA_KEEP_SOURCE;
    ExtensionCall call;
    call.check(table_->create(call.context(), &formula, &kernel_), name());
    std::uint32_t n_x = 0, n_y = 0;
    table_->arity(kernel_, &n_x, &n_y);
    n_x_ = n_x, n_y_ = n_y;
    for (std::uint32_t i = 0; i < n_x; ++i) {
        if (table_->writes(kernel_, i)) writes_ |= 1u << i;
    }
}

void FormulaKernel::expect_outputs(std::size_t n, const char* said) const {
    if (n == n_y_) return;
    fail<InvalidError>("[{}] outputs: expected {}, as {}<{}>() says, got {}", name(), n, said, n,
                       n_y_);
}

std::vector<Array> FormulaKernel::call(std::span<const KernelArgument> arguments) const {
    std::vector<Array> y(n_y_);
    run(arguments, y.data());
    return y;
}

void FormulaKernel::run(std::span<const KernelArgument> arguments, Array* y) const {
    catena_formula_call call{};
    call.struct_size = sizeof(call);
    const KernelArgument* values[max_arguments];
    std::size_t n = 0;
    for (const KernelArgument& a : arguments) {
        if (a.over_) {
            call.flags |= CATENA_FORMULA_SHAPE;
            call.shape = a.over_->shape.data();
            call.ndim = a.over_->shape.ndim();
        } else if (a.along_) {
            call.flags |= CATENA_FORMULA_AXES;
            if (a.along_->keepdims) call.flags |= CATENA_FORMULA_KEEPDIMS;
            call.axes = a.along_->axes.data();
            call.n_axes = static_cast<std::int32_t>(a.along_->axes.size());
        } else if (n < max_arguments) {
            values[n++] = &a;
        }
    }
    const bool given = n_y_ != 0 && n == n_x_ + n_y_;
    if (n != n_x_ && !given)
        fail<InvalidError>(
            "[{}] arguments: expected {}{}, got {}", name(), n_x_,
            n_y_ ? fmt::format(", or {} with arrays for the outputs", n_x_ + n_y_) : "", n);
    Device device;
    for (std::size_t i = 0; i < n; ++i) {
        if (!values[i]->array_) continue;
        if (!*values[i]->array_)
            fail<InvalidError>(
                "[{}] argument {}: expected an array or a number, got an empty handle", name(), i);
        const Device here = values[i]->array_->device();
        if (device && here != device)
            fail<DeviceError>("[{}] argument {}: expected {} as the first array, got {}", name(), i,
                              device.name(), here.name());
        device = here;
    }
    if (!device) device = Device::current();

    ExtensionCall extension(device);
    catena_operand x[max_arguments];
    catena_tensor* tensors[max_arguments] = {};
    for (std::size_t i = 0; i < n_x_; ++i) {
        const KernelArgument& a = *values[i];
        x[i] = {};
        if (a.array_) {
            x[i].tensor =
                writes_ >> i & 1 ? extension.writes(*a.array_) : extension.reads(*a.array_);
            continue;
        }
        x[i].dtype = to_abi(a.dtype_);
        if (is_floating(a.dtype_)) x[i].number.f = a.float_;
        else x[i].number.i = a.int_;
    }
    for (std::size_t k = 0; given && k < n_y_; ++k) {
        const KernelArgument& a = *values[n_x_ + k];
        if (!a.array_)
            fail<InvalidError>("[{}] argument {}: expected an array for the output, got a number",
                               name(), n_x_ + k);
        y[k] = *a.array_;
        tensors[k] = extension.writes(y[k]);
    }
    call.x = x;
    call.y = tensors;
    call.n_x = static_cast<std::uint32_t>(n_x_);
    call.n_y = static_cast<std::uint32_t>(n_y_);
    call.dev = extension.dev();
    call.stream = extension.stream();
    catena_meta metas[max_arguments];
    catena_meta* pointers[max_arguments];
    for (std::size_t k = 0; k < n_y_; ++k) {
        metas[k].struct_size = sizeof(catena_meta);
        pointers[k] = &metas[k];
    }
    std::uint64_t scratch_bytes = 0;
    extension.check(table_->infer(extension.context(), kernel_, &call, pointers, &scratch_bytes),
                    name());
    for (std::size_t k = 0; k < n_y_ && !given; ++k) {
        Dtype dtype{};
        if (metas[k].ndim < 0 || metas[k].ndim > CATENA_MAX_NDIM ||
            !from_abi(metas[k].dtype, dtype))
            fail<InvalidError>(
                "[{}] output {}: expected 0 to {} axes and a dtype of catena, got {} axes and {}",
                name(), k, +CATENA_MAX_NDIM, metas[k].ndim, catena::name(metas[k].dtype));
        const std::span extents(metas[k].shape, static_cast<std::size_t>(metas[k].ndim));
        y[k] = Array::empty(Shape(extents), dtype, device);
        tensors[k] = extension.writes(y[k]);
    }
    Array scratch;
    if (scratch_bytes != 0) {
        scratch = Array::empty({static_cast<std::int64_t>(scratch_bytes)}, Dtype::uint8, device);
        (void)extension.writes(scratch);
        call.scratch = address_of(scratch);
        call.scratch_bytes = scratch_bytes;
    }
    extension.runs(name_, "formula");
    const auto run_it = [&] { return table_->run(extension.context(), kernel_, &call); };
    catena_status status = run_it();
    // Repeats a call that ran out of memory, unless it may have written arrays that it reads.
    if (writes_ == 0 && !given && extension.makes_room(status)) status = run_it();
    extension.check(status, name());
}

ReductionKernel<1> reduce(const char* arguments, const char* map, const char* reduce,
                          const char* neutral, const char* name, Dtype dtype_out,
                          const ReductionOptions& options) {
    const std::string output = std::string(catena::name(dtype_out)) + " result";
    return reduction(arguments, output.c_str(), map, reduce, "", neutral, name, options);
}

KernelStats kernel_stats() {
    catena_kernels_stats stats{};
    stats.struct_size = sizeof(stats);
    table().stats(&stats);
    return {stats.compiled, stats.loaded, stats.hits, stats.evicted};
}

void use_compiled_kernels(const std::filesystem::path& folder) {
    const void* found = need_extension(CATENA_COMPILED_KERNELS_1, "takes compiled kernels");
    ExtensionCall call;
    call.check(static_cast<const catena_compiled_kernels*>(found)->use(
                   call.context(), std::filesystem::absolute(folder).c_str()),
               "kernels");
}

}  // namespace catena
