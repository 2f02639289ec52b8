// The table of a plugin of several translation units, and zero gradients for calls without any.
#include "catena/plugin/registry.hpp"

#include <algorithm>
#include <cstring>
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

std::unique_ptr<const Table> join(const Contents* const* begin, const Contents* const* end) {
    auto table = std::make_unique<Table>();
    for (const Contents* const* part = begin; part != end; ++part) {
        append(table->functions, (*part)->functions);
        append(table->kernels, (*part)->kernels);
    }
    table->plugin = plugin::table_of({.functions = table->functions, .kernels = table->kernels});
    return table;
}

// Whether a visible output has a gradient. Functions ignore the gradients of hidden outputs.
template <class Call>
bool has_gradient(const Call& call) {
    const catena_function& f = *call.function;
    for (std::uint32_t i = 0; i < call.n_y; ++i) {
        const catena_port_spec& port = *f.outputs[std::min(i, f.n_outputs - 1)];
        if (call.gy[i] != nullptr && (port.flags & CATENA_PORT_HIDDEN) == 0) return true;
    }
    return false;
}

}  // namespace

const catena_plugin& table_of(const Contents* const* begin, const Contents* const* end) {
    static const Table* const table = join(begin, end).release();  // hosts use it until they exit
    return table->plugin;
}

bool set_zero_gradients(const catena_call& call,
                        void (*set_zero)(const void* queue, void* data, std::size_t bytes),
                        const void* queue) {
    if (has_gradient(call)) return false;
    for (std::uint32_t i = 0; i < call.n_x; ++i) {
        const catena_tensor* const gx = call.gx[i];
        if (gx != nullptr && call.req[i] != CATENA_REQ_ADD)
            set_zero(queue, data_of<char>(*gx),
                     static_cast<std::size_t>(size_of(*gx)) * gx->dl.dtype.bits / 8);
    }
    return true;
}
bool set_zero_gradients(const catena_call& call) {
    const auto here = [](const void*, void* data, std::size_t n) { std::memset(data, 0, n); };
    return set_zero_gradients(call, here, nullptr);
}
bool set_zero_gradients(const catena_gradient_call& call) {
    if (has_gradient(call)) return false;
    std::fill_n(call.gx, call.n_x, nullptr);
    return true;
}

}  // namespace catena::plugin::detail
