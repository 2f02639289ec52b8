// A third party's backend: two devices "island:0" and "island:1" with memory that the host cannot
// access, and kernels for two functions of catena. Calls of other functions throw an error that
// names the function, or run on another device if the program allows it.
#include <catena/plugin.hpp>

#include <algorithm>
#include <cstring>

#include "memory.hpp"

namespace {

const catena_host* host = nullptr;
constexpr std::int32_t n_devices = 2;

Memory& memory_of(std::int32_t ordinal) {
    static auto* const memories = new Memory[n_devices];  // never freed
    return memories[ordinal];
}
Memory& memory_of(void* dev) { return *static_cast<Memory*>(dev); }

// ---- the backend: devices and their memory

catena_status count(catena_ctx*, std::int32_t* n) {
    *n = n_devices;
    return CATENA_OK;
}
catena_status open(catena_ctx* ctx, std::int32_t ordinal, void** dev) {
    if (ordinal < 0 || ordinal >= n_devices)
        return host->fail(ctx, CATENA_E_DEVICE, "[island] ordinal: expected 0 or 1, got another");
    Memory& memory = memory_of(ordinal);
    if (!memory.works()) return host->fail(ctx, CATENA_E_DEVICE, "[island] no address space");
    *dev = &memory;
    return CATENA_OK;
}
void close(void*) {}

catena_status alloc(catena_ctx* ctx, void* dev, catena_stream*, std::uint64_t bytes, void** data) {
    *data = memory_of(dev).allocate(bytes);
    return *data ? CATENA_OK : host->fail(ctx, CATENA_E_NOMEM, "[island] out of memory");
}
void release(void* dev, catena_stream*, void* data, std::uint64_t bytes) {
    memory_of(dev).release(data, bytes);
}
catena_status copy(catena_ctx*, void* dev, catena_stream*, void* to, const void* from,
                   std::uint64_t bytes, std::int32_t direction) {
    const Memory& memory = memory_of(dev);
    std::memcpy(direction == CATENA_COPY_DEVICE_TO_HOST ? to : memory.near(to),
                direction == CATENA_COPY_HOST_TO_DEVICE ? from : memory.near(from), bytes);
    return CATENA_OK;
}
catena_status sizes(catena_ctx*, void* dev, std::uint64_t* available, std::uint64_t* total) {
    *available = memory_of(dev).available();
    *total = Memory::size;
    return CATENA_OK;
}

const catena_backend backend = {
    .struct_size = sizeof(catena_backend),
    .flags = 0,  // the host cannot access the memory; calls are synchronous
    .name = "island",
    .doc = "Memory of its own, out of the host's reach.",
    .dlpack_type = 12,  // kDLExtDev
    .reserved = 0,
    .count = count,
    .open = open,
    .close = close,
    .supports_isa = [](void*, const char*) -> std::int32_t { return 0; },
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .memory = sizes,
    .stream_create = nullptr,
    .stream_destroy = nullptr,
    .stream_sync = nullptr,
    .event_create = nullptr,
    .event_destroy = nullptr,
    .event_record = nullptr,
    .event_wait = nullptr,
    .sync = [](catena_ctx*, void*) -> catena_status { return CATENA_OK; },
    .get_extension = [](void*, const char*) -> const void* { return nullptr; },
};

// ---- kernels: the functions that these devices support

// Returns a tensor's elements at an address that the device's own code can access.
template <class T>
T* elements(const catena_tensor* t) {
    const auto* address = static_cast<const std::byte*>(t->dl.data) + t->dl.byte_offset;
    return static_cast<T*>(memory_of(t->dl.device_id).near(address));
}
std::int64_t size_of(const catena_tensor* t) {
    return static_cast<std::int64_t>(t->nbytes) * 8 / t->dl.dtype.bits;
}

template <class T>
catena_status relu(catena_ctx*, const catena_call* call) {
    const T* const x = elements<const T>(call->x[0]);
    T* const y = elements<T>(call->y[0]);
    const std::int64_t n = size_of(call->x[0]);
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::max(x[i], T(0));
    return CATENA_OK;
}
template <class T>
catena_status relu_backward(catena_ctx*, const catena_call* call) {
    const T* const y = elements<const T>(call->y[0]);
    const T* const gy = elements<const T>(call->gy[0]);
    T* const gx = elements<T>(call->gx[0]);
    const std::int64_t n = size_of(call->gx[0]);
    for (std::int64_t i = 0; i < n; ++i) gx[i] = y[i] > T(0) ? gy[i] : T(0);
    return CATENA_OK;
}

// y = x W^T + b. Its gradient is the function's own composition of products, for which these
// devices have no kernel.
template <class T>
catena_status linear(catena_ctx*, const catena_call* call) {
    const T* const x = elements<const T>(call->x[0]);
    const T* const w = elements<const T>(call->x[1]);
    const T* const b = call->x[2] ? elements<const T>(call->x[2]) : nullptr;
    T* const y = elements<T>(call->y[0]);
    const std::int64_t outputs = call->x[1]->dl.shape[0];
    const std::int64_t rows = outputs > 0 ? size_of(call->y[0]) / outputs : 0;
    const std::int64_t inputs = call->x[1]->dl.shape[1];
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t o = 0; o < outputs; ++o) {
            T sum = b ? b[o] : T(0);
            for (std::int64_t i = 0; i < inputs; ++i) sum += x[r * inputs + i] * w[o * inputs + i];
            y[r * outputs + o] = sum;
        }
    return CATENA_OK;
}

using Run = decltype(catena_kernel::run);

template <class T>
constexpr catena_dtype row[] = {
    catena::plugin::dtype_of<T>()};  // one type variable in both functions

template <class T>
constexpr catena_kernel kernel(const char* function, std::int32_t phase, Run run) {
    return {.struct_size = sizeof(catena_kernel),
            .flags = CATENA_KERNEL_DETERMINISTIC,
            .phase = phase,
            .priority = CATENA_PRIORITY_PORTABLE,
            .function = function,
            .version_min = 1,
            .version_max = 2,  // of linear; relu has one version
            .device = "island",
            .isa = "",
            .types = row<T>,
            .n_types = 1,
            .n_saved = 0,
            .variant = nullptr,
            .retain_x = 0,
            .retain_y = 0,
            .supports = nullptr,
            .plan = nullptr,
            .run = run,
            .name = nullptr};
}
template <class T>
constexpr catena_kernel kernels_for[] = {
    kernel<T>("catena.relu", CATENA_PHASE_FORWARD, relu<T>),
    kernel<T>("catena.relu", CATENA_PHASE_BACKWARD, relu_backward<T>),
    kernel<T>("catena.linear", CATENA_PHASE_FORWARD, linear<T>),
};
const catena_kernel* const kernels[] = {
    &kernels_for<float>[0],  &kernels_for<float>[1],  &kernels_for<float>[2],
    &kernels_for<double>[0], &kernels_for<double>[1], &kernels_for<double>[2],
};
const catena_backend* const backends[] = {&backend};

const catena_plugin table = {
    .struct_size = sizeof(catena_plugin),
    .n_functions = 0,
    .n_kernels = std::size(kernels),
    .n_backends = 1,
    .n_extensions = 0,
    .reserved = 0,
    .functions = nullptr,
    .kernels = kernels,
    .backends = backends,
    .extensions = nullptr,
    .init = nullptr,
    .deinit = nullptr,
};

}  // namespace

extern "C" {
[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] constexpr catena_manifest catena_manifest_v1 =
    catena::plugin::manifest("org.example.own_device", "1.0.0", "", "", "island");

const catena_plugin* catena_plugin_entry_v1(const catena_host* given, catena_ctx*) {
    host = given;
    return &table;
}
}
