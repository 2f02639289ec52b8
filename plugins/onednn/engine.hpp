// What every kernel here needs: oneDNN's engine, its calls on one thread, and made primitives kept.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include <catena/plugin/tables.hpp>
#include <catena/plugin/vendor.hpp>

#include "catena/abi/ext/blas.h"

namespace catena_onednn {

using namespace catena::plugin;
using dnnl::memory;

// While it lives, oneDNN uses the calling thread alone, as its OpenMP threads would spin against the
// host's pool, and signals wait: products point the stack register into the heap, where a handler's
// frame would overwrite what lies below (oneDNN up to 3.11). Both settings are the
// thread's own, and are given back.
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

// Runs body(i, slot) for each i below n on the host's threads, with oneDNN on each of them alone. Throws
// what a body threw.
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

// A tensor as the caller has it, and as a primitive wants it.
struct Operand {
    bool direct() const { return plain == inner; }
    std::size_t bytes() const { return inner.get_size(); }
    // Both may add to what is there.
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

// oneDNN does not check the memory that it writes generated code to, and crashes where it gets none: ask
// before it generates any. Throws Error.
void require_memory();

// oneDNN's own loops without generated code are slower than anything.
void require_fast(const char* implementation);

// Places in one block of scratch memory.
class Layout {
public:
    // Where the next piece begins; in bytes, a multiple of 64.
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

// A primitive that works in memory of the caller.
struct Primitive {
    // desc: made with with_scratchpad().
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

extern const std::span<const catena_kernel* const> convolution_kernels;
extern const catena_blas blas_table;

// Generates the code of all products, if there is none yet. Throws Error. [any]
void generate_products();

}  // namespace catena_onednn
