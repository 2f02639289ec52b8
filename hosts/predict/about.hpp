// Reads a snapshot's description of its net.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

class About {
public:
    // Throws DataError if the file is no snapshot.
    explicit About(std::filesystem::path file) : file_(std::move(file)) {}

    const std::filesystem::path& file() const noexcept { return file_; }
    // Names are such as "about/net". All throw DataError if the name is missing.
    std::string text(const std::string& name) const;
    double number(const std::string& name) const;         // stored as text
    std::int64_t integer(const std::string& name) const;  // 1 to 2^30
    std::vector<std::string> lines(const std::string& name) const;

private:
    std::filesystem::path file_;
};
