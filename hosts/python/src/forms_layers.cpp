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
    forms("instance_normalization(x, gamma=None, beta=None, eps=1e-5)",
          "Normalizes each channel of each sample.",
          [](const Variable& x, const std::optional<Variable>& gamma,
             const std::optional<Variable>& beta, double eps) {
              return F::instance_normalization(x, empty_if_none(gamma), empty_if_none(beta), eps);
          });
    forms("normalize(x, eps=1e-5, axis=1)", "x / (norm + eps), with the L2 norm along axes.",
          [](const Variable& x, double eps, const Ints64& axis) {
              return F::normalize(x, eps, axis);
          });
    forms("weight_standardization(W, eps=1e-5)",
          "(W - mean) / sqrt(var + eps) of the weights W[i] of each output.",
          [](const Variable& W, double eps) { return F::weight_standardization(W, eps); });
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
    forms("alibi(heads, queries, keys, offset=0, dtype='float32', device=None)",
          "A bias (1, heads, queries, keys) for scaled_dot_product_attention(): the negative\n"
          "distance of query and key, times a slope for each head.",
          [](std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t offset,
             Dtype dtype,
             Device device) { return F::alibi(heads, queries, keys, offset, dtype, device); });
    forms("packed_attention(q, k, v, offsets, causal=False, scale=0.0, dropout=0.0, window=0)",
          "Attention within sequences that are stored one after the other: sequence i has the\n"
          "tokens offsets[i] to offsets[i + 1].",
          [](const Variable& q, const Variable& k, const Variable& v, const Ints64& offsets,
             bool causal, double scale, double dropout, std::int64_t window) {
              return F::packed_attention(q, k, v, offsets, causal, scale, dropout, window);
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
    forms("bernoulli(p)", "1 with probability p, else 0.",
          [](const Variable& p) { return F::bernoulli(p); });
    forms("gumbel_softmax(log_pi, tau=0.1, axis=1)",
          "A relaxed sample of categorical distributions: softmax((log_pi + g) / tau) with g from\n"
          "the Gumbel distribution.",
          [](const Variable& log_pi, double tau, int axis) {
              return F::gumbel_softmax(log_pi, tau, axis);
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
