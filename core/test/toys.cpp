// Builds the tables of the tests' plugins, and implements the two test devices.
#include "toys.hpp"

#include "graph/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>

namespace toys {

struct Plugin::Tables {
    std::string id;
    catena_plugin plugin{};
    std::deque<catena_function> functions;
    std::deque<catena_port_spec> ports;
    std::deque<catena_attr_spec> attributes;
    std::deque<catena_kernel> kernels;
    std::deque<catena_backend> backends;
    std::deque<catena_extension> extensions;
    std::deque<std::vector<catena_dtype>> rows;
    std::deque<std::vector<const catena_port_spec*>> port_lists;
    std::map<const catena_function*, std::vector<const catena_attr_spec*>> attribute_lists;
    std::vector<const catena_function*> function_list;
    std::vector<const catena_kernel*> kernel_list;
    std::vector<const catena_backend*> backend_list;
    std::vector<const catena_extension*> extension_list;
};

Plugin::Plugin(std::string id)
    : tables_([]() -> Tables& {
          static auto* all = new std::deque<Tables>;
          return all->emplace_back();
      }()) {
    tables_.id = std::move(id);
}

catena_function& Plugin::function(const char* name, std::initializer_list<Port> inputs,
                                  std::initializer_list<Port> outputs, Infer infer) {
    const auto list = [&](std::initializer_list<Port> ports) {
        auto& pointers = tables_.port_lists.emplace_back();
        for (const Port& port : ports) {
            pointers.push_back(&tables_.ports.emplace_back(
                catena_port_spec{sizeof(catena_port_spec), port.flags, port.name, "", port.type}));
        }
        return pointers.data();
    };
    catena_function& f = tables_.functions.emplace_back();
    f.struct_size = sizeof(f);
    f.name = name;
    f.doc = "";
    f.version = 1;
    f.n_inputs = static_cast<std::uint32_t>(inputs.size());
    f.n_outputs = static_cast<std::uint32_t>(outputs.size());
    f.inputs = list(inputs);
    f.outputs = list(outputs);
    f.infer = infer;
    tables_.function_list.push_back(&f);
    return f;
}

catena_attr_spec& Plugin::attribute(catena_function& function, const char* name,
                                    std::int32_t kind) {
    catena_attr_spec& spec = tables_.attributes.emplace_back();
    spec.struct_size = sizeof(spec);
    spec.kind = kind;
    spec.name = name;
    spec.doc = "";
    spec.def.kind = kind;
    spec.def.n = 1;
    if (kind == CATENA_ATTR_STRING) spec.def.v.s = "";
    if (kind == CATENA_ATTR_INTS || kind == CATENA_ATTR_FLOATS) spec.def.n = 0;
    if (kind == CATENA_ATTR_DTYPE) spec.def.v.dtype = catena::to_abi(catena::Dtype::float32);
    auto& list = tables_.attribute_lists[&function];
    list.push_back(&spec);
    function.attrs = list.data();
    function.n_attrs = static_cast<std::uint32_t>(list.size());
    return spec;
}

catena_kernel& Plugin::kernel(const char* function, Run run, std::int32_t phase,
                              const char* device) {
    catena_kernel& k = tables_.kernels.emplace_back();
    k.struct_size = sizeof(k);
    k.flags = CATENA_KERNEL_DETERMINISTIC;
    k.phase = phase;
    k.priority = CATENA_PRIORITY_PORTABLE;
    k.function = function;
    k.version_min = 1;
    k.version_max = 1;
    k.device = device;
    k.isa = "";
    k.run = run;
    types(k, {{catena::Dtype::float32}, {catena::Dtype::float64}});
    tables_.kernel_list.push_back(&k);
    return k;
}

void Plugin::types(catena_kernel& kernel, const Types& rows) {
    auto& flat = tables_.rows.emplace_back();
    for (const auto& row : rows) {
        for (catena::Dtype dtype : row) flat.push_back(catena::to_abi(dtype));
    }
    kernel.types = flat.data();
    kernel.n_types = static_cast<std::uint32_t>(rows.size());
}

void Plugin::extension(const char* id, const char* device, std::int32_t priority,
                       const void* table) {
    tables_.extension_list.push_back(&tables_.extensions.emplace_back(
        catena_extension{sizeof(catena_extension), priority, id, device, table}));
}

catena_plugin& Plugin::table() {
    catena_plugin& p = tables_.plugin;
    p.struct_size = sizeof(p);
    p.n_functions = static_cast<std::uint32_t>(tables_.function_list.size());
    p.n_kernels = static_cast<std::uint32_t>(tables_.kernel_list.size());
    p.n_backends = static_cast<std::uint32_t>(tables_.backend_list.size());
    p.n_extensions = static_cast<std::uint32_t>(tables_.extension_list.size());
    p.functions = tables_.function_list.data();
    p.kernels = tables_.kernel_list.data();
    p.backends = tables_.backend_list.data();
    p.extensions = tables_.extension_list.data();
    return p;
}

const catena::PluginEntry& Plugin::add() {
    return catena::Registry::get().add(tables_.id, "/toys/" + tables_.id, table());
}

Memory& memory(const std::string& device) {
    static std::mutex mutex;
    static auto* all = new std::map<std::string, Memory>;
    const std::lock_guard lock(mutex);
    return (*all)[device];
}

void Seen::clear() {
    forward = backward = gradient = adds = 0;
    targets = 0;
    flags = n_saved = 0;
}

Seen& seen(const std::string& function) {
    static std::mutex mutex;
    static auto* all = new std::map<std::string, Seen>;
    const std::lock_guard lock(mutex);
    return (*all)[function];
}

namespace {

// Pointers into the vault's memory are shifted to addresses that the host cannot access.
constexpr std::int32_t vault_type = 12;
constexpr std::uintptr_t vault_shift = std::uintptr_t{1} << 60;

void* shown(void* real) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(real) + vault_shift);
}
void* real(const void* shown_pointer) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(shown_pointer) - vault_shift);
}

struct ToyDevice {
    std::string name;
    Memory* memory;
    bool hidden;
    std::atomic<int> threads{2};
};

catena_status toy_count(catena_ctx*, std::int32_t* n) {
    *n = 3;
    return CATENA_OK;
}
catena_status vault_count(catena_ctx*, std::int32_t* n) {
    *n = 2;
    return CATENA_OK;
}
catena_status open_device(catena_ctx*, const char* backend, std::int32_t ordinal, void** dev) {
    const std::string name = fmt::format("{}:{}", backend, ordinal);
    static auto* devices = new std::deque<ToyDevice>;
    ToyDevice& device = devices->emplace_back();
    device.name = name;
    device.memory = &memory(name);
    device.hidden = std::string_view(backend) == "vault";
    *dev = &device;
    return CATENA_OK;
}
catena_status toy_open(catena_ctx* ctx, std::int32_t ordinal, void** dev) {
    if (ordinal == 2) return fail(ctx, CATENA_E_DEVICE, "it is unplugged");
    return open_device(ctx, "toy", ordinal, dev);
}
catena_status vault_open(catena_ctx* ctx, std::int32_t ordinal, void** dev) {
    return open_device(ctx, "vault", ordinal, dev);
}
void close_device(void* dev) { ++static_cast<ToyDevice*>(dev)->memory->closed; }
std::int32_t supports_isa(void*, const char* isa) { return std::strcmp(isa, "toy-v2") == 0; }

catena_status alloc(catena_ctx* ctx, void* dev, catena_stream*, std::uint64_t bytes, void** data) {
    auto& device = *static_cast<ToyDevice*>(dev);
    Memory& m = *device.memory;
    ++m.allocations;
    if (m.live_bytes + static_cast<std::int64_t>(bytes) > m.limit || bytes > (1u << 30)) {
        return fail(ctx, CATENA_E_NOMEM, fmt::format("{} is full", device.name));
    }
    void* block = std::aligned_alloc(64, (bytes + 63) & ~std::uint64_t{63});
    std::memset(block, 0xff, bytes);  // NaN: makes reads of uninitialized memory visible
    m.live_bytes += static_cast<std::int64_t>(bytes);
    *data = device.hidden ? shown(block) : block;
    return CATENA_OK;
}
void free_memory(void* dev, catena_stream*, void* data, std::uint64_t bytes) {
    auto& device = *static_cast<ToyDevice*>(dev);
    device.memory->live_bytes -= static_cast<std::int64_t>(bytes);
    std::free(device.hidden ? real(data) : data);
}
catena_status copy(catena_ctx* ctx, void* dev, catena_stream*, void* dst, const void* src,
                   std::uint64_t bytes, std::int32_t direction) {
    auto& device = *static_cast<ToyDevice*>(dev);
    ++device.memory->copies;
    if (device.hidden) {
        if (direction != CATENA_COPY_DEVICE_TO_HOST) dst = real(dst);
        if (direction != CATENA_COPY_HOST_TO_DEVICE) src = real(src);
    }
    if (bytes == 0) return fail(ctx, CATENA_E_INVALID, "a copy of nothing");
    std::memcpy(dst, src, bytes);
    return CATENA_OK;
}
catena_status sync(catena_ctx*, void*) { return CATENA_OK; }

std::int32_t threads_count(void* dev) { return static_cast<ToyDevice*>(dev)->threads; }
void threads_set(void* dev, std::int32_t n) {
    static_cast<ToyDevice*>(dev)->threads = n < 1 ? 2 : n;
}
// Runs the pieces in reverse order, because no caller may rely on their order.
void threads_for(void* dev, std::int64_t n, std::int64_t grain, catena_range_fn fn, void* user) {
    const int slots = static_cast<ToyDevice*>(dev)->threads;
    const std::int64_t pieces = (n + grain - 1) / grain;
    for (std::int64_t p = pieces - 1; p >= 0; --p) {
        fn(user, p * grain, std::min(n, (p + 1) * grain), static_cast<std::int32_t>(p % slots));
    }
}
const catena_threads threads_table = {sizeof(catena_threads), 0, threads_count, threads_set,
                                      threads_for};
const void* get_extension(void*, const char* id) {
    return std::strcmp(id, CATENA_THREADS_1) == 0 ? &threads_table : nullptr;
}

template <class T>
T& element(const catena_tensor& tensor, std::int64_t i) {
    char* data = static_cast<char*>(tensor.dl.data);
    if (tensor.dl.device_type == vault_type) data = static_cast<char*>(real(data));
    return reinterpret_cast<T*>(data + tensor.dl.byte_offset)[i];
}

}  // namespace

int run_alone(const std::string& test_case, const std::string& variable, const std::string& value,
              std::string* output) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = fmt::format("{}='{}' '{}' --no-skip --test-case='{}' 2>&1",
                                            variable, value, self, test_case);
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return -1;
    std::string text;
    char buffer[4096];
    while (const std::size_t n = std::fread(buffer, 1, sizeof(buffer), pipe))
        text.append(buffer, n);
    const int status = pclose(pipe);
    const bool ran = text.find("1 passed") != text.npos || text.find("1 failed") != text.npos;
    if (output) *output = std::move(text);
    return ran ? status : -1;
}

catena_backend& Plugin::backend(const char* name, std::int32_t type, std::uint32_t flags) {
    catena_backend& b = tables_.backends.emplace_back();
    const bool vault = std::string_view(name) == "vault";
    b.struct_size = sizeof(b);
    b.flags = flags;
    b.name = name;
    b.doc = "";
    b.dlpack_type = type;
    b.count = vault ? vault_count : toy_count;
    b.open = vault ? vault_open : toy_open;
    b.close = close_device;
    b.supports_isa = supports_isa;
    b.alloc = alloc;
    b.free = free_memory;
    b.copy = copy;
    b.sync = sync;
    if (!vault) b.get_extension = get_extension;
    tables_.backend_list.push_back(&b);
    return b;
}

double get(const catena_tensor& t, std::int64_t i) {
    catena::Dtype dtype{};
    catena::from_abi(t.dl.dtype, dtype);
    switch (dtype) {
        case catena::Dtype::float64: return element<double>(t, i);
        case catena::Dtype::int32: return element<std::int32_t>(t, i);
        case catena::Dtype::int64: return static_cast<double>(element<std::int64_t>(t, i));
        default: return element<float>(t, i);
    }
}

void put(const catena_tensor& t, std::int64_t i, double value, std::uint8_t req) {
    if (req == CATENA_REQ_ADD) value += get(t, i);
    catena::Dtype dtype{};
    catena::from_abi(t.dl.dtype, dtype);
    switch (dtype) {
        case catena::Dtype::float64: element<double>(t, i) = value; break;
        case catena::Dtype::int32:
            element<std::int32_t>(t, i) = static_cast<std::int32_t>(value);
            break;
        case catena::Dtype::int64:
            element<std::int64_t>(t, i) = static_cast<std::int64_t>(value);
            break;
        default: element<float>(t, i) = static_cast<float>(value); break;
    }
}

std::int64_t count(const catena_tensor& t) {
    std::int64_t n = 1;
    for (int i = 0; i < t.dl.ndim; ++i) n *= t.dl.shape[i];
    return n;
}

catena_status fail(catena_ctx* ctx, catena_status status, const std::string& text) {
    return catena::host_table().fail(ctx, status, text.c_str());
}

catena_var* call(catena_ctx* ctx, const char* function, std::initializer_list<catena_var*> x,
                 std::initializer_list<catena_named_value> attributes) {
    const catena_host& host = catena::host_table();
    const catena_callable* callable = nullptr;
    catena_var* y = nullptr;
    if (host.find(ctx, function, &callable) != CATENA_OK) return nullptr;
    host.call(ctx, callable, attributes.begin(), static_cast<std::uint32_t>(attributes.size()),
              x.begin(), static_cast<std::uint32_t>(x.size()), &y, 1);
    return y;
}

catena_value integer(std::int64_t value) {
    catena_value v{CATENA_ATTR_INT, 1, {}};
    v.v.i = value;
    return v;
}
catena_value number(double value) {
    catena_value v{CATENA_ATTR_FLOAT, 1, {}};
    v.v.f = value;
    return v;
}
catena_value integers(const std::vector<std::int64_t>& list) {
    catena_value v{CATENA_ATTR_INTS, static_cast<std::uint32_t>(list.size()), {}};
    v.v.ints = list.data();
    return v;
}

catena_status infer_same(catena_ctx* ctx, const catena_value*, const catena_meta* const* x,
                         std::uint32_t n_x, catena_meta* const* y, std::uint32_t n_y) {
    for (std::uint32_t i = 1; i < n_x; ++i) {
        if (!x[i]) continue;
        if (x[i]->ndim == x[0]->ndim &&
            std::equal(x[i]->shape, x[i]->shape + x[i]->ndim, x[0]->shape)) {
            continue;
        }
        return fail(ctx, CATENA_E_SHAPE,
                    fmt::format("input {}: expected shape {}, got {}", i,
                                catena::shape_to_string(x[0]->shape, x[0]->ndim),
                                catena::shape_to_string(x[i]->shape, x[i]->ndim)));
    }
    for (std::uint32_t i = 0; i < n_y; ++i) {
        y[i]->ndim = x[0]->ndim;
        y[i]->dtype = x[0]->dtype;
        std::copy(x[0]->shape, x[0]->shape + x[0]->ndim, y[i]->shape);
    }
    return CATENA_OK;
}

}  // namespace toys
