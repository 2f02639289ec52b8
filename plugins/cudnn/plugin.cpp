// cudnn.cuda.catena: the tables. It has no functions of its own; its kernels are for those of others.
#include <vector>

#include <catena/plugin.hpp>

#include "kernels.hpp"

namespace catena_cudnn {
namespace {

std::vector<catena_kernel> all_kernels() {
    std::vector<catena_kernel> all;
    append_convolutions(all);
    append_pooling(all);
    append_softmax(all);
    append_local_response_normalization(all);
    append_batch_normalization(all);
    return all;
}

catena_status init(const catena_host*, catena_ctx* ctx) {
    if (settings().wrong_workspace == nullptr) return CATENA_OK;
    return guarded(ctx, [] {
        fail(CATENA_E_INVALID, "cudnn", "CATENA_CUDNN_WORKSPACE", "a number of bytes",
             settings().wrong_workspace);
    });
}

const catena_plugin& table() {
    static const auto* const kernels = new auto(all_kernels());
    static const auto* const list = [] {
        auto* const pointers = new std::vector<const catena_kernel*>;
        for (const catena_kernel& k : *kernels) pointers->push_back(&k);
        return pointers;
    }();
    static const catena_plugin plugin = {
        .struct_size = sizeof(catena_plugin),
        .n_functions = 0,
        .n_kernels = static_cast<std::uint32_t>(list->size()),
        .n_backends = 0,
        .n_extensions = 0,
        .reserved = 0,
        .functions = nullptr,
        .kernels = list->data(),
        .backends = nullptr,
        .extensions = nullptr,
        .init = init,
        .deinit = nullptr,
    };
    return plugin;
}

}  // namespace
}  // namespace catena_cudnn

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    catena::plugin::manifest("org.catena.cudnn", "0.1.0", CATENA_PLUGIN_VENDOR,
                             CATENA_PLUGIN_LICENSE, "cuda");

const catena_plugin* CATENA_CALL catena_plugin_entry_v1(const catena_host* host, catena_ctx* ctx) {
    catena::plugin::the_host = host;
    try {
        catena_cudnn::read_settings();
        return &catena_cudnn::table();
    } catch (const std::exception& e) {
        host->fail(ctx, CATENA_E_NOMEM, e.what());
        return nullptr;
    }
}
}
