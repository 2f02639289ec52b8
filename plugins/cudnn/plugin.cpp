// The plugin table of cudnn.cuda.catena: kernels for functions of other plugins, no functions of its own.
#include <catena/plugin/vendor.hpp>

#include "library.hpp"

namespace catena_cudnn {
namespace {

catena_status init(const catena_host*, catena_ctx* ctx) {
    if (settings().wrong_workspace == nullptr) return CATENA_OK;
    return guarded(ctx, [] {
        fail(CATENA_E_INVALID, "cudnn", "CATENA_CUDNN_WORKSPACE", "a number of bytes",
             settings().wrong_workspace);
    });
}

const catena_plugin& table() {
    read_settings();
    std::vector<catena_kernel> all = convolution_kernels();
    for (const catena_kernel& k : attention_kernels()) all.push_back(k);
    static const auto& kernels = *new KernelList(std::move(all));
    static const catena_plugin plugin = table_of({.kernels = kernels.pointers, .init = init});
    return plugin;
}

}  // namespace
}  // namespace catena_cudnn

CATENA_EXPORT_PLUGIN("org.catena.cudnn", CATENA_VERSION, "cuda", catena_cudnn::table());
