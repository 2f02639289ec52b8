// The source of a kernel: the dialect, what all devices share, and the author's code in its place.
#pragma once

#include <string>

#include "binding.hpp"

namespace catena_jit {

// For the key's dtypes, forms and dimensions; nothing else of the call is in it.
std::string make_source(const Binding& binding, const char* dialect);

// Bytes of the entry's struct, in the order of the source: fills at, which has room for max_args_bytes.
// Throws Failure if there is not enough. partial: of a reduction that is cut.
constexpr std::size_t max_args_bytes = 4000;
struct Cut {
    int64_t pieces = 1;
    int64_t length = 0;  // elements of a piece
    int64_t phase = 0;   // 0: all at once, 1: pieces, 2: joins them
    void* partial = nullptr;
};
std::size_t pack_arguments(const Binding& binding, const Cut& cut, unsigned char* at);

// A compiler's messages for people: the author's line, what the compiler says of it, the types.
std::string explain(const Binding& binding, const char* compiler, const std::string& messages);

}  // namespace catena_jit
