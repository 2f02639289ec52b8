// Rows for losses.py.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

std::string reduce_of(const nlohmann::json& attrs) { return attrs.at("reduce"); }

}  // namespace

const golden::Rows losses = {
    {"sigmoid_cross_entropy",
     [](const auto& x, const auto& attrs) {
         const bool normalize = attrs.at("normalize");
         return golden::Variables{
             F::sigmoid_cross_entropy(x[0], x[1], normalize, reduce_of(attrs))};
     }},
    {"huber_loss",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::huber_loss(x[0], x[1], attrs.at("delta"), reduce_of(attrs))};
     }},
    {"smooth_l1_loss",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{
             F::smooth_l1_loss(x[0], x[1], attrs.at("beta"), reduce_of(attrs))};
     }},
    {"l1_loss",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::l1_loss(x[0], x[1], reduce_of(attrs))};
     }},
    {"absolute_error",
     [](const auto& x, const auto&) { return golden::Variables{F::absolute_error(x[0], x[1])}; }},
    {"squared_error",
     [](const auto& x, const auto&) { return golden::Variables{F::squared_error(x[0], x[1])}; }},
    {"mean_absolute_error",
     [](const auto& x, const auto&) {
         return golden::Variables{F::mean_absolute_error(x[0], x[1])};
     }},
    {"hinge",
     [](const auto& x, const auto& attrs) {
         const std::string norm = attrs.at("norm");
         return golden::Variables{F::hinge(x[0], x[1], norm, reduce_of(attrs))};
     }},
    {"kl_div",
     [](const auto& x, const auto& attrs) {
         const bool log_target = attrs.at("log_target");
         return golden::Variables{F::kl_div(x[0], x[1], reduce_of(attrs), log_target)};
     }},
    {"gaussian_kl_divergence",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::gaussian_kl_divergence(x[0], x[1], reduce_of(attrs))};
     }},
    {"bernoulli_nll",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::bernoulli_nll(x[0], x[1], reduce_of(attrs))};
     }},
    {"gaussian_nll",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::gaussian_nll(x[0], x[1], x[2], reduce_of(attrs))};
     }},
};
