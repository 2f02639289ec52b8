// Exceptions of catena. Every message has a location, what was expected and what was found.
#pragma once

#include <catena/abi/base.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace catena {

// The base class of all exceptions of core and host SDK. status() is the ABI's status code.
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& text, catena_status status = CATENA_E_INVALID)
        : std::runtime_error(text), status_(status) {}
    catena_status status() const noexcept { return status_; }

private:
    catena_status status_;
};

// One class for each status, so that callers can handle them separately.
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

// Debug mode found a NaN.
class NanError : public ValueError {
public:
    using ValueError::ValueError;
};

// A requested plugin, function or device is missing or was refused.
class PluginError : public Error {
public:
    explicit PluginError(const std::string& text) : Error(text, CATENA_E_UNSUPPORTED) {}
};

// The graph cannot be used: backward without a start, volatile variables mixed with others.
class GraphError : public Error {
public:
    explicit GraphError(const std::string& text) : Error(text, CATENA_E_INVALID) {}
};

// Throws the class that corresponds to status.
[[noreturn]] void throw_status(catena_status status, const std::string& text);

// With '?' for control characters: a file may have any name, and it must not look like two lines.
std::string one_line(std::string text);
// The first 200 bytes of a text for a message, in whole characters of UTF-8, and "..." if cut.
std::string beginning(std::string_view text);

}  // namespace catena
