// Functions of layers: normalizations, pooling, attention and noise.
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

void add_attention(Forms& forms) {
    forms(
        "rotary_tables(length, size, base=10000.0, dtype='float32', device=None, factor=1.0, "
        "low=1.0, high=4.0, context=0.0)",
        "The cosines and sines for rotary_embedding(): two arrays (length, size / 2).",
        [](std::int64_t length, std::int64_t size, double base, Dtype dtype, Device device,
           double factor, double low, double high, double context) {
            F::RotaryTables tables =
                F::rotary_tables(length, size, base, dtype, device, {factor, low, high, context});
            return Variables{as_variable(tables.cos), as_variable(tables.sin)};
        });
}

void add_noise(Forms& forms) {
    forms("uniform(shape, low=0.0, high=1.0, dtype='float32', device=None)",
          "Random numbers from the uniform distribution on [low, high).",
          [](const Shape& shape, double low, double high, Dtype dtype, Device device) {
              return F::uniform(shape, low, high, dtype, device);
          });
    forms("normal(shape, mean=0.0, stddev=1.0, dtype='float32', device=None)",
          "Random numbers from a normal distribution.",
          [](const Shape& shape, double mean, double stddev, Dtype dtype, Device device) {
              return F::normal(shape, mean, stddev, dtype, device);
          });
}

}  // namespace

void add_layer_forms(Forms& forms) {
    add_normalizations(forms);
    add_pooling(forms);
    add_attention(forms);
    add_noise(forms);
}

}  // namespace catena::python
