// Rows for shapes.py.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

using List = std::vector<std::int64_t>;
using golden::Variables;

List list(const nlohmann::json& attrs, const char* name) { return attrs.at(name).get<List>(); }
int integer(const nlohmann::json& attrs, const char* name) { return attrs.at(name).get<int>(); }

}  // namespace

const golden::Rows shapes = {
    {"concat",
     [](const auto& x, const auto& a) { return Variables{F::concat(x, integer(a, "axis"))}; }},
    {"stack",
     [](const auto& x, const auto& a) { return Variables{F::stack(x, integer(a, "axis"))}; }},
    {"vstack", [](const auto& x, const auto&) { return Variables{F::vstack(x)}; }},
    {"hstack", [](const auto& x, const auto&) { return Variables{F::hstack(x)}; }},
    {"dstack", [](const auto& x, const auto&) { return Variables{F::dstack(x)}; }},
    {"separate",
     [](const auto& x, const auto& a) { return F::separate(x[0], integer(a, "axis")); }},
    {"broadcast", [](const auto& x, const auto&) { return F::broadcast(x); }},
    {"pad_sequence",
     [](const auto& x, const auto& a) {
         return Variables{a.contains("length")
                              ? F::pad_sequence(x, integer(a, "length"), a.at("padding"))
                              : F::pad_sequence(x)};
     }},
    {"expand_dims",
     [](const auto& x, const auto& a) { return Variables{F::expand_dims(x[0], list(a, "axis"))}; }},
    {"squeeze",
     [](const auto& x, const auto& a) {
         return Variables{a.contains("axis") ? F::squeeze(x[0], list(a, "axis"))
                                             : F::squeeze(x[0])};
     }},
    {"flatten", [](const auto& x, const auto&) { return Variables{F::flatten(x[0])}; }},
    {"moveaxis",
     [](const auto& x, const auto& a) {
         return Variables{F::moveaxis(x[0], list(a, "source"), list(a, "destination"))};
     }},
    {"swapaxes",
     [](const auto& x, const auto& a) {
         return Variables{F::swapaxes(x[0], integer(a, "axis1"), integer(a, "axis2"))};
     }},
    {"rollaxis",
     [](const auto& x, const auto& a) {
         return Variables{F::rollaxis(x[0], integer(a, "axis"), integer(a, "start"))};
     }},
    {"flip",
     [](const auto& x, const auto& a) { return Variables{F::flip(x[0], list(a, "axis"))}; }},
    {"fliplr", [](const auto& x, const auto&) { return Variables{F::fliplr(x[0])}; }},
    {"flipud", [](const auto& x, const auto&) { return Variables{F::flipud(x[0])}; }},
    {"roll",
     [](const auto& x, const auto& a) {
         return Variables{a.contains("axis") ? F::roll(x[0], list(a, "shift"), list(a, "axis"))
                                             : F::roll(x[0], list(a, "shift")[0])};
     }},
    {"tile",
     [](const auto& x, const auto& a) { return Variables{F::tile(x[0], list(a, "reps"))}; }},
    {"repeat",
     [](const auto& x, const auto& a) {
         return Variables{a.contains("axis")
                              ? F::repeat(x[0], list(a, "repeats"), integer(a, "axis"))
                              : F::repeat(x[0], list(a, "repeats"))};
     }},
    {"pad",
     [](const auto& x, const auto& a) {
         return Variables{F::pad(x[0], list(a, "pad_width"),
                                 a.at("mode").template get<std::string>(), a.at("value"))};
     }},
    {"tril",
     [](const auto& x, const auto& a) { return Variables{F::tril(x[0], integer(a, "k"))}; }},
    {"triu",
     [](const auto& x, const auto& a) { return Variables{F::triu(x[0], integer(a, "k"))}; }},
};
