// Finds what a file is by its status and its first bytes.
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/read_file.hpp>
#include <catena/text.hpp>

#include <boost/algorithm/string/predicate.hpp>
#include <boost/endian/conversion.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace catena {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_looked_at = 4096;

constexpr const char* pytorch =
    "a PyTorch file; in Python, safetensors.torch.save_file(torch.load(FILE), "
    "\"NAME.safetensors\") "
    "converts a dict of tensors";
constexpr const char* onnx =
    "an ONNX model; in Python, onnx.numpy_helper.to_array() reads its weights and numpy.savez() "
    "writes them";

struct Beginning {
    std::string_view bytes, kind;
};
using namespace std::string_view_literals;
constexpr Beginning beginnings[] = {
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9"sv, pytorch},  // before PyTorch 1.6
    {"\x93NUMPY"sv, "a .npy file with one array; numpy.savez() writes named arrays"},
    {"GGUF"sv, "a GGUF model of llama.cpp; use the .safetensors files that it was made from"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file; load_hdf5() of the Python package reads it"},
    {"\x1f\x8b"sv, "a file compressed by gzip"},
    {"\x28\xb5\x2f\xfd"sv, "a file compressed by zstd"},
    {"BZh"sv, "a file compressed by bzip2"},
    {"\xfd"
     "7zXZ"sv,
     "a file compressed by xz"},
    {"7z\xbc\xaf"sv, "a 7z archive"},
    {"\x7f"
     "ELF"sv,
     "a program or library"},
    {"\x89PNG"sv, "a PNG image"},
    {"\xff\xd8\xff"sv, "a JPEG image"},
    {"GIF8"sv, "a GIF image"},
    {"%PDF"sv, "a PDF document"},
    {"PAR1"sv, "a Parquet table"},
    {"SQLite format 3"sv, "an SQLite database"},
    {"version https://git-lfs"sv, "a pointer of Git LFS; 'git lfs pull' fetches the file"},
    {"\xff\xfe"sv, "a text in UTF-16; save it in UTF-8"},
    {"\xfe\xff"sv, "a text in UTF-16; save it in UTF-8"},
};

bool is_html(std::string_view bytes) {
    bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
    return boost::istarts_with(bytes, "<!doctype html") || boost::istarts_with(bytes, "<html");
}

// A protocol buffer that begins with the version of the format and the name of its producer.
bool is_onnx(std::string_view bytes) {
    if (bytes.size() < 5 || bytes[0] != 0x08 || bytes[1] < 1 || bytes[1] > 31) return false;
    const std::size_t length = static_cast<unsigned char>(bytes[3]);
    const std::string_view name = bytes.substr(4, length);
    return bytes[2] == 0x12 && length > 0 && name.size() == length &&
           std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

bool is_safetensors(std::string_view bytes, std::uint64_t size) {
    if (bytes.size() < 10 || bytes[8] != '{') return false;
    const auto* length = reinterpret_cast<const unsigned char*>(bytes.data());
    return boost::endian::load_little_u64(length) <= size - 8;
}

bool is_text(std::string_view bytes, bool whole) {
    if (bytes.find('\0') != bytes.npos) return false;
    for (std::size_t cut = 0; cut < 4 && cut < bytes.size(); ++cut)  // a code point may be cut off
        if (is_utf8(bytes.substr(0, bytes.size() - cut))) return true;
        else if (whole) return false;
    return false;
}

std::string kind_of(std::string_view bytes, std::uint64_t size) {
    const auto has = [&](std::string_view part) { return bytes.find(part) != bytes.npos; };
    if (size == 0) return "an empty file";
    for (const Beginning& each : beginnings)
        if (bytes.starts_with(each.bytes)) return std::string(each.kind);
    if (bytes.starts_with("PK\3\4") || bytes.starts_with("PK\5\6")) {
        if (has("/data.pkl")) return pytorch;
        if (has(".npy") || size == 22) return "an .npz archive; load_npz() reads it";
        return "a zip archive of other files";
    }
    if (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5)
        return "a pickle of Python objects; in Python, numpy.savez() writes their arrays";
    if (is_safetensors(bytes, size)) return "a .safetensors file; load_safetensors() reads it";
    if (is_onnx(bytes)) return onnx;
    if (is_html(bytes)) return "a web page (HTML), as failed downloads are";
    if (is_text(bytes, size == bytes.size())) return "a text";
    return {};
}

constexpr const char* missing = "none: there is no such file";
std::string unreadable(const std::string& reason) {
    return "a file that cannot be opened: " + reason;
}

std::string kind_of_special(const fs::path& file, const fs::file_status& status) {
    switch (status.type()) {
        case fs::file_type::not_found: {
            std::string text = missing;
            std::error_code error;
            const fs::path folder = file.parent_path();
            if (!folder.empty() && !fs::exists(folder, error)) {
                text += ", nor the folder " + folder.string();
            } else if (file.is_relative()) {
                const fs::path here = fs::current_path(error);
                if (!error) text += " in " + (here / folder).string();
            }
            return text;
        }
        case fs::file_type::directory: return "a folder";
        case fs::file_type::character: return "a device";
        case fs::file_type::block: return "a device";
        case fs::file_type::fifo: return "a pipe";
        case fs::file_type::socket: return "a socket";
        default: return {};
    }
}

}  // namespace

std::string file_kind(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() != fs::file_type::regular) {
        std::string kind = kind_of_special(file, status);
        return kind.empty() && error ? unreadable(error.message()) : kind;
    }
    std::ifstream in(file, std::ios::binary);
    if (!in) return unreadable(std::strerror(errno));
    std::string bytes(most_looked_at, '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    const std::uintmax_t size = fs::file_size(file, error);
    return kind_of(bytes, error ? bytes.size() : size);
}

void require_regular(std::string_view where, const fs::path& file, std::string_view expected) {
    std::error_code error;
    const bool regular = fs::is_regular_file(file, error);
    if (regular && std::ifstream(file, std::ios::binary)) return;
    const std::string kind = regular ? unreadable(std::strerror(errno)) : file_kind(file);
    fail<DataError>("[{}] {}: expected {}, got {}", where, file.string(),
                    kind.starts_with(missing) ? "a file" : expected, kind);
}

std::string read_regular(std::string_view where, const fs::path& file, std::string_view expected,
                         std::uint64_t most) {
    require_regular(where, file, expected);
    std::ifstream in(file, std::ios::binary);
    std::string bytes;
    constexpr std::size_t piece = std::size_t{1} << 20;
    while (in && bytes.size() <= most) {
        const std::size_t before = bytes.size();
        bytes.resize(before + piece);
        in.read(&bytes[before], piece);
        bytes.resize(before + static_cast<std::size_t>(in.gcount()));
    }
    if (in.bad())
        fail<DataError>("[{}] {}: expected a readable file, got {}", where, file.string(),
                        std::strerror(errno));
    if (bytes.size() > most)
        fail<DataError>("[{}] {}: expected {} of at most {} bytes, got more", where, file.string(),
                        expected, most);
    return bytes;
}

}  // namespace catena
