// Shared parts of the oneDNN kernels: the engine, calls on one thread, layouts and primitives.
#pragma once

#include <csignal>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <catena/plugin/tables.hpp>
#include <catena/plugin/vendor.hpp>

#include "catena/abi/ext/blas.h"

namespace catena_onednn {

using namespace catena::plugin;
using dnnl::memory;

// While an object of this class exists, oneDNN uses only the calling thread, because its OpenMP
// threads would spin and compete with the host's pool; and signals are blocked, because products of
// oneDNN up to 3.11 point the stack register into the heap, where the frame of a signal handler
// would overwrite other data. The destructor restores both settings of the thread.
class Undisturbed {
public:
    Undisturbed();
    ~Undisturbed();
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

private:
    int threads_ = 1;
    sigset_t signals_;
};

const dnnl::engine& engine();  // [any]
dnnl::stream& stream();        // [any] the calling thread's; calls return when the work is done

// Runs body(i, slot) for each i below n on the host's threads; in each of them, oneDNN uses only
// that thread. Rethrows an exception of a body.
template <class Body>
void parallel(catena_ctx* ctx, std::int64_t n, Body&& body) {
    using B = std::remove_reference_t<Body>;
    const auto piece = [](void* user, std::int64_t begin, std::int64_t end, std::int32_t slot) {
        const Undisturbed guard;
        for (std::int64_t i = begin; i < end; ++i) (*static_cast<B*>(user))(i, slot);
    };
    Pieces(piece, &body).run(ctx, n, 1);
}

inline memory view(const memory::desc& desc, const void* data) {
    return {desc, engine(), const_cast<void*>(data)};
}

// The layout of a caller's tensor, and the layout that a primitive uses.
struct Operand {
    bool direct() const { return plain == inner; }
    std::size_t bytes() const { return inner.get_size(); }
    // With add, a writer adds to the existing values.
    void make_reader() { convert = reorder(plain, inner, false); }
    void make_writer(bool add) { convert = reorder(inner, plain, add); }
    static dnnl::reorder reorder(const memory::desc& from, const memory::desc& to, bool add);

    memory::desc plain;
    memory::desc inner;
    dnnl::reorder convert;
};

inline void convert(const dnnl::reorder& reorder, const memory& from, const memory& to) {
    reorder.execute(stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

// Throws Error if too little memory is left. Call it before oneDNN generates code: it does not
// check whether it got memory for the code, and crashes if it did not.
void require_memory();

// Throws Error unless the implementation is generated code: oneDNN's plain loops are very slow.
void require_fast(const char* implementation);

// Offsets of pieces in one block of scratch memory.
class Layout {
public:
    // Adds a piece and returns its offset in bytes, a multiple of 64.
    std::size_t add(std::size_t bytes) {
        const std::size_t at = size_;
        size_ += (bytes + 63) / 64 * 64;
        return at;
    }
    std::size_t size() const { return size_; }

private:
    std::size_t size_ = 0;
};

template <class T>
T* at(void* base, std::size_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

// A primitive that uses the caller's memory as its scratch memory.
struct Primitive {
    // desc must be made with with_scratchpad().
    template <class P>
    static Primitive make(const typename P::primitive_desc& desc) {
        return {P(desc), desc.scratchpad_desc()};
    }
    std::size_t padding_bytes() const { return padding.get_size(); }
    void run(std::unordered_map<int, memory> arguments, void* scratch) const {
        arguments.emplace(DNNL_ARG_SCRATCHPAD, view(padding, scratch));
        primitive.execute(stream(), arguments);
    }

    dnnl::primitive primitive;
    memory::desc padding;
};
inline dnnl::primitive_attr with_scratchpad() {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
}

std::vector<catena_kernel> convolution_kernels();
extern const catena_blas blas_table;

// Generates the code of all products, if there is none yet. Throws Error. [any]
void generate_products();

}  // namespace catena_onednn
