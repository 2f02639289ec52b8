// small_matmul: no function of its own, but a faster kernel for somebody else's, where it is one.
#include <catena/plugin.hpp>

using namespace catena::plugin;

namespace {

constexpr std::int64_t most = 8;  // rows and columns; larger ones are better left to a BLAS

// catena.matmul's attributes are transa and transb, as `catena describe matmul` shows.
struct Matrices {
    explicit Matrices(const catena_call& call)
        : transa(call.attrs[0].v.i != 0),
          transb(call.attrs[1].v.i != 0),
          m(call.x[0]->dl.shape[transa ? 1 : 0]),
          k(call.x[0]->dl.shape[transa ? 0 : 1]),
          n(call.x[1]->dl.shape[transb ? 0 : 1]) {}
    bool transa, transb;
    std::int64_t m, k, n;
};

// Data pointers may be null here: it is asked before there is any data.
std::int32_t CATENA_CALL supports(catena_ctx*, const catena_call* call) noexcept {
    const Matrices s(*call);
    return s.m <= most && s.n <= most && s.k <= most ? 1 : 0;
}

catena_status CATENA_CALL run(catena_ctx*, const catena_call* call) noexcept {
    const Matrices s(*call);
    const auto* const a = data_of<const float>(*call->x[0]);
    const auto* const b = data_of<const float>(*call->x[1]);
    auto* const y = data_of<float>(*call->y[0]);
    for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
            float sum = 0;
            for (std::int64_t l = 0; l < s.k; ++l)
                sum += a[s.transa ? l * s.m + i : i * s.k + l] *
                       b[s.transb ? j * s.k + l : l * s.n + j];
            store(y[i * s.n + j], call->req[0] == CATENA_REQ_ADD, sum);
        }
    return CATENA_OK;
}

constexpr catena_kernel kernel = {
    .struct_size = sizeof(catena_kernel),
    .flags = CATENA_KERNEL_ADDS | CATENA_KERNEL_DETERMINISTIC,
    .phase = CATENA_PHASE_FORWARD,
    .priority = CATENA_PRIORITY_TUNED,  // before the one of math.catena, which stays for the rest
    .function = "catena.matmul",
    .version_min = 1,
    .version_max = 1,
    .device = "cpu",
    .isa = "",
    .types = Row<float>::dtypes,
    .n_types = 1,
    .n_saved = 0,
    .variant = nullptr,
    .retain_x = 0,
    .retain_y = 0,
    .supports = supports,
    .plan = nullptr,
    .run = run,
    .name = "small",
};
const catena_kernel* const kernels[] = {&kernel};
constexpr catena_plugin plugin = {
    .struct_size = sizeof(catena_plugin),
    .n_functions = 0,
    .n_kernels = 1,
    .n_backends = 0,
    .n_extensions = 0,
    .reserved = 0,
    .functions = nullptr,
    .kernels = kernels,
    .backends = nullptr,
    .extensions = nullptr,
    .init = nullptr,
    .deinit = nullptr,
};

}  // namespace

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    manifest("org.example.small_matmul", "1.0.0", "", "", "cpu");

const catena_plugin* CATENA_CALL catena_plugin_entry_v1(const catena_host* table, catena_ctx*) {
    the_host = table;
    return &plugin;
}
}
