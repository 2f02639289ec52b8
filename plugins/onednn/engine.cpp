// The engine, the threads and the reorders.
#include "engine.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <string_view>

namespace catena_onednn {
namespace {

// Functions of the OpenMP runtime that libdnnl loaded.
struct OpenMp {
    template <class F>
    static F* find(const char* name) {
        return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
    }
    void (*set)(int) = find<void(int)>("omp_set_num_threads");
    int (*get)() = set != nullptr ? find<int()>("omp_get_max_threads") : nullptr;
};

// Returns all signals but those raised by an instruction, which would end the process if blocked.
const sigset_t& deferrable() {
    static const sigset_t set = [] {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
        return all;
    }();
    return set;
}

const OpenMp& openmp() {
    static const OpenMp runtime;
    return runtime;
}

}  // namespace

Undisturbed::Undisturbed() {
    pthread_sigmask(SIG_BLOCK, &deferrable(), &signals_);
    if (openmp().get == nullptr) return;
    threads_ = openmp().get();
    if (threads_ != 1) openmp().set(1);
}

Undisturbed::~Undisturbed() {
    if (threads_ != 1) openmp().set(threads_);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

// The engine is never destroyed: kernels may run until the process ends.
const dnnl::engine& engine() {
    static const auto* made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
    return *made;
}

dnnl::stream& stream() {
    static thread_local dnnl::stream mine(engine());
    return mine;
}

dnnl::reorder Operand::reorder(const memory::desc& from, const memory::desc& to, bool add) {
    dnnl::primitive_attr attr;
    if (add) {
        dnnl::post_ops ops;
        ops.append_sum(1);
        attr.set_post_ops(ops);
    }
    return dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to, attr));
}

// Checks for more memory than the code of any primitive needs, because other threads allocate at
// the same time: 64 MiB for a heap, 8 MiB for a stack.
void require_memory() {
    stream();  // allocates, as does this thread's first allocation its heap
    constexpr std::size_t bytes = std::size_t{256} << 20;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw Error(CATENA_E_NOMEM, "[onednn] code: expected 256 MiB of memory for it, got less");
    munmap(memory, bytes);
}

void require_fast(const char* implementation) {
    const std::string_view name = implementation;
    const bool generated = name.find("jit") != name.npos || name.find("brg") != name.npos;
    if (!generated || name.substr(0, 4) == "gemm")
        throw Error(CATENA_E_UNSUPPORTED, "oneDNN: no generated code, but " + std::string(name));
}

}  // namespace catena_onednn
