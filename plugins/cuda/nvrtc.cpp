// Compiles kernels at run time: NVRTC makes a cubin for the device's architecture, or PTX if the device is
// newer than NVRTC. Compiling needs neither a GPU nor a driver; loading needs both.
#include "backend.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "dialect.hpp"

struct catena_compiled {
    cudaKernel_t kernel;
};

namespace catena_cuda {
namespace {

constexpr unsigned block = 256;
constexpr int64_t blocks_per_processor = 16;

// NVRTC's functions, with programs as void pointers and results as integers.
struct Nvrtc {
    struct Found {
        template <class F>
        operator F*() const {  // NOLINT: of whatever type
            return reinterpret_cast<F*>(function);
        }
        void* function;
    };
    Found find(const char* name) {
        void* const found = opened.dl != nullptr ? dlsym(opened.dl, name) : nullptr;
        if (found == nullptr && missing == nullptr)
            missing = "expected a newer NVRTC, got one that lacks a function";
        return {found};
    }

    const Library& opened = *library("nvrtc");
    // The reason why it cannot be used, or NULL.
    const char* missing = opened.dl == nullptr ? opened.error.c_str() : nullptr;
    int (*version)(int*, int*) = find("nvrtcVersion");
    int (*n_archs)(int*) = find("nvrtcGetNumSupportedArchs");
    int (*archs)(int*) = find("nvrtcGetSupportedArchs");
    int (*create)(void**, const char*, const char*, int, const char* const*,
                  const char* const*) = find("nvrtcCreateProgram");
    int (*destroy)(void**) = find("nvrtcDestroyProgram");
    int (*compile)(void*, int, const char* const*) = find("nvrtcCompileProgram");
    int (*log_size)(void*, size_t*) = find("nvrtcGetProgramLogSize");
    int (*log)(void*, char*) = find("nvrtcGetProgramLog");
    int (*cubin_size)(void*, size_t*) = find("nvrtcGetCUBINSize");
    int (*cubin)(void*, char*) = find("nvrtcGetCUBIN");
    int (*ptx_size)(void*, size_t*) = find("nvrtcGetPTXSize");
    int (*ptx)(void*, char*) = find("nvrtcGetPTX");
    const char* (*error)(int) = find("nvrtcGetErrorString");
};

const Nvrtc& nvrtc() {
    static const Nvrtc functions;
    return functions;
}

// Machine code if NVRTC knows an architecture of the device's major version, else the newest PTX it knows.
struct Target {
    bool binary;
    int arch;

    explicit Target(int capability) : binary(false), arch(0) {
        int n = 0;
        if (nvrtc().n_archs(&n) != 0 || n <= 0) return;
        std::vector<int> known(static_cast<size_t>(n));
        if (nvrtc().archs(known.data()) != 0) return;
        for (const int a : known)
            if (a <= capability) arch = std::max(arch, a);
        binary = arch == capability || (arch / 10 == capability / 10 && arch < capability);
    }
    std::string option() const {
        return std::string("--gpu-architecture=") + (binary ? "sm_" : "compute_") +
               std::to_string(arch);
    }
};

Target checked_target(catena_ctx* ctx, void* dev) {
    if (nvrtc().missing != nullptr)
        check_status(fail(ctx, CATENA_E_UNSUPPORTED, "[cuda compiler] NVRTC: %s", nvrtc().missing));
    const int capability = device_of(dev).capability;
    const Target target(capability);
    if (target.arch == 0)
        check_status(
            fail(ctx, CATENA_E_UNSUPPORTED,
                 "[cuda compiler] NVRTC: expected one that knows capability %d.%d, got one for "
                 "newer devices",
                 capability / 10, capability % 10));
    return target;
}

// Returns size and modification time of a file; its contents, many megabytes, are not read.
std::string file_stamp(const char* path) {
    struct stat status = {};
    if (stat(path, &status) != 0) return "";
    return " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) +
           "." + std::to_string(status.st_mtim.tv_nsec);
}

constexpr const char* usual_options[] = {"--std=c++20", "--device-as-default-execution-space",
                                         "--disable-warnings"};

catena_status identity(catena_ctx* ctx, void* dev, char* text) {
    return guarded(ctx, "compiler", [&] {
        const std::string arch = checked_target(ctx, dev).option();
        int major = 0;
        int minor = 0;
        nvrtc().version(&major, &minor);
        std::string all =
            "nvrtc " + std::to_string(major) + "." + std::to_string(minor) + " " + arch;
        for (const char* option : usual_options) all += std::string(" ") + option;
        // Builds of the same version may differ, so the file is part of the identity.
        Dl_info info = {};
        if (dladdr(reinterpret_cast<void*>(nvrtc().version), &info) != 0 && info.dli_fname)
            all += std::string(" ") + info.dli_fname + file_stamp(info.dli_fname);
        std::snprintf(text, CATENA_COMPILER_IDENTITY, "%s", all.c_str());
    });
}

struct Program {
    void* handle = nullptr;
    ~Program() {
        if (handle != nullptr) nvrtc().destroy(&handle);
    }
};

catena_status compile(catena_ctx* ctx, void* dev, const catena_compilation* c) {
    return guarded(ctx, "compiler", [&] {
        const Target target = checked_target(ctx, dev);
        const std::string arch = target.option();
        // Adds the entry function, whose name profilers show.
        const std::string source = std::string(c->source) + "\nextern \"C\" __global__ void " +
                                   c->name +
                                   "(const catena_kernel::catena_arguments catena_args) {\n"
                                   "    catena_kernel::catena_body(catena_args);\n}\n";
        std::vector<const char*> options = {arch.c_str()};
        options.insert(options.end(), std::begin(usual_options), std::end(usual_options));
        for (const char* const* o = c->options; o != nullptr && *o != nullptr; ++o)
            options.push_back(*o);
        Program program;
        int error = nvrtc().create(&program.handle, source.c_str(), c->name, 0, nullptr, nullptr);
        if (error == 0)
            error =
                nvrtc().compile(program.handle, static_cast<int>(options.size()), options.data());
        if (error != 0) {
            size_t bytes = 0;
            std::string log;
            if (program.handle != nullptr && nvrtc().log_size(program.handle, &bytes) == 0) {
                log.resize(bytes);
                nvrtc().log(program.handle, log.data());
            }
            // An invalid option leaves the log empty.
            if (log.size() <= 1) log = std::string(nvrtc().error(error)) + " of " + arch;
            if (log.size() <= 1 || log.back() != '\0') log += '\0';
            for (const char* const* o = c->options; o != nullptr && *o != nullptr; ++o)
                log.insert(log.size() - 1, std::string(" ") + *o);
            c->messages(c->user, log.c_str());
            check_status(CATENA_E_INVALID);
        }
        size_t bytes = 0;
        error = (target.binary ? nvrtc().cubin_size : nvrtc().ptx_size)(program.handle, &bytes);
        std::vector<char> binary(error == 0 ? bytes : 0);
        if (!binary.empty())
            error = (target.binary ? nvrtc().cubin : nvrtc().ptx)(program.handle, binary.data());
        if (error != 0 || binary.empty())  // such as with -dlto, which makes neither
            check_status(fail(ctx, CATENA_E_DEVICE,
                              "[cuda compiler] NVRTC: expected code of '%s' for %s, got none (%s)",
                              c->name, arch.c_str(), nvrtc().error(error)));
        c->binary(c->user, binary.data(), binary.size());
    });
}

catena_status load(catena_ctx* ctx, void* dev, const catena_binary* binary,
                   const catena_compiled** kernel) {
    Scope scope(ctx, "load", dev);
    const BesideRecording beside(scope);
    cudaLibrary_t code = nullptr;
    cudaKernel_t entry = nullptr;
    if (!scope.ok() || !scope.check(cudaLibraryLoadData(&code, binary->data, nullptr, nullptr, 0,
                                                        nullptr, nullptr, 0),
                                    "cudaLibraryLoadData", binary->name))
        return scope.status();
    catena_compiled* made = nullptr;
    if (scope.check(cudaLibraryGetKernel(&entry, code, binary->name), "cudaLibraryGetKernel",
                    binary->name))
        made = new (std::nothrow) catena_compiled{entry};
    *kernel = made;
    if (made != nullptr) return CATENA_OK;
    static_cast<void>(cudaLibraryUnload(code));
    return scope.ok() ? fail(ctx, CATENA_E_NOMEM, "[%s] out of memory", binary->name)
                      : scope.status();
}

unsigned power_of_two(int64_t n, unsigned most) {
    unsigned power = 1;
    while (power < most && power < n) power *= 2;
    return power;
}

// Returns the block shape. For reductions it depends on the data's shape alone, and so do the results.
dim3 block_of(const catena_launch& launch) {
    if (launch.kind == CATENA_LAUNCH_ROWS) {
        const unsigned team = power_of_two((launch.cost + 3) / 4, block);
        return dim3(team, block / team);
    }
    if (launch.kind == CATENA_LAUNCH_COLUMNS) {
        const unsigned team = power_of_two((launch.cost + 3) / 4, 8);
        return dim3(block / team, team);
    }
    return dim3(block);
}

catena_status launch(catena_ctx* ctx, const catena_launch* launch) {
    Scope scope(ctx, "launch", launch->dev);
    const dim3 threads = block_of(*launch);
    const int64_t at_once = launch->kind == CATENA_LAUNCH_ROWS ? threads.y : threads.x;
    const int64_t most = std::max(1, device_of(launch->dev).processors) * blocks_per_processor;
    cudaLaunchConfig_t config = {};
    config.gridDim =
        dim3(static_cast<unsigned>(std::min((launch->n + at_once - 1) / at_once, most)));
    config.blockDim = threads;
    config.stream = cuda(launch->stream);
    void* args[] = {const_cast<void*>(launch->args)};
    return scope.end(
        cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(launch->kernel->kernel), args),
        "cudaLaunchKernelExC");
}

}  // namespace

const catena_compiler compiler_table = {
    .struct_size = sizeof(catena_compiler),
    .reserved = 0,
    .name = "CUDA",
    .dialect = dialect.data(),
    .reduction_pieces = 1024,
    .reduction_least = 4096,
    .identity = identity,
    .compile = compile,
    .load = load,
    .launch = launch,
};

}  // namespace catena_cuda
