// Functions of layers with all of their outputs.
#include "forms.hpp"

namespace catena::python {
namespace {

namespace F = functions;
using Ints64 = std::vector<std::int64_t>;

// All outputs, also those that the function's users do not see.
Variables all_outputs(const PluginFunction& function, std::initializer_list<const Variable*> xs) {
    return function(std::span(xs.begin(), xs.size()));
}

void add_normalizations(Forms& forms) {
    forms("_batch_normalization(x, gamma, beta, eps)",
          "y, and the mean and the biased variance of each channel.",
          [](const Variable& x, const Variable& gamma, const Variable& beta, double eps) {
              return all_outputs(F::handles::batch_normalization(eps), {&x, &gamma, &beta});
          });
}

void add_pooling(Forms& forms) {
    forms("_max_pooling_2d(x, ksize, stride=None, pad=0, cover_all=True)",
          "The largest element of each window, and its place in the window, row by row.",
          [](const Variable& x, const Ints64& ksize, const Axes& stride, const Ints64& pad,
             bool cover_all) {
              Variables all = all_outputs(
                  F::handles::max_pooling_2d(ksize, all_if_none(stride), pad, cover_all), {&x});
              all[1] = F::cast(all[1], Dtype::int64);
              return all;
          });
}

}  // namespace

void add_layer_forms(Forms& forms) {
    add_normalizations(forms);
    add_pooling(forms);
}

}  // namespace catena::python
