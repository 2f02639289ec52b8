// The measured pieces of work. Every side has the same names for them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace catena_bench {

// make() prepares the work and returns a function that runs it once. A run contains `calls` calls.
// With memory, the result is not the time of a run but the peak memory of the process during runs:
// what was added after make() was called, or all of the resident memory.
enum class Memory : std::uint8_t { no, added, all };

struct Work {
    std::string name;
    double calls;
    std::function<std::function<void()>()> make;
    Memory memory = Memory::no;
};

// Returns a side's works for this number of threads. Called once, in the side's own process.
using MakeWorks = std::vector<Work> (*)(int threads);

std::vector<Work> catena_works(int threads);
std::vector<Work> function_works(int threads);   // single functions of catena
std::vector<Work> bfloat16_works(int threads);   // steps of catena_works() with autocast
std::function<void()> bfloat16_gpt_step();       // of function_works()
std::vector<Work> extension_works(int threads);  // catena.blas/1
std::vector<Work> openblas_works(int threads);   // cblas_sgemm
std::vector<Work> third_party_works(int threads);
std::vector<Work> built_in_works(int threads);
std::vector<Work> formula_works(int threads);   // compiled at run time
std::vector<Work> composed_works(int threads);  // the same as a sequence of functions
std::vector<Work> fused_works(int threads);     // the same by a plugin

// C (m x n) = op(A) op(B) in float32, row-major.
struct Product {
    const char* name;
    int m, n, k;
    bool transpose_a, transpose_b;
};
// Square matrices, then the products of linear layers in the measured networks for 100 images:
// y = x W^T, gW = gy^T x, gx = gy W.
inline constexpr Product products[] = {
    {"gemm 512", 512, 512, 512, false, false},
    {"gemm 1024", 1024, 1024, 1024, false, false},
    {"gemm 2048", 2048, 2048, 2048, false, false},
    {"gemm 100x100x784 B^T", 100, 100, 784, false, true},
    {"gemm 100x784x100 A^T", 100, 784, 100, true, false},
    {"gemm 100x100x100 B^T", 100, 100, 100, false, true},
    {"gemm 100x10x100 B^T", 100, 10, 100, false, true},
    {"gemm 100x1000x784 B^T", 100, 1000, 784, false, true},
    {"gemm 1000x784x100 A^T", 1000, 784, 100, true, false},
    {"gemm 100x1000x1000 B^T", 100, 1000, 1000, false, true},
    {"gemm 1000x1000x100 A^T", 1000, 1000, 100, true, false},
    {"gemm 100x1000x1000", 100, 1000, 1000, false, false},
};

// Returns the text for the language models, as word numbers below `words`: the words of the file
// $CATENA_BENCH_TEXT, else random numbers with the frequencies of words.
std::vector<std::int32_t> bench_text(std::int32_t words);

}  // namespace catena_bench
