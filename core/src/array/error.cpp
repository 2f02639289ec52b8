// Maps ABI status codes to exception classes.
#include <catena/core/error.hpp>

namespace catena {

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
