// Functions y = 2 x for the device "far", whose addresses only the device can use, each with a
// different fault that catena::testing must find. Also kernels for devices that do not exist.
#include <catena/plugin.hpp>

#include <cstdlib>
#include <cstring>
#include <iterator>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"  // others are 0

namespace {

const catena_host* host = nullptr;

// ---- memory: addresses are off by so much that a processor takes none of them

constexpr std::uintptr_t distance = std::uintptr_t{1} << 62;
void* away(void* near) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(near) + distance);
}
template <class T>
T* near(T* far) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(far) - distance);
}
std::int64_t blocks = 0;  // number of blocks in use

catena_status copy(catena_ctx*, void*, catena_stream*, void* to, const void* from,
                   std::uint64_t bytes, std::int32_t direction) {
    std::memcpy(direction == CATENA_COPY_DEVICE_TO_HOST ? to : near(to),
                direction == CATENA_COPY_HOST_TO_DEVICE ? from : near(from), bytes);
    return CATENA_OK;
}
template <std::int32_t n>
catena_status count(catena_ctx*, std::int32_t* devices) {
    *devices = n;
    return CATENA_OK;
}

constexpr catena_backend backend(const char* name, decltype(catena_backend::count) how_many) {
    return {
        .struct_size = sizeof(catena_backend),
        .name = name,
        .doc = "",
        .dlpack_type = 12,
        .count = how_many,
        .open = [](catena_ctx*, std::int32_t, void** dev) -> catena_status {
            *dev = &blocks;
            return CATENA_OK;
        },
        .close =
            [](void* dev) {
                if (*static_cast<std::int64_t*>(dev) != 0) std::abort();  // a leak
            },
        .supports_isa = [](void*, const char*) -> std::int32_t { return 0; },
        .alloc = [](catena_ctx*, void*, catena_stream*, std::uint64_t bytes,
                    void** data) -> catena_status {
            *data = away(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
            ++blocks;
            return CATENA_OK;
        },
        .free =
            [](void*, catena_stream*, void* data, std::uint64_t) {
                std::free(near(data));
                --blocks;
            },
        .copy = copy,
        .sync = [](catena_ctx*, void*) -> catena_status { return CATENA_OK; },
    };
}
constexpr catena_backend far_backend = backend("far", count<1>);
constexpr catena_backend empty_backend = backend("empty", count<0>);

// ---- functions and kernels

enum class Fault { none, value, beside, input, scratch, fails };

template <class T>
T* elements(const catena_tensor* t) {
    return near(reinterpret_cast<T*>(static_cast<char*>(t->dl.data) + t->dl.byte_offset));
}

// Doubles `in` into `out`: x into y in forward, gy into gx in backward.
template <class T, Fault fault>
catena_status twice(catena_ctx* ctx, const catena_call* call) {
    const bool forward = call->phase == CATENA_PHASE_FORWARD;
    const catena_tensor* in = forward ? call->x[0] : call->gy[0];
    const catena_tensor* out = forward ? call->y[0] : call->gx[0];
    const auto n = static_cast<std::int64_t>(out->nbytes / sizeof(T));
    for (std::int64_t i = 0; i < n; ++i) elements<T>(out)[i] = 2 * elements<T>(in)[i];
    if (fault == Fault::value && n > 2) elements<T>(out)[2] += 1;
    if (fault == Fault::beside) elements<T>(out)[n] = 1;
    if (fault == Fault::input && n > 0) elements<T>(in)[0] = 1;
    if (fault == Fault::scratch) static_cast<char*>(near(call->scratch))[call->scratch_bytes] = 1;
    if (fault == Fault::fails) return host->fail(ctx, CATENA_E_DEVICE, "[far] it burns");
    return CATENA_OK;
}
// Computes y = 2 x on the CPU, as a reference.
template <class T>
catena_status twice_here(catena_ctx*, const catena_call* call) {
    const auto n = static_cast<std::int64_t>(call->y[0]->nbytes / sizeof(T));
    const auto at = [](const catena_tensor* t) {
        return reinterpret_cast<T*>(static_cast<char*>(t->dl.data) + t->dl.byte_offset);
    };
    for (std::int64_t i = 0; i < n; ++i) at(call->y[0])[i] = 2 * at(call->x[0])[i];
    return CATENA_OK;
}
catena_status infer(catena_ctx*, const catena_value*, const catena_meta* const* x, std::uint32_t,
                    catena_meta* const* y, std::uint32_t) {
    y[0]->ndim = x[0]->ndim;
    y[0]->dtype = x[0]->dtype;
    y[0]->device_type = x[0]->device_type;
    for (std::int32_t d = 0; d < x[0]->ndim; ++d) y[0]->shape[d] = x[0]->shape[d];
    return CATENA_OK;
}
catena_status plan(catena_ctx* ctx, const catena_call* call, catena_plan* plan) {
    if (call->x[0] != nullptr && call->x[0]->dl.data != nullptr)
        return host->fail(ctx, CATENA_E_INTERNAL, "[far] data in plan()");
    plan->scratch_bytes = 16;
    return CATENA_OK;
}

constexpr catena_port_spec port(const char* name) {
    return {sizeof(catena_port_spec), 0, name, "", "T"};
}
constexpr catena_port_spec x_port = port("x");
constexpr catena_port_spec y_port = port("y");
constexpr const catena_port_spec* inputs[] = {&x_port};
constexpr const catena_port_spec* outputs[] = {&y_port};
constexpr const char* examples[] = {"x=(2,3)", nullptr};

template <std::uint32_t flags>
constexpr catena_function function(const char* name) {
    return {.struct_size = sizeof(catena_function),
            .flags = flags,
            .name = name,
            .doc = "y = 2 x",
            .version = 1,
            .n_inputs = 1,
            .n_outputs = 1,
            .inputs = inputs,
            .outputs = outputs,
            .infer = infer,
            .examples = examples};
}
template <class T>
constexpr catena_dtype row[] = {catena::plugin::dtype_of<T>()};

template <class T>
constexpr catena_kernel kernel(const catena_function& f, const char* device, std::int32_t phase,
                               decltype(catena_kernel::run) run) {
    return {.struct_size = sizeof(catena_kernel),
            .flags = CATENA_KERNEL_DETERMINISTIC,
            .phase = phase,
            .priority = CATENA_PRIORITY_PORTABLE,
            .function = f.name,
            .version_min = 1,
            .version_max = 1,
            .device = device,
            .isa = "",
            .types = row<T>,
            .n_types = 1,
            .plan = std::string_view(device) == "far" ? plan : nullptr,
            .run = run};
}

constexpr auto last = +CATENA_FUNCTION_NOT_DIFFERENTIABLE;
constexpr catena_function right = function<0>("org.example.far.right");
constexpr catena_function value = function<last>("org.example.far.value");
constexpr catena_function beside = function<last>("org.example.far.beside");
constexpr catena_function input = function<last>("org.example.far.input");
constexpr catena_function scratch = function<last>("org.example.far.scratch");
constexpr catena_function fails = function<last>("org.example.far.fails");
const catena_function* const functions[] = {&right, &value, &beside, &input, &scratch, &fails};

template <Fault fault>
constexpr catena_kernel pair_of(const catena_function& f, bool wide) {
    return wide ? kernel<double>(f, "far", CATENA_PHASE_FORWARD, twice<double, fault>)
                : kernel<float>(f, "far", CATENA_PHASE_FORWARD, twice<float, fault>);
}
constexpr catena_kernel all[] = {
    pair_of<Fault::none>(right, true),
    pair_of<Fault::none>(right, false),
    kernel<double>(right, "far", CATENA_PHASE_BACKWARD, twice<double, Fault::none>),
    kernel<float>(right, "far", CATENA_PHASE_BACKWARD, twice<float, Fault::none>),
    kernel<double>(right, "empty", CATENA_PHASE_FORWARD, twice<double, Fault::none>),
    kernel<double>(right, "nowhere", CATENA_PHASE_FORWARD, twice<double, Fault::none>),
    kernel<double>(value, "cpu", CATENA_PHASE_FORWARD, twice_here<double>),
    pair_of<Fault::value>(value, true),
    pair_of<Fault::beside>(beside, true),
    pair_of<Fault::input>(input, true),
    pair_of<Fault::scratch>(scratch, true),
    pair_of<Fault::fails>(fails, true),
};
const catena_kernel* const kernels[] = {&all[0], &all[1], &all[2], &all[3], &all[4],  &all[5],
                                        &all[6], &all[7], &all[8], &all[9], &all[10], &all[11]};
const catena_backend* const backends[] = {&far_backend, &empty_backend};

const catena_plugin table = {
    .struct_size = sizeof(catena_plugin),
    .n_functions = std::size(functions),
    .n_kernels = std::size(kernels),
    .n_backends = std::size(backends),
    .functions = functions,
    .kernels = kernels,
    .backends = backends,
};

}  // namespace

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    catena::plugin::manifest("org.example.devices", "1.0.0", "", "", "far");

const catena_plugin* catena_plugin_entry_v1(const catena_host* given, catena_ctx*) {
    host = given;
    return &table;
}
}
