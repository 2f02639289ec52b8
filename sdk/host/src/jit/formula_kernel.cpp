// Calls kernels from formulas: arrays in and out of the extension's table.
#include <catena/kernels/formula_kernel.hpp>

#include <catena/abi/ext/compiled.h>
#include <catena/abi/ext/kernels.h>
#include <catena/core/error.hpp>
#include <catena/extension_call.hpp>
#include <catena/loader/plugins.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {
namespace {

constexpr std::size_t max_arguments = CATENA_MAX_PORTS;

const catena_kernels& table() {
    const void* found = extension(CATENA_KERNELS_1);
    if (!found) {
        throw PluginError("no plugin has kernels from formulas (" CATENA_KERNELS_1 ")\n" +
                          to_string(plugin_report()));
    }
    return *static_cast<const catena_kernels*>(found);
}

}  // namespace

FormulaKernel::FormulaKernel(const catena_formula& formula)
    : table_(&table()), name_(formula.name ? formula.name : "") {
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
    throw InvalidError(fmt::format("[{}] outputs: expected {}, as {}<{}>() says, got {}", name(), n,
                                   said, n, n_y_));
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
    if (n != n_x_ && !given) {
        throw InvalidError(fmt::format(
            "[{}] arguments: expected {}{}, got {}", name(), n_x_,
            n_y_ ? fmt::format(", or {} with arrays for the outputs", n_x_ + n_y_) : "", n));
    }
    Device device;
    for (std::size_t i = 0; i < n; ++i) {
        if (!values[i]->array_) continue;
        if (!*values[i]->array_) {
            throw InvalidError(fmt::format(
                "[{}] argument {}: expected an array or a number, got an empty handle", name(), i));
        }
        const Device here = values[i]->array_->device();
        if (device && here != device) {
            throw DeviceError(
                fmt::format("[{}] argument {}: expected {} as the first array, got {}", name(), i,
                            device.name(), here.name()));
        }
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
        if (!a.array_) {
            throw InvalidError(
                fmt::format("[{}] argument {}: expected an array for the output, "
                            "got a number",
                            name(), n_x_ + k));
        }
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
            !from_abi(metas[k].dtype, dtype)) {
            throw InvalidError(fmt::format(
                "[{}] output {}: expected 0 to {} axes and a dtype of "
                "catena, got {} axes and {}",
                name(), k, +CATENA_MAX_NDIM, metas[k].ndim, catena::name(metas[k].dtype)));
        }
        const std::span extents(metas[k].shape, static_cast<std::size_t>(metas[k].ndim));
        y[k] = Array::empty(Shape(extents), dtype, device);
        tensors[k] = extension.writes(y[k]);
    }
    Array scratch;
    if (scratch_bytes != 0) {
        scratch = Array::empty({static_cast<std::int64_t>(scratch_bytes)}, Dtype::uint8, device);
        const catena_dl_tensor& memory = extension.writes(scratch)->dl;
        call.scratch = static_cast<char*>(memory.data) + memory.byte_offset;
        call.scratch_bytes = scratch_bytes;
    }
    extension.runs(name_, "formula");
    const auto run_it = [&] { return table_->run(extension.context(), kernel_, &call); };
    catena_status status = run_it();
    // Again where nothing that it reads can have been written.
    if (writes_ == 0 && !given && extension.makes_room(status)) status = run_it();
    extension.check(status, name());
}

KernelStats kernel_stats() {
    catena_kernels_stats stats{};
    stats.struct_size = sizeof(stats);
    table().stats(&stats);
    return {stats.compiled, stats.loaded, stats.hits, stats.evicted};
}

void use_compiled_kernels(const std::filesystem::path& folder) {
    const void* found = extension(CATENA_COMPILED_KERNELS_1);
    if (!found) {
        throw PluginError("no plugin takes compiled kernels (" CATENA_COMPILED_KERNELS_1 ")\n" +
                          to_string(plugin_report()));
    }
    ExtensionCall call;
    call.check(static_cast<const catena_compiled_kernels*>(found)->use(
                   call.context(), std::filesystem::absolute(folder).c_str()),
               "kernels");
}

}  // namespace catena
