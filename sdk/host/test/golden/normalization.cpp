// Rows for normalization.py.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

using golden::Variables;
double eps(const nlohmann::json& attrs) { return attrs.value("eps", 1e-5); }

}  // namespace

const golden::Rows normalizations = {
    {"instance_normalization",
     [](const auto& x, const auto& attrs) {
         const bool plain = x.size() == 1;
         return Variables{F::instance_normalization(x[0], plain ? catena::Variable() : x[1],
                                                    plain ? catena::Variable() : x[2], eps(attrs))};
     }},
    {"normalize",
     [](const auto& x, const auto& attrs) {
         return Variables{
             F::normalize(x[0], eps(attrs), attrs.value("axis", std::vector<std::int64_t>{1}))};
     }},
    {"weight_standardization",
     [](const auto& x, const auto& attrs) {
         return Variables{F::weight_standardization(x[0], eps(attrs))};
     }},
};
