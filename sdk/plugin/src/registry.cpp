// The table of a plugin of several translation units.
#include "catena/plugin/registry.hpp"

#include <algorithm>
#include <new>

namespace catena::plugin::detail {
namespace {

template <class T>
std::size_t append(std::span<const T*> all, std::size_t n, std::span<const T* const> more) {
    for (const T* item : more) {
        const auto end = all.begin() + static_cast<std::ptrdiff_t>(n);
        if (std::find(all.begin(), end, item) == end) all[n++] = item;
    }
    return n;
}

}  // namespace

const catena_plugin* table_of(const catena_host& host, catena_ctx* ctx, const Part* const* begin,
                              const Part* const* end) noexcept {
    std::size_t n_functions = 0;
    std::size_t n_kernels = 0;
    for (const Part* const* part = begin; part != end; ++part) {
        n_functions += (*part)->functions.size();
        n_kernels += (*part)->kernels.size();
    }
    auto* const functions = new (std::nothrow) const catena_function*[n_functions];
    auto* const kernels = new (std::nothrow) const catena_kernel*[n_kernels];
    auto* const table = new (std::nothrow) catena_plugin();
    if (functions == nullptr || kernels == nullptr || table == nullptr) {
        delete[] functions;
        delete[] kernels;
        delete table;
        host.fail(ctx, CATENA_E_NOMEM, "out of host memory");
        return nullptr;
    }
    std::size_t f = 0;
    std::size_t k = 0;
    for (const Part* const* part = begin; part != end; ++part) {
        f = append<catena_function>({functions, n_functions}, f, (*part)->functions);
        k = append<catena_kernel>({kernels, n_kernels}, k, (*part)->kernels);
    }
    table->struct_size = sizeof(catena_plugin);
    table->n_functions = static_cast<std::uint32_t>(f);
    table->n_kernels = static_cast<std::uint32_t>(k);
    table->functions = functions;
    table->kernels = kernels;
    return table;
}

}  // namespace catena::plugin::detail
