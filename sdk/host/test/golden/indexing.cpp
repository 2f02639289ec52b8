// Rows for indexing.py.
#include "golden.hpp"

namespace F = catena::functions;

namespace {

// The index of the attribute `index`, whose arrays are the inputs from `first` on.
std::vector<catena::Index> index_of(const golden::Variables& x, std::size_t first,
                                    const nlohmann::json& attrs) {
    std::vector<catena::Index> index;
    for (const auto& item : attrs.at("index")) {
        if (item == "...") index.emplace_back(catena::ellipsis);
        else if (item == "new") index.emplace_back(catena::newaxis);
        else if (item.is_string()) index.emplace_back(x.at(first++));
        else if (item.is_array()) {
            const auto number = [&](std::size_t i) -> std::optional<std::int64_t> {
                if (item[i].is_null()) return {};
                return item[i].get<std::int64_t>();
            };
            index.emplace_back(catena::slice(number(0), number(1), number(2).value_or(1)));
        } else index.emplace_back(item.get<std::int64_t>());
    }
    return index;
}
int axis_of(const nlohmann::json& attrs) { return attrs.at("axis").get<int>(); }

}  // namespace

const golden::Rows indexing = {
    {"get_item",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::get_item(x[0], index_of(x, 1, attrs))};
     }},
    {"set_item",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::set_item(x[0], index_of(x, 2, attrs), x[1])};
     }},
    {"take",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::take(x[0], x[1], axis_of(attrs))};
     }},
    {"take_along_axis",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::take_along_axis(x[0], x[1], axis_of(attrs))};
     }},
    {"gather",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::gather(x[0], axis_of(attrs), x[1])};
     }},
    {"scatter",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::scatter(x[0], axis_of(attrs), x[1], x[2])};
     }},
    {"scatter_add",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::scatter_add(x[0], axis_of(attrs), x[1], x[2])};
     }},
    {"index_add",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{F::index_add(x[0], axis_of(attrs), x[1], x[2])};
     }},
    {"put", [](const auto& x, const auto&) { return golden::Variables{F::put(x[0], x[1], x[2])}; }},
    {"select_item",
     [](const auto& x, const auto&) { return golden::Variables{F::select_item(x[0], x[1])}; }},
    {"nonzero",
     [](const auto& x, const auto&) {
         return golden::Variables{catena::as_variable(F::nonzero(x[0]))};
     }},
    {"permutate",
     [](const auto& x, const auto& attrs) {
         return golden::Variables{
             F::permutate(x[0], x[1], axis_of(attrs), attrs.at("inv").template get<bool>())};
     }},
};
