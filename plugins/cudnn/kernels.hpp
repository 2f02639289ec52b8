// The kernels that plugin.cpp lists, each file's own.
#pragma once

#include <vector>

#include <catena/plugin/vendor.hpp>

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
    catena_kernel kernel = plain_kernel(function, phase, "cuda", types);
    kernel.name = rank == Rank::varying ? "cuDNN, varying" : "cuDNN";
    if (rank == Rank::varying) kernel.flags = CATENA_KERNEL_ADDS;
    kernel.priority = rank == Rank::varying  ? CATENA_PRIORITY_VENDOR + 1
                      : rank == Rank::always ? CATENA_PRIORITY_VENDOR
                                             : CATENA_PRIORITY_PORTABLE - 10;
    kernel.supports = supports;
    kernel.plan = plan;
    kernel.run = run;
    return kernel;
}

}  // namespace catena_cudnn
