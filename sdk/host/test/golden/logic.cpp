// Rows for logic.py.
#include "golden.hpp"

namespace F = catena::functions;

using golden::Variables;

namespace {

// An array that catena::functions make, as the output of a case.
Variables output(const catena::Array& array) { return {catena::as_variable(array)}; }

}  // namespace

#define CATENA_ROW(NAME)                                                                 \
    {                                                                                    \
#NAME, [](const auto& x, const auto&) { return Variables{F::NAME(x[0], x[1])}; } \
    }

const golden::Rows logic = {
    CATENA_ROW(equal),
    CATENA_ROW(not_equal),
    CATENA_ROW(greater),
    CATENA_ROW(greater_equal),
    CATENA_ROW(less),
    CATENA_ROW(less_equal),
    CATENA_ROW(logical_and),
    CATENA_ROW(logical_or),
    CATENA_ROW(logical_xor),
    CATENA_ROW(maximum),
    CATENA_ROW(minimum),
    {"logical_not", [](const auto& x, const auto&) { return Variables{F::logical_not(x[0])}; }},
    {"where", [](const auto& x, const auto&) { return Variables{F::where(x[0], x[1], x[2])}; }},
    {"one_hot",
     [](const auto& x, const auto& attrs) {
         return Variables{F::one_hot(x[0], attrs.at("depth"), attrs.at("axis"))};
     }},
    {"isnan", [](const auto& x, const auto&) { return Variables{F::isnan(x[0])}; }},
    {"isinf", [](const auto& x, const auto&) { return Variables{F::isinf(x[0])}; }},
    {"isfinite", [](const auto& x, const auto&) { return Variables{F::isfinite(x[0])}; }},
    {"isclose",
     [](const auto& x, const auto& attrs) {
         return Variables{F::isclose(x[0], x[1], attrs.value("rtol", 1e-5),
                                     attrs.value("atol", 1e-8), attrs.value("equal_nan", false))};
     }},
    // The following have the dtype and device of their input.
    {"arange",
     [](const auto& x, const auto& attrs) {
         return output(F::arange(
             attrs.at("start").template get<double>(), attrs.at("stop").template get<double>(),
             attrs.at("step").template get<double>(), x[0].dtype(), x[0].device()));
     }},
    {"arange_integers",
     [](const auto& x, const auto& attrs) {
         return output(F::arange(attrs.at("start").template get<int>(),
                                 attrs.at("stop").template get<int>(),
                                 attrs.at("step").template get<int>(), {}, x[0].device()));
     }},
    {"linspace",
     [](const auto& x, const auto& attrs) {
         return output(F::linspace(attrs.at("start"), attrs.at("stop"), attrs.at("n"),
                                   attrs.at("endpoint"), x[0].dtype(), x[0].device()));
     }},
    {"full_like", [](const auto& x,
                     const auto& attrs) { return output(F::full_like(x[0], attrs.at("value"))); }},
    {"eye",
     [](const auto& x, const auto& attrs) {
         return output(
             F::eye(attrs.at("n"), attrs.at("m"), attrs.at("k"), x[0].dtype(), x[0].device()));
     }},
    {"tri",
     [](const auto& x, const auto& attrs) {
         return output(
             F::tri(attrs.at("n"), attrs.at("m"), attrs.at("k"), x[0].dtype(), x[0].device()));
     }},
};
