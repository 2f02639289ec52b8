// DataError: a file of data or saved state is missing, unreadable or invalid.
#pragma once

#include <catena/core/error.hpp>

#include <filesystem>
#include <new>

namespace catena {

class DataError : public Error {
public:
    explicit DataError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

// Returns body(), which reads or writes a file. If memory runs out in it, throws a MemoryError that
// names the file, at most once: "[where] FILE: expected enough memory, got ...".
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
    } catch (const std::length_error&) {  // a size beyond what a container can have
        fail("too little");
    } catch (const MemoryError& error) {
        if (std::string(error.what()).find(file.string()) != std::string::npos) throw;
        fail(error.what());
    }
    __builtin_unreachable();
}

}  // namespace catena
