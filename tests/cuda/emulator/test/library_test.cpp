// Kernels compiled at run time by NVRTC with PTX in place of machine code, loaded and launched.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

struct Nvrtc {
    void* opened = dlopen(EMULATED_NVRTC, RTLD_NOW | RTLD_LOCAL);
    template <class F>
    F* get(const char* name) const {
        auto* const f = reinterpret_cast<F*>(dlsym(opened, name));
        REQUIRE_MESSAGE(static_cast<bool>(f), name);
        return f;
    }
};

struct Result {
    int status = 0;
    std::string log;
    std::string binary;
};

Result compile(const char* source) {
    REQUIRE(static_cast<bool>(Nvrtc().opened));
    const Nvrtc nvrtc;
    Result result;
    void* program = nullptr;
    const char* header = "#define FACTOR 3\n";
    const char* name = "factor.h";
    REQUIRE(nvrtc.get<int(void**, const char*, const char*, int, const char* const*,
                          const char* const*)>("nvrtcCreateProgram")(&program, source, "mine.cu", 1,
                                                                     &header, &name) == 0);
    const char* options[] = {"--gpu-architecture=sm_90", "-DOFFSET=5", "--std=c++20"};
    result.status =
        nvrtc.get<int(void*, int, const char* const*)>("nvrtcCompileProgram")(program, 3, options);
    const auto text = [&](const char* size, const char* get) {
        std::size_t bytes = 0;
        REQUIRE(nvrtc.get<int(void*, std::size_t*)>(size)(program, &bytes) == 0);
        std::string all(bytes, 0);
        REQUIRE(nvrtc.get<int(void*, char*)>(get)(program, all.data()) == 0);
        return all;
    };
    result.log = text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
    result.binary = text("nvrtcGetCUBINSize", "nvrtcGetCUBIN");
    REQUIRE(nvrtc.get<int(void**)>("nvrtcDestroyProgram")(&program) == 0);
    return result;
}

int run(const Result& made, const char* name) {
    cudaLibrary_t library = nullptr;
    REQUIRE(cudaLibraryLoadData(&library, made.binary.data(), nullptr, nullptr, 0, nullptr, nullptr,
                                0) == cudaSuccess);
    cudaKernel_t kernel = nullptr;
    CHECK(cudaLibraryGetKernel(&kernel, library, "another") == cudaErrorSymbolNotFound);
    cudaGetLastError();
    REQUIRE(cudaLibraryGetKernel(&kernel, library, name) == cudaSuccess);
    int* data = nullptr;
    REQUIRE(cudaMalloc(&data, 40) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(data, 0, 40) == cudaSuccess);
    int value = 7;
    void* args[] = {&data, &value};
    const void* const function = reinterpret_cast<const void*>(kernel);
    REQUIRE(cudaLaunchKernel(function, 2, 5, args, 0, nullptr) == cudaSuccess);
    std::vector<int> got(10);
    REQUIRE(cudaMemcpy(got.data(), data, 40, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int i = 1; i < 10; ++i) CHECK(got[static_cast<std::size_t>(i)] == got[0] + i);
    REQUIRE(cudaFree(data) == cudaSuccess);
    REQUIRE(cudaLibraryUnload(library) == cudaSuccess);
    return got[0];
}

}  // namespace

TEST_CASE("a kernel that is extern C") {
    const Result made = compile(
        "#include \"factor.h\"\n"
        "__device__ int twice(int x) { return 2 * x; }\n"
        "extern \"C\" __global__ void __launch_bounds__(64) mine(int* out, int value) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  out[i] = twice(value) * FACTOR + OFFSET + i;\n"
        "}\n");
    CHECK_MESSAGE(made.status == 0, made.log);
    CHECK(run(made, "mine") == 47);
}

TEST_CASE("what is wrong in a source is told with its name and line") {
    const Result made =
        compile("extern \"C\" __global__ void mine(int* out) {\n  out[0] = nothing;\n}\n");
    CHECK(made.status == 6);
    CHECK(made.log.find("mine.cu(2): error") != std::string::npos);
    CHECK(made.binary.empty());
    cudaLibrary_t library = nullptr;
    CHECK(cudaLibraryLoadData(&library, std::string(200, 'x').data(), nullptr, nullptr, 0, nullptr,
                              nullptr, 0) == cudaErrorInvalidKernelImage);
    cudaGetLastError();
    CHECK(cudaLaunchKernel(&library, 1, 1, nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
}

TEST_CASE("code that the device has not, and code that is none") {
    const auto load = [](const std::string& code) {
        cudaLibrary_t library = nullptr;
        const cudaError_t error =
            cudaLibraryLoadData(&library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        if (error == cudaSuccess) CHECK(cudaLibraryUnload(library) == cudaSuccess);
        cudaGetLastError();
        return error;
    };
    const std::string tail = "\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
    CHECK(load("//\n.version 8.0\n.target sm_80" + tail) == cudaSuccess);
    CHECK(load(".version 8.0\n.target sm_90" + tail) == cudaSuccess);
    CHECK(load(".version 8.0\n.target sm_100" + tail) == cudaErrorNoKernelImageForDevice);
    CHECK(load(".version 8.0\n.target sm_90" + tail + "}") == cudaErrorInvalidPtx);
    CHECK(load(std::string("\x7f"
                           "ELF") +
               std::string(200, '\0')) == cudaErrorInvalidKernelImage);
}
