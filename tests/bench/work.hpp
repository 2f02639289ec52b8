// What is measured: pieces of work, known by the same name on every side.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace catena_bench {

// make() prepares the work and returns one run of it; a run is `calls` times what the name says.
// With memory, what is measured is not the time of a run but the most memory that the process takes
// during runs, beyond what it had before make().
struct Work {
    std::string name;
    double calls;
    std::function<std::function<void()>()> make;
    bool memory = false;
};

// A side's works for this many threads. Called once, in the side's own process.
using MakeWorks = std::vector<Work> (*)(int threads);

std::vector<Work> catena_works(int threads);
std::vector<Work> extension_works(int threads);  // catena.blas/1
std::vector<Work> openblas_works(int threads);   // cblas_sgemm
std::vector<Work> third_party_works(int threads);
std::vector<Work> built_in_works(int threads);
std::vector<Work> formula_works(int threads);   // compiled at run time
std::vector<Work> composed_works(int threads);  // the same by functions one after the other
std::vector<Work> fused_works(int threads);     // and by a plugin

// C (m x n) = op(A) op(B) in float32, row-major.
struct Product {
    const char* name;
    int m, n, k;
    bool transpose_a, transpose_b;
};
// Squares, then what linear layers of the measured networks compute for 100 images: y = x W^T,
// gW = gy^T x, gx = gy W.
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

// The text that language models are trained on: the words of the file $CATENA_BENCH_TEXT by their numbers,
// else numbers that are as unequal as words; below `words`.
std::vector<std::int32_t> bench_text(std::int32_t words);

}  // namespace catena_bench
