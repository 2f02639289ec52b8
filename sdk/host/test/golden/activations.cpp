// Rows for activations.py.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

using golden::Variables;
int axis(const nlohmann::json& attrs, int otherwise) { return attrs.value("axis", otherwise); }

}  // namespace

const golden::Rows activations = {
    {"swish", [](const auto& x, const auto&) { return Variables{F::swish(x[0], x[1])}; }},
    {"relu6", [](const auto& x, const auto&) { return Variables{F::relu6(x[0])}; }},
    {"selu", [](const auto& x, const auto&) { return Variables{F::selu(x[0])}; }},
    {"celu",
     [](const auto& x, const auto& attrs) {
         return Variables{F::celu(x[0], attrs.at("alpha").template get<double>())};
     }},
    {"crelu",
     [](const auto& x, const auto& attrs) { return Variables{F::crelu(x[0], axis(attrs, 1))}; }},
    {"maxout",
     [](const auto& x, const auto& attrs) {
         return Variables{
             F::maxout(x[0], attrs.at("pool_size").template get<std::int64_t>(), axis(attrs, 1))};
     }},
    {"glu",
     [](const auto& x, const auto& attrs) { return Variables{F::glu(x[0], axis(attrs, -1))}; }},
    {"swiglu_axis",
     [](const auto& x, const auto& attrs) { return Variables{F::swiglu(x[0], axis(attrs, -1))}; }},
    {"geglu",
     [](const auto& x, const auto& attrs) { return Variables{F::geglu(x[0], axis(attrs, -1))}; }},
};
