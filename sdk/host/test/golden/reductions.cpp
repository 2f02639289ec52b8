// Rows for reductions.py.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

std::vector<std::int64_t> axis(const nlohmann::json& attrs) {
    return attrs.value("axis", std::vector<std::int64_t>());
}
bool keepdims(const nlohmann::json& attrs) { return attrs.value("keepdims", false); }

}  // namespace

const golden::Rows reductions = {
    {"std",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{
             F::std(x[0], axis(attrs), keepdims(attrs), attrs.value("ddof", std::int64_t{0}))};
     }},
    {"norm",
     [](const auto& x, const auto& attrs) {
         const double ord = std::stod(attrs.at("ord").template get<std::string>());
         return golden::Variables{F::norm(x[0], ord, axis(attrs), keepdims(attrs))};
     }},
    {"average",
     [](const auto& x, const auto& attrs) {
         const auto weights = x.size() > 1 ? x[1] : catena::Variable();
         return golden::Variables{F::average(x[0], axis(attrs), weights, keepdims(attrs))};
     }},
    {"sort",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::sort(x[0], attrs.value("axis", std::int64_t{-1}),
                                          attrs.value("descending", false))};
     }},
    {"argsort",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::argsort(x[0], attrs.value("axis", std::int64_t{-1}),
                                             attrs.value("descending", false))};
     }},
};
