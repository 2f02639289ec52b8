// A program that ships its compiled kernels in a folder. Usage: shipped [FOLDER]
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;

int main(int argc, char** argv) try {
    const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
    // [use]
    use_compiled_kernels(folder);
    // [/use]
    const auto twice = elementwise("T x", "T y", "y = x + x", "shipped_twice");
    return twice(Array::ones({3})).to_vector<float>() == std::vector<float>{2, 2, 2} ? 0 : 1;
} catch (const Error& error) {  // no compiler, and the kernel is not in the folder
    std::fprintf(stderr, "shipped: %s\n", error.what());
    return 1;
}
