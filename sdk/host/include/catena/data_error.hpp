// DataError: a file of data or saved state is not what it should be.
#pragma once

#include <catena/core/error.hpp>

namespace catena {

class DataError : public Error {
public:
    explicit DataError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

}  // namespace catena
