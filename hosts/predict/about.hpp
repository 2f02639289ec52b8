// What a snapshot says of its net.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

class About {
public:
    // Throws DataError if it is no snapshot.
    explicit About(std::filesystem::path file) : file_(std::move(file)) {}

    const std::filesystem::path& file() const noexcept { return file_; }
    // By names such as "about/net". Throw DataError where there is none.
    std::string text(const std::string& name) const;
    double number(const std::string& name) const;         // of a text
    std::int64_t integer(const std::string& name) const;  // 1 to 2^30
    std::vector<std::string> lines(const std::string& name) const;

private:
    std::filesystem::path file_;
};
