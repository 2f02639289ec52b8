// catena-fuzzer: libFuzzer on one of the readers. usage: catena-fuzzer --target=NAME [FLAG...] DIR
#include "target.hpp"

#include <catena/core/error.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

// A function of libFuzzer: changes the first `size` bytes of data, which has room for `most` bytes.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

catena_fuzz::Target target;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    constexpr std::string_view option = "--target=";
    for (int i = 1; i < *argc; ++i) {
        const std::string_view word = (*argv)[i];
        if (!word.starts_with(option)) continue;
        for (const catena_fuzz::Target& each : catena_fuzz::all_targets())
            if (each.name == word.substr(option.size())) target = each;
    }
    if (target.read) return 0;
    std::fputs("catena-fuzzer: expected --target=NAME with the name of a reader\n", stderr);
    std::exit(2);
}

// A reader may throw catena::Error. Anything else ends the process, and libFuzzer reports the input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        target.read(std::string(reinterpret_cast<const char*>(data), size));
    } catch (const catena::Error&) {
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, most);
    if (!target.repair || seed % 4 == 0) return size;
    std::string input(reinterpret_cast<const char*>(data), size);
    target.repair(input);
    std::memcpy(data, input.data(), input.size());  // repair() keeps the size
    return size;
}
