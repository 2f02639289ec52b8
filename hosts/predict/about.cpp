// Reads texts and numbers from a snapshot.
#include "about.hpp"

#include <catena/array_file.hpp>
#include <catena/cuda/array.hpp>
#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <charconv>
#include <sstream>

using namespace catena;

namespace {

[[noreturn]] void missing(const About& about, const std::string& name) {
    throw DataError(fmt::format("[predict] {}: expected a snapshot with {}, got one without",
                                about.file().string(), name));
}

Array array(const About& about, const std::string& name) {
    const auto arrays = load_arrays(about.file(), cuda::host(), name);
    const auto found = arrays.find(name);
    if (found == arrays.end()) missing(about, name);
    return found->second;
}

}  // namespace

std::string About::text(const std::string& name) const {
    const auto texts = load_texts(file_, name);
    const auto found = texts.find(name);
    if (found == texts.end()) missing(*this, name);
    return found->second;
}

double About::number(const std::string& name) const {
    const std::string value = text(name);
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) missing(*this, name);
    return number;
}

std::int64_t About::integer(const std::string& name) const {
    const Array value = array(*this, name);
    if (value.dtype() != Dtype::int64 || value.size() != 1) missing(*this, name);
    const auto number = value.item<std::int64_t>();
    constexpr std::int64_t most = std::int64_t{1} << 30;  // larger than any size of a net
    if (number < 1 || number > most) {
        throw DataError(fmt::format("[predict] {}: {}: expected 1 to {}, got {}", file_.string(),
                                    name, most, number));
    }
    return number;
}

std::vector<std::string> About::lines(const std::string& name) const {
    std::istringstream all(text(name));
    std::vector<std::string> result;
    for (std::string line; std::getline(all, line);) result.push_back(line);
    return result;
}
