// onednn.catena: the tables. It has no functions of its own; its kernels are for those of others.
#include <cstdint>
#include <string>
#include <vector>

#include <catena/plugin.hpp>
#include <catena/plugin/memory_limit.hpp>

#include "catena/abi/ext/blas.h"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

// Above the CPU backend's own.
const catena_extension blas = {
    .struct_size = sizeof(catena_extension),
    .priority = CATENA_PRIORITY_VENDOR + 10,
    .id = CATENA_BLAS_1,
    .device = "cpu",
    .table = &blas_table,
};
const catena_extension* const extensions[] = {&blas};

std::vector<const catena_kernel*> all_kernels() {
    std::vector<const catena_kernel*> all;
    for (const auto& list : {convolution_kernels, pooling_kernels, batch_normalization_kernels,
                             local_response_normalization_kernels})
        for (const catena_kernel& k : list) all.push_back(&k);
    return all;
}

// Under a memory limit, generates the code of products now, before other threads allocate. Primitives are made
// later, so a low limit rules oneDNN out.
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
    static const auto* const kernels = new auto(all_kernels());
    static const bool used = usable();
    static const catena_plugin plugin = {
        .struct_size = sizeof(catena_plugin),
        .n_functions = 0,
        .n_kernels = used ? static_cast<std::uint32_t>(kernels->size()) : 0,
        .n_backends = 0,
        .n_extensions = used ? 1U : 0U,
        .reserved = 0,
        .functions = nullptr,
        .kernels = kernels->data(),
        .backends = nullptr,
        .extensions = extensions,
        .init = nullptr,
        .deinit = nullptr,
    };
    return plugin;
}

}  // namespace
}  // namespace catena_onednn

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    catena::plugin::manifest("org.catena.onednn", "0.1.0", CATENA_PLUGIN_VENDOR,
                             CATENA_PLUGIN_LICENSE, "cpu");

const catena_plugin* CATENA_CALL catena_plugin_entry_v1(const catena_host* host, catena_ctx* ctx) {
    catena::plugin::the_host = host;
    try {
        return &catena_onednn::table();
    } catch (const std::exception& e) {
        host->fail(ctx, CATENA_E_NOMEM, e.what());
        return nullptr;
    }
}
}
