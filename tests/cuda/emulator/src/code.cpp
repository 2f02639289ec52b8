// Reads fat binaries, and registers the kernels of modules as nvcc's host code asks for it.
#include "code.hpp"

#include <zstd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "config.hpp"
#include "device.hpp"
#include "emulator/control.h"

namespace catena_emulator {
namespace {

// The format of fat binaries is not documented. A header is followed by entries, each with a header.
constexpr std::uint32_t fat_magic = 0xba55ed50, wrapper_magic = 0x466243b1;
struct FatHeader {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;  // of all entries
};
struct FatEntry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes, reserved[2];
    std::uint32_t capability;
    std::uint64_t name, flags, reserved_2, full_bytes;
};
static_assert(sizeof(FatEntry) == 64);
constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;

struct Wrapper {  // what a module registers
    std::uint32_t magic, version;
    const void* data;
    void* unused;
};

template <class T>
T load(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

cudaError_t refused(const std::string& why, cudaError_t error) {
    std::fprintf(stderr, "emulator: code: %s\n", why.c_str());
    return error;
}

// Reads the PTX for the highest capability that the device has.
cudaError_t read_fat_binary(const void* data, std::string* ptx) {
    const char* at = static_cast<const char*>(data);
    const auto head = load<FatHeader>(at);
    at += head.header_bytes;
    const char* const end = at + head.bytes;
    const char* best = nullptr;
    FatEntry found = {};
    for (; at < end;) {
        const auto entry = load<FatEntry>(at);
        if (entry.kind == kind_ptx && entry.capability > found.capability &&
            entry.capability <= static_cast<std::uint32_t>(config().capability)) {
            found = entry;
            best = at + entry.header_bytes;
        }
        at += entry.header_bytes + entry.bytes;
    }
    if (best == nullptr) return cudaErrorNoKernelImageForDevice;
    if ((found.flags & flag_lz4) != 0)
        return refused("expected PTX that is compressed with zstd, got LZ4",
                       cudaErrorInvalidKernelImage);
    if ((found.flags & flag_zstd) == 0) {
        ptx->assign(best, strnlen(best, found.bytes));
        return cudaSuccess;
    }
    ptx->resize(found.full_bytes);
    const std::size_t n = ZSTD_decompress(ptx->data(), ptx->size(), best, found.compressed_bytes);
    if (ZSTD_isError(n) != 0) return refused(ZSTD_getErrorName(n), cudaErrorInvalidKernelImage);
    ptx->resize(strnlen(ptx->data(), n));
    return cudaSuccess;
}

// Returns NN of the line ".target sm_NN".
int capability_of(const std::string& ptx) {
    constexpr const char* words = "\n.target sm_";
    const std::size_t at = ptx.find(words);
    return at == std::string::npos ? 0 : std::atoi(ptx.c_str() + at + std::strlen(words));
}

// What modules registered, and the kernels of libraries. Guarded by api().
struct Registry {
    std::map<const void*, std::unique_ptr<CUkern_st>> functions;  // by host function
    std::map<const void*, std::set<const void*>> of_module;       // functions by handle
    std::set<const void*> kernels;                                // each cudaKernel_t
    std::vector<std::shared_ptr<Code>> modules;                   // all that were registered
};
Registry& registry() {
    static auto* const all = new Registry;
    return *all;
}

}  // namespace

// Code is kept: reports name instructions of kernels whose module is gone.
std::shared_ptr<Code> Code::read(const void* data) {
    const auto* text = static_cast<const char*>(data);
    auto code = std::make_shared<Code>();
    const auto magic = load<std::uint32_t>(text);
    if (magic == fat_magic) code->fat_binary_ = data;
    else if (magic == wrapper_magic) code->fat_binary_ = load<Wrapper>(text).data;
    else if (text[0] == '.' || (text[0] == '/' && text[1] == '/')) code->ptx_ = text;
    else return nullptr;
    static auto* const all = new std::vector<std::shared_ptr<Code>>;
    const std::lock_guard lock(api());
    all->push_back(code);
    return code;
}

cudaError_t Code::parse() {
    if (fat_binary_ != nullptr)
        if (const cudaError_t error = read_fat_binary(fat_binary_, &ptx_); error != cudaSuccess)
            return error;
    if (capability_of(ptx_) > config().capability) return cudaErrorNoKernelImageForDevice;
    try {
        module_.emplace(std::move(ptx_));
    } catch (const std::exception& e) {
        return refused(e.what(), cudaErrorInvalidPtx);
    }
    return cudaSuccess;
}

const char* Code::text() {
    const std::lock_guard lock(mutex_);
    if (!error_.has_value()) error_ = parse();
    return *error_ == cudaSuccess ? module_->text().c_str() : "";
}

cudaError_t Code::find(const std::string& name, const catena_machine::Kernel** kernel) {
    const std::lock_guard lock(mutex_);
    if (!error_.has_value()) error_ = parse();
    if (*error_ != cudaSuccess) return *error_;
    try {
        *kernel = module_->find(name);
    } catch (const std::exception& e) {
        return refused(name + ": " + e.what(), cudaErrorInvalidPtx);
    }
    return *kernel != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}

CUkern_st find_kernel(const void* kernel) {
    const std::lock_guard lock(api());
    const auto function = registry().functions.find(kernel);
    if (function != registry().functions.end()) return *function->second;
    if (!registry().kernels.contains(kernel)) return {};
    return *static_cast<const CUkern_st*>(kernel);
}
void add_kernel(cudaKernel_t kernel) {
    const std::lock_guard lock(api());
    registry().kernels.insert(kernel);
}
void remove_kernel(cudaKernel_t kernel) {
    const std::lock_guard lock(api());
    registry().kernels.erase(kernel);
}

}  // namespace catena_emulator

using namespace catena_emulator;

// These functions are called by nvcc's host code; crt/host_runtime.h declares them for it alone.
const char* catena_emulator_ptx(int i) {
    std::shared_ptr<Code> code;
    {
        const std::lock_guard lock(api());
        const auto& modules = registry().modules;
        if (i < 0 || static_cast<std::size_t>(i) >= modules.size()) return nullptr;
        code = modules[static_cast<std::size_t>(i)];
    }
    return code == nullptr ? "" : code->text();
}

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
    auto code = Code::read(wrapper);
    const std::lock_guard lock(api());
    registry().modules.push_back(code);
    return reinterpret_cast<void**>(new std::shared_ptr<Code>(std::move(code)));
}
void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaRegisterFunction(void** handle, const char* function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
    const auto& code = *reinterpret_cast<const std::shared_ptr<Code>*>(handle);
    auto made = std::make_unique<CUkern_st>(CUkern_st{code, name});
    const std::lock_guard lock(api());
    registry().kernels.insert(made.get());
    registry().functions[function] = std::move(made);
    registry().of_module[handle].insert(function);
}

// Launched kernels that have not ended keep their code.
void __cudaUnregisterFatBinary(void** handle) {
    const std::lock_guard lock(api());
    for (const void* function : registry().of_module[handle]) {
        registry().kernels.erase(registry().functions[function].get());
        registry().functions.erase(function);
    }
    registry().of_module.erase(handle);
    delete reinterpret_cast<std::shared_ptr<Code>*>(handle);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    const std::lock_guard lock(api());
    const auto found = registry().functions.find(function);
    if (found == registry().functions.end()) return note(cudaErrorInvalidDeviceFunction);
    *kernel = found->second.get();
    return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
