// A temporary folder for plugin files that a test writes.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

class Folder {
public:
    Folder() {
        umask(022);  // the loader refuses files and folders that a group can write to
        namespace fs = std::filesystem;
        std::string name = (fs::temp_directory_path() / "catena-plugins-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path_ = fs::canonical(name);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }

    std::filesystem::path operator/(const char* name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }
    // Writes a new file, even over an existing one, whose old content may be mapped.
    std::filesystem::path write(const char* name, const std::string& bytes) const {
        std::filesystem::remove(path_ / name);
        std::ofstream(path_ / name, std::ios::binary) << bytes;
        return path_ / name;
    }

private:
    std::filesystem::path path_;
};

inline std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
