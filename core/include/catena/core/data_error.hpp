// DataError: a file with data or saved state is invalid.
#pragma once

#include <catena/core/error.hpp>

#include <filesystem>
#include <new>

namespace catena {

class DataError : public Error {
public:
    explicit DataError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

// Returns body(), which reads or writes a file. If it runs out of memory, throws MemoryError with
// the name of the file: "[where] FILE: expected enough memory, got ...". A MemoryError that
// contains the name is rethrown unchanged.
template <class Body>
auto naming_file(const char* where, const std::filesystem::path& file, const Body& body) {
    const auto fail = [&](const char* got) {
        throw MemoryError(std::string("[") + where + "] " + file.string() +
                          ": expected enough memory, got " + got);
    };
    try {
        return body();
    } catch (const std::bad_alloc&) {
        fail("too little");
    } catch (const std::length_error&) {  // larger than a container can be
        fail("too little");
    } catch (const MemoryError& error) {
        if (std::string(error.what()).find(file.string()) != std::string::npos) throw;
        fail(error.what());
    }
    __builtin_unreachable();
}

}  // namespace catena
