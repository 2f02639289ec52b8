// NVIDIA's libraries and their handles. A cuBLAS handle uses the workspace of its stream, so that results do
// not depend on other streams and nothing is allocated while a graph is recorded.
#include "backend.hpp"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace catena_cuda {
namespace {

// Describes a library: how to find it, and the names of the functions for its handles. They are called
// with handles and streams as pointers and with statuses as integers.
struct Kind {
    const char* name;
    const char* soname;
    const char* variable;
    std::string Settings::*path;
    const char* version;           // size_t f(), int f(property, int*) or int f(int*, int*)
    const char* create = nullptr;  // NULL: it has no handles
    const char* destroy = nullptr;
    const char* set_stream = nullptr;
    const char* error_name = nullptr;  // const char* f(status)
    int no_memory[2] = {};             // statuses that mean out of memory
};

constexpr int cuda_major = CUDART_VERSION / 1000;
static_assert(cuda_major == 13 || cuda_major == 12, "name the libraries of this CUDA below");
constexpr bool is_13 = cuda_major == 13;

constexpr Kind kinds[] = {
    {"cublas",
     is_13 ? "libcublas.so.13" : "libcublas.so.12",
     "CATENA_CUBLAS",
     &Settings::cublas,
     "cublasGetProperty",
     "cublasCreate_v2",
     "cublasDestroy_v2",
     "cublasSetStream_v2",
     "cublasGetStatusName",
     {3, 3}},
    {"cudnn",
     "libcudnn.so.9",
     "CATENA_CUDNN_LIBRARY",
     &Settings::cudnn,
     "cudnnGetVersion",
     "cudnnCreate",
     "cudnnDestroy",
     "cudnnSetStream",
     "cudnnGetErrorString",
     {4003, 4004}},
    {"nvrtc", is_13 ? "libnvrtc.so.13" : "libnvrtc.so.12", "CATENA_NVRTC", &Settings::nvrtc,
     "nvrtcVersion"},
};
constexpr int n_kinds = sizeof kinds / sizeof kinds[0];

template <class F>
F* function(const Library& library, const char* name) {
    return reinterpret_cast<F*>(dlsym(library.dl, name));
}

std::int64_t version_of(const Library& library, const Kind& kind) {
    if (std::strcmp(kind.name, "cudnn") == 0) {
        auto* const version = function<size_t()>(library, kind.version);
        return version != nullptr ? static_cast<std::int64_t>(version()) : 0;
    }
    int major = 0;
    int minor = 0;
    if (std::strcmp(kind.name, "nvrtc") == 0) {
        auto* const version = function<int(int*, int*)>(library, kind.version);
        if (version != nullptr) version(&major, &minor);
        return major * 1000 + minor * 10;
    }
    // The same number as CUBLAS_VERSION: 130002 for 13.0.2.
    int patch = 0;
    auto* const property = function<int(int, int*)>(library, kind.version);
    if (property == nullptr || property(0, &major) != 0 || property(1, &minor) != 0 ||
        property(2, &patch) != 0)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

// Opens libnvrtc-builtins from NVRTC's folder: NVRTC opens it by name alone, and might find that of another
// CUDA version. If it is missing there, NVRTC still searches for it and reports the error.
void open_builtins(const Library& nvrtc) {
    Dl_info info = {};
    if (dladdr(dlsym(nvrtc.dl, "nvrtcVersion"), &info) == 0 || info.dli_fname == nullptr) return;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    if (slash == nullptr) return;
    const std::string path = std::string(info.dli_fname, slash) + "/libnvrtc-builtins.so." +
                             std::to_string(nvrtc.version / 1000) + "." +
                             std::to_string(nvrtc.version % 1000 / 10);
    static_cast<void>(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
}

Library open_library(const Kind& kind) {
    Library library;
    const std::string& path = settings().*kind.path;
    library.dl = dlopen(path.empty() ? kind.soname : path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string reason = library.dl == nullptr ? dlerror() : "";
    if (library.dl == nullptr && path.empty())
        library.dl = dlopen((std::string("/usr/local/cuda/lib64/") + kind.soname).c_str(),
                            RTLD_NOW | RTLD_LOCAL);
    for (const char* name : {kind.version, kind.create, kind.destroy, kind.set_stream}) {
        if (library.dl == nullptr || name == nullptr || dlsym(library.dl, name) != nullptr)
            continue;
        reason = std::string("a library without ") + name;
        library.dl = nullptr;
    }
    if (library.dl == nullptr) {
        library.error = std::string("expected ") + kind.soname + " (a path in " + kind.variable +
                        " goes first), got: " + reason;
        return library;
    }
    library.version = version_of(library, kind);
    if (std::strcmp(kind.name, "nvrtc") == 0) open_builtins(library);
    return library;
}

const Library& library_of(int kind) {
    struct Opened {
        std::once_flag once;
        Library opened;
    };
    static auto* const all = new Opened[n_kinds];
    std::call_once(all[kind].once, [kind] { all[kind].opened = open_library(kinds[kind]); });
    return all[kind].opened;
}

int kind_of(const char* name) {
    for (int i = 0; i < n_kinds; ++i)
        if (std::strcmp(kinds[i].name, name) == 0) return i;
    return -1;
}

// The number of this thread: the lowest that no other running thread has.
class ThreadNumber {
public:
    static int get() {
        static thread_local const ThreadNumber mine;
        return mine.number_;
    }
    ThreadNumber(const ThreadNumber&) = delete;
    ThreadNumber& operator=(const ThreadNumber&) = delete;

private:
    struct Taken {
        std::mutex mutex;
        std::vector<bool> by;
    };
    static Taken& taken() {
        static auto* const all = new Taken;
        return *all;
    }
    ThreadNumber() {
        Taken& all = taken();
        const std::lock_guard lock(all.mutex);
        const auto free = std::find(all.by.begin(), all.by.end(), false);
        number_ = static_cast<int>(free - all.by.begin());
        if (free == all.by.end()) all.by.push_back(true);
        else *free = true;
    }
    ~ThreadNumber() {
        Taken& all = taken();
        const std::lock_guard lock(all.mutex);
        all.by[static_cast<std::size_t>(number_)] = false;
    }
    int number_;
};

struct Handle {
    int thread;
    int kind;
    User user;
    void* handle;
};
struct StreamHandles {
    std::vector<Handle> handles;
    void* workspace = nullptr;  // of cuBLAS
};
// Device and stream; each device has its own stream 0.
using Place = std::pair<int, cudaStream_t>;
struct Streams {
    std::mutex mutex;
    std::map<Place, StreamHandles> handles;
    std::atomic<std::uint64_t> dropped = 0;
};
Streams& streams() {
    static auto* const all = new Streams;
    return *all;
}

// Throws if a library call failed, and gives the host a message.
struct Caller {
    catena_ctx* ctx;
    int device;
    const Kind& kind;
    const Library& opened;

    void check(int status, const char* call) const {
        if (status == 0) return;
        static_cast<void>(cudaGetLastError());  // clears the CUDA error that the library left
        const char* text = "";
        if (auto* const name = function<const char*(int)>(opened, kind.error_name))
            text = name(status);
        const bool memory = status == kind.no_memory[0] || status == kind.no_memory[1];
        check_status(fail(ctx, memory ? CATENA_E_NOMEM : CATENA_E_DEVICE,
                          "[cuda vendor] %s on device %d: status %d (%s)", call, device, status,
                          text));
    }
};

// Returns the workspace size that NVIDIA recommends.
size_t workspace_bytes(int device) {
    int major = 0;
    static_cast<void>(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return (major >= 9 ? size_t{32} : size_t{4}) << 20;
}

// Sets the workspace, and the mode that accumulates float16 and bfloat16 products in float32 throughout.
void set_up_cublas(const Caller& call, cudaStream_t stream, void* handle) {
    Scope scope(call.ctx, "vendor", call.device);
    const size_t bytes = workspace_bytes(call.device);
    void* workspace = nullptr;
    {
        const std::lock_guard lock(streams().mutex);
        void*& kept = streams().handles[{call.device, stream}].workspace;
        if (kept == nullptr &&
            scope.check(cudaMalloc(&workspace, bytes), "cudaMalloc", "the workspace of cuBLAS"))
            kept = workspace;
        workspace = kept;
    }
    check_status(scope.status());
    auto* const set_workspace =
        function<int(void*, void*, size_t)>(call.opened, "cublasSetWorkspace_v2");
    auto* const set_mode = function<int(void*, int)>(call.opened, "cublasSetMathMode");
    if (set_workspace == nullptr || set_mode == nullptr)
        check_status(
            fail(call.ctx, CATENA_E_UNSUPPORTED,
                 "[cuda vendor] cublas: expected cublasSetWorkspace_v2 and cublasSetMathMode, "
                 "got a library without"));
    call.check(set_workspace(handle, workspace, bytes), "cublasSetWorkspace");
    call.check(
        set_mode(handle, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
        "cublasSetMathMode");
}

void* make_handle(const Caller& call, cudaStream_t stream, User user) {
    const Kind& kind = call.kind;
    Scope scope(call.ctx, "vendor", call.device);
    const BesideRecording beside(scope);
    check_status(scope.status());
    void* made = nullptr;
    call.check(function<int(void**)>(call.opened, kind.create)(&made), kind.create);
    try {
        call.check(function<int(void*, cudaStream_t)>(call.opened, kind.set_stream)(made, stream),
                   kind.set_stream);
        // Must follow set_stream, which resets the workspace.
        if (std::strcmp(kind.name, "cublas") == 0) set_up_cublas(call, stream, made);
        const std::lock_guard lock(streams().mutex);
        streams().handles[{call.device, stream}].handles.push_back(
            {ThreadNumber::get(), static_cast<int>(&kind - kinds), user, made});
    } catch (...) {
        function<int(void*)>(call.opened, kind.destroy)(made);
        throw;
    }
    return made;
}

// The handle that the thread used last: consecutive products usually use the same stream.
struct Last {
    Place place;
    int kind = -1;
    std::uint64_t dropped;
    void* handle;
};
thread_local Last last_of[2];  // indexed by User

void check_opened(catena_ctx* ctx, const char* name, const Library& library) {
    if (library.dl == nullptr)
        check_status(
            fail(ctx, CATENA_E_UNSUPPORTED, "[cuda vendor] %s: %s", name, library.error.c_str()));
}

catena_status CATENA_CALL handle(catena_ctx* ctx, void* dev, catena_stream* stream,
                                 const char* name, void** out) {
    *out = nullptr;
    return guarded(ctx, "vendor", [&] {
        *out = handle_of(ctx, device_of(dev).ordinal, cuda(stream), name, User::others);
    });
}

catena_status CATENA_CALL find_library(catena_ctx* ctx, const char* name, void** dl_handle,
                                       int64_t* version) {
    *dl_handle = nullptr;
    *version = 0;
    return guarded(ctx, "vendor", [&] {
        const Library* found = library(name);
        if (found == nullptr)
            check_status(fail(ctx, CATENA_E_UNSUPPORTED,
                              "[cuda vendor] library: expected cublas, cudnn or nvrtc, got '%s'",
                              name));
        check_opened(ctx, name, *found);
        *dl_handle = found->dl;
        *version = found->version;
    });
}

}  // namespace

const Library* library(const char* name) {
    const int kind = kind_of(name);
    return kind >= 0 ? &library_of(kind) : nullptr;
}

void* handle_of(catena_ctx* ctx, int device, cudaStream_t stream, const char* name, User user) {
    const int kind = kind_of(name);
    if (kind < 0 || kinds[kind].create == nullptr)
        check_status(fail(ctx, CATENA_E_UNSUPPORTED,
                          "[cuda vendor] library with handles: expected cublas or cudnn, got '%s'",
                          name));
    const std::uint64_t dropped = streams().dropped.load(std::memory_order_acquire);
    const Place place = {device, stream};
    Last& last = last_of[static_cast<int>(user)];
    if (last.kind == kind && last.place == place && last.dropped == dropped) return last.handle;
    const Library& library = library_of(kind);
    check_opened(ctx, name, library);
    const int thread = ThreadNumber::get();
    void* handle = nullptr;
    {
        const std::lock_guard lock(streams().mutex);
        const auto found = streams().handles.find(place);
        if (found != streams().handles.end())
            for (const Handle& h : found->second.handles)
                if (h.kind == kind && h.thread == thread && h.user == user) handle = h.handle;
    }
    if (handle == nullptr) handle = make_handle({ctx, device, kinds[kind], library}, stream, user);
    last = {place, kind, dropped, handle};
    return handle;
}

void drop_handles(int device, cudaStream_t stream) {
    StreamHandles mine;
    {
        const std::lock_guard lock(streams().mutex);
        const auto found = streams().handles.find({device, stream});
        if (found == streams().handles.end()) return;
        mine = std::move(found->second);
        streams().handles.erase(found);
        streams().dropped.fetch_add(1, std::memory_order_release);
    }
    static_cast<void>(cudaStreamSynchronize(stream));
    for (const Handle& h : mine.handles)
        function<int(void*)>(library_of(h.kind), kinds[h.kind].destroy)(h.handle);
    static_cast<void>(cudaFree(mine.workspace));
}

const catena_vendor vendor_table = {
    .struct_size = sizeof(catena_vendor),
    .reserved = 0,
    .handle = handle,
    .open = find_library,
};

}  // namespace catena_cuda
