// The kernels that plugin.cpp lists, each file's own.
#pragma once

#include <vector>

#include "library.hpp"

namespace catena_cudnn {

void append_convolutions(std::vector<catena_kernel>& kernels);
void append_pooling(std::vector<catena_kernel>& kernels);
void append_softmax(std::vector<catena_kernel>& kernels);
void append_local_response_normalization(std::vector<catena_kernel>& kernels);
void append_batch_normalization(std::vector<catena_kernel>& kernels);

inline constexpr const catena_dtype* floating_types[] = {
    Row<float>::dtypes, Row<double>::dtypes, Row<Float16>::dtypes, Row<BFloat16>::dtypes};

// Three ways to be there: the same bits always; faster, perhaps with other bits the next time; and for
// those alone who ask for it.
enum class Rank { always, varying, pinned };

constexpr catena_kernel kernel(const char* function, int phase, const catena_dtype* types,
                               Rank rank, decltype(catena_kernel::supports) supports,
                               decltype(catena_kernel::plan) plan,
                               decltype(catena_kernel::run) run) {
    const std::uint32_t same_bits = rank == Rank::varying ? 0 : CATENA_KERNEL_DETERMINISTIC;
    return {
        .struct_size = sizeof(catena_kernel),
        .flags = CATENA_KERNEL_ADDS | same_bits,
        .phase = phase,
        .priority = rank == Rank::varying  ? CATENA_PRIORITY_VENDOR + 1
                    : rank == Rank::always ? CATENA_PRIORITY_VENDOR
                                           : CATENA_PRIORITY_PORTABLE - 10,
        .function = function,
        .version_min = 1,
        .version_max = 1,
        .device = "cuda",
        .isa = "",
        .types = types,
        .n_types = 1,
        .n_saved = 0,
        .variant = nullptr,
        .retain_x = 0,
        .retain_y = 0,
        .supports = supports,
        .plan = plan,
        .run = run,
        .name = rank == Rank::varying ? "cuDNN, varying" : "cuDNN",
    };
}

// The attribute of the call with this name; the functions are others', so it is looked up.
inline const catena_value& attribute(const catena_call& call, const char* name) {
    for (std::uint32_t i = 0; i < call.function->n_attrs; ++i)
        if (std::string_view(call.function->attrs[i]->name) == name) return call.attrs[i];
    throw Error(CATENA_E_UNSUPPORTED, std::string("no attribute ") + name);
}

}  // namespace catena_cudnn
