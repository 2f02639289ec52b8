// onednn.catena: the tables of the plugin. It has kernels only for functions of other plugins.
#include <cstdint>
#include <string>

#include <catena/plugin/memory_limit.hpp>

#include "engine.hpp"

namespace catena_onednn {
namespace {

// Its priority is higher than that of the CPU backend's own table.
constexpr catena_extension blas =
    extension(CATENA_BLAS_1, "cpu", &blas_table, CATENA_PRIORITY_VENDOR + 10);
const catena_extension* const extensions[] = {&blas};

// Whether oneDNN can be used. Under a memory limit, generates the code of products now, before
// other threads allocate. Primitives are made later, so oneDNN is not used with a low limit.
bool usable() {
    const std::uint64_t limit = memory_limit();
    if (limit == UINT64_MAX) return true;
    try {
        if (limit < little_memory)
            throw Error(CATENA_E_NOMEM, "[onednn] ulimit: expected at least " +
                                            std::to_string(little_memory >> 20) +
                                            " MiB of memory, got " + std::to_string(limit >> 20));
        generate_products();
        return true;
    } catch (const std::exception& e) {
        host().log(
            nullptr, CATENA_LOG_INFO,
            (e.what() + std::string("; oneDNN is not used, as it crashes without memory")).c_str());
        return false;
    }
}

const catena_plugin& table() {
    static const auto& kernels = *new KernelList(convolution_kernels());
    static const catena_plugin plugin =
        usable() ? table_of({.kernels = kernels.pointers, .extensions = extensions}) : table_of({});
    return plugin;
}

}  // namespace
}  // namespace catena_onednn

CATENA_EXPORT_PLUGIN("org.catena.onednn", CATENA_VERSION, "cpu", catena_onednn::table());
