// Maps ABI status codes to exception classes; texts for messages.
#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>

#include <algorithm>

namespace catena {

std::string one_line(std::string text) {
    const auto control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
    std::ranges::replace_if(text, control, '?');
    return text;
}

std::string beginning(std::string_view text) {
    std::size_t n = 200;
    if (text.size() <= n) return std::string(text);
    while (n > 0 && (text[n] & 0xc0) == 0x80) --n;
    return std::string(text.substr(0, n)) + "...";
}

void throw_status(catena_status status, const std::string& text) {
    switch (status) {
        case CATENA_E_INVALID: throw InvalidError(text);
        case CATENA_E_DTYPE: throw DtypeError(text);
        case CATENA_E_SHAPE: throw ShapeError(text);
        case CATENA_E_UNSUPPORTED: throw UnsupportedError(text);
        case CATENA_E_NOMEM: throw MemoryError(text);
        case CATENA_E_DEVICE: throw DeviceError(text);
        case CATENA_E_INTERNAL: throw InternalError(text);
        case CATENA_E_NOT_DIFFERENTIABLE: throw NotDifferentiableError(text);
        case CATENA_E_VALUE: throw ValueError(text);
        default: throw Error(text + " (status " + std::to_string(status) + ")", status);
    }
}

}  // namespace catena
