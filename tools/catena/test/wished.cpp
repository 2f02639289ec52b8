// A plugin with another relu, y = 42, which runs only if it is pinned.
#include <catena/plugin.hpp>

#include <algorithm>

namespace {

using namespace catena::plugin;

catena_status CATENA_CALL run(catena_ctx*, const catena_call* call) {
    std::fill_n(data_of<float>(*call->y[0]), size_of(*call->y[0]), 42.0f);
    return CATENA_OK;
}

catena_kernel kernel() {
    catena_kernel k{};
    k.struct_size = sizeof k;
    k.phase = CATENA_PHASE_FORWARD;
    k.priority = 1;
    k.function = "catena.relu";
    k.version_min = k.version_max = 1;
    k.device = "cpu";
    k.types = Row<float>::dtypes;
    k.n_types = 1;
    k.run = run;
    return k;
}

}  // namespace

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    manifest("org.example.wished", "1.0.0", CATENA_PLUGIN_VENDOR, CATENA_PLUGIN_LICENSE, "cpu");

const catena_plugin* CATENA_CALL catena_plugin_entry_v1(const catena_host*, catena_ctx*) {
    static const catena_kernel only = kernel();
    static const catena_kernel* const kernels[] = {&only};
    static const catena_plugin table = [] {
        catena_plugin t{};
        t.struct_size = sizeof t;
        t.n_kernels = 1;
        t.kernels = kernels;
        return t;
    }();
    return &table;
}
}
