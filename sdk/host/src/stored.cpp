// One of two formats.
#include "stored.hpp"

namespace catena {
namespace {

bool is_safetensors(const std::filesystem::path& file) {
    return file.extension() == ".safetensors";
}

}  // namespace

void write_stored(const std::filesystem::path& file, const Npz& arrays) {
    (is_safetensors(file) ? write_safetensors : write_npz)(file, arrays);
}

Npz read_stored(const std::filesystem::path& file, std::string_view path, const Wanted& wanted) {
    return (is_safetensors(file) ? read_safetensors : read_npz)(file, path, wanted);
}

}  // namespace catena
