// Exceptions of catena. Every message says what, where, expected and got.
#pragma once

#include <catena/abi/base.h>

#include <stdexcept>
#include <string>

namespace catena {

// Root of all exceptions thrown by core and host SDK. status() is the ABI's code of the reason.
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& text, catena_status status = CATENA_E_INVALID)
        : std::runtime_error(text), status_(status) {}
    catena_status status() const noexcept { return status_; }

private:
    catena_status status_;
};

// One class for each status, so that a caller can catch what it can mend.
template <catena_status Status>
class ErrorOf : public Error {
public:
    explicit ErrorOf(const std::string& text) : Error(text, Status) {}
};

using InvalidError = ErrorOf<CATENA_E_INVALID>;
using DtypeError = ErrorOf<CATENA_E_DTYPE>;
using ShapeError = ErrorOf<CATENA_E_SHAPE>;
using UnsupportedError = ErrorOf<CATENA_E_UNSUPPORTED>;
using MemoryError = ErrorOf<CATENA_E_NOMEM>;
using DeviceError = ErrorOf<CATENA_E_DEVICE>;
using InternalError = ErrorOf<CATENA_E_INTERNAL>;
using NotDifferentiableError = ErrorOf<CATENA_E_NOT_DIFFERENTIABLE>;
using ValueError = ErrorOf<CATENA_E_VALUE>;

// Debug mode found NaN.
class NanError : public ValueError {
public:
    using ValueError::ValueError;
};

// A plugin, function or device that is asked for is not there, or was refused.
class PluginError : public Error {
public:
    explicit PluginError(const std::string& text) : Error(text, CATENA_E_UNSUPPORTED) {}
};

// A graph that cannot be walked: backward without a start, volatile and other variables mixed.
class GraphError : public Error {
public:
    explicit GraphError(const std::string& text) : Error(text, CATENA_E_INVALID) {}
};

// Throws the class that belongs to status.
[[noreturn]] void throw_status(catena_status status, const std::string& text);

}  // namespace catena
