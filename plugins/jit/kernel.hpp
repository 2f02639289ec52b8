// A formula with what was compiled of it so far.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include <catena/plugin/tables.hpp>

#include "binaries.hpp"
#include "binding.hpp"
#include "catena/abi/ext/compiler.h"

struct catena_formula_kernel {
    explicit catena_formula_kernel(const catena_formula& source) : formula(source) {}

    catena_jit::Formula formula;
    mutable std::atomic<const struct catena_variant*> variants = nullptr;
    mutable std::mutex compiling;
};

namespace catena_jit {

// Since the start of the process.
struct Counts {
    std::atomic<uint64_t> compiled = 0, loaded = 0, hits = 0;
};
inline constinit Counts counts;
BinaryCache& binary_cache();
Shipped& shipped();

using catena::plugin::host;

// The device's compilers, the best first; NULL-terminated.
const catena_compiler* const* compilers(catena_ctx* ctx);
// How a reduction is cut for that compiler: the same for any number of threads.
Cut make_cut(const Binding& binding, const catena_compiler& compiler);
// A partial result's bytes at most, as dialects assert.
constexpr uint64_t partial_bytes = 64;

// Finds, loads or compiles, and launches. Throws Error.
void run(catena_ctx* ctx, const catena_formula_kernel& kernel, const Binding& binding);

}  // namespace catena_jit
