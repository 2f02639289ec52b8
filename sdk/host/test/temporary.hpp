// A temporary folder, removed by its destructor; and functions that check texts of errors.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <catena/write_file.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

struct TemporaryFolder {
    std::filesystem::path path;

    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "catena-test-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code error;
        std::filesystem::remove_all(path, error);
    }
};

using catena::write_file;

inline std::string read_file(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the text of the E that f throws. Fails if f throws no E.
template <class E, class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const E& error) {
        return error.what();
    }
    FAIL("expected an exception");
    return {};
}

inline bool contains(const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != text.npos);
    return text.find(part) != text.npos;
}
