// The table of a plugin of several translation units.
#include "catena/plugin/registry.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace catena::plugin::detail {
namespace {

struct Table {
    std::vector<const catena_function*> functions;
    std::vector<const catena_kernel*> kernels;
    catena_plugin plugin;
};

template <class T>
void append(std::vector<const T*>& all, std::span<const T* const> more) {
    for (const T* item : more)
        if (std::find(all.begin(), all.end(), item) == all.end()) all.push_back(item);
}

}  // namespace

const catena_plugin& table_of(const Contents* const* begin, const Contents* const* end) {
    auto table = std::make_unique<Table>();
    for (const Contents* const* part = begin; part != end; ++part) {
        append(table->functions, (*part)->functions);
        append(table->kernels, (*part)->kernels);
    }
    table->plugin = plugin::table_of({.functions = table->functions, .kernels = table->kernels});
    return table.release()->plugin;
}

}  // namespace catena::plugin::detail
