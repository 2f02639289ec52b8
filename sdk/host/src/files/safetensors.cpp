// Reads and writes .safetensors files, and checks the format. Parses JSON by nlohmann's library.
#include "npz.hpp"

#include <catena/core/tables.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/read_file.hpp>
#include <catena/text.hpp>
#include <catena/write_file.hpp>

#include <boost/endian/conversion.hpp>
#include <parse_json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace catena {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// The limit of the format for the size of the header.
constexpr std::uint64_t max_header = 100'000'000;
constexpr const char* metadata = "__metadata__";

struct Kind {
    const char* name;
    const char* descr;
    std::uint64_t size;
};
constexpr Kind kinds[] = {
    {"F16", "<f2", 2},
    {"BF16", "|V2", 2},
    {"F32", "<f4", 4},
    {"F64", "<f8", 8},
    {"I32", "<i4", 4},
    {"I64", "<i8", 8},
    {"U64", "<u8", 8},
    {"U8", "|u1", 1},
    {"BOOL", "|b1", 1},
    // Types of the format for which catena has no dtype.
    {"I8", "", 1},
    {"I16", "", 2},
    {"U16", "", 2},
    {"U32", "", 4},
    {"F8_E4M3", "", 1},
    {"F8_E5M2", "", 1},
};

[[noreturn]] void bad_safetensors(const fs::path& file, const std::string& expected,
                                  const std::string& got) {
    catena::fail<DataError>("[safetensors] {}: expected {}, got {}", file.string(), expected, got);
}

class Reader {
public:
    explicit Reader(const fs::path& file) : file_(file) {
        require_regular("safetensors", file, "a .safetensors file");
        std::error_code error;
        size_ = fs::file_size(file, error);
        if (error) bad_safetensors(file, "a file", error.message());
        in_.open(file, std::ios::binary);
        if (!in_) bad_safetensors(file, "a readable file", std::strerror(errno));
    }

    Json header() {
        std::array<unsigned char, 8> bytes{};
        const std::string kind = size_ < bytes.size() ? file_kind(file_) : "";
        if (!kind.empty()) bad_safetensors(file_, "a .safetensors file", kind);
        read(bytes.data(), bytes.size(), "the length of the header");
        const std::uint64_t length = boost::endian::load_little_u64(bytes.data());
        if (length > max_header || length > size_ - bytes.size()) {
            const std::string other = file_kind(file_);
            if (!other.empty()) bad_safetensors(file_, "a .safetensors file", other);
            bad_safetensors(file_, fmt::format("a header within {} bytes", size_ - bytes.size()),
                            fmt::format("a length of {}", length));
        }
        std::string text(length, '\0');
        read(text.data(), text.size(), "the header");
        data_ = bytes.size() + length;
        std::optional<std::string> repeated;
        Json json = parse_json(text, &repeated);
        if (repeated)
            bad_safetensors(file_, "each key of the header once", beginning(*repeated) + " twice");
        if (!json.is_object()) {
            bad_safetensors(file_,
                            fmt::format("a header in JSON, at most {} levels deep", max_json_depth),
                            "something else");
        }
        return json;
    }

    std::uint64_t data_size() const noexcept { return size_ - data_; }
    void read_data(std::uint64_t at, NpyArray& array, const std::string& name) {
        in_.seekg(static_cast<std::streamoff>(data_ + at));
        read(array.bytes.data(), array.bytes.size(), name);
    }

private:
    void read(void* to, std::size_t n, const std::string& what) {
        if (!in_.read(static_cast<char*>(to), static_cast<std::streamsize>(n))) {
            bad_safetensors(file_, fmt::format("{} bytes of {}", n, what), "the end of the file");
        }
    }

    const fs::path& file_;
    std::ifstream in_;
    std::uint64_t size_ = 0;
    std::uint64_t data_ = 0;
};

// An entry of the header: an array without its bytes, and the range of the bytes in the data.
struct Entry {
    NpyArray array;
    std::uint64_t begin, end;
};

// Reads an integer from 0 to 2^63 - 1. Returns false for all other values.
bool to_size(const Json& json, std::uint64_t& value) {
    if (!json.is_number_unsigned()) return false;
    value = json.get<std::uint64_t>();
    return value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

Entry to_entry(const fs::path& file, const std::string& name, const Json& json) {
    const auto wrong = [&](const char* expected) {
        bad_safetensors(file, fmt::format("{} with {}", name, expected),
                        beginning(json.dump(-1, ' ', true, Json::error_handler_t::replace)));
    };
    if (!json.is_object() || json.size() != 3) wrong("dtype, shape and data_offsets");
    const auto dtype = json.find("dtype"), shape = json.find("shape"),
               offsets = json.find("data_offsets");
    if (dtype == json.end() || !dtype->is_string()) wrong("a dtype");
    const auto* kind = std::ranges::find(kinds, dtype->get_ref<const std::string&>(), &Kind::name);
    if (kind == std::end(kinds)) wrong("a dtype of the format");
    if (shape == json.end() || !shape->is_array()) wrong("a shape");
    Entry entry{{kind->descr, {}, {}}, 0, 0};
    std::uint64_t bytes = kind->size;
    for (const Json& each : *shape) {
        std::uint64_t extent = 0;
        if (!to_size(each, extent) || __builtin_mul_overflow(bytes, extent, &bytes))
            wrong("a shape of extents");
        entry.array.shape.push_back(static_cast<std::int64_t>(extent));
    }
    if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 ||
        !to_size((*offsets)[0], entry.begin) || !to_size((*offsets)[1], entry.end) ||
        entry.begin > entry.end || entry.end - entry.begin != bytes)
        wrong("data_offsets that fit the shape");
    return entry;
}

// Throws unless each byte of the data belongs to exactly one array.
void require_covered(const fs::path& file, const std::map<std::string, Entry>& entries,
                     std::uint64_t size) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (const auto& [name, entry] : entries) ranges.emplace_back(entry.begin, entry.end);
    std::ranges::sort(ranges);
    std::uint64_t at = 0;
    for (const auto& [begin, end] : ranges) {
        if (begin != at)
            bad_safetensors(file, fmt::format("data of an array at {}", at),
                            fmt::format("at {}", begin));
        at = end;
    }
    if (at != size)
        bad_safetensors(file, fmt::format("{} bytes of data", at), fmt::format("{}", size));
}

}  // namespace

void write_safetensors(const fs::path& file, const Npz& arrays) {
    Json header = Json::object();
    std::uint64_t at = 0;
    for (const auto& [name, array] : arrays) {
        if (!is_utf8(name) || (is_text(array) && !is_utf8(text_of(array))))
            bad_safetensors(file, "names and texts in UTF-8", "others, of " + name);
        if (is_text(array)) {
            header[metadata][name] = text_of(array);
            continue;
        }
        const auto* kind = std::ranges::find(kinds, array.descr, &Kind::descr);
        if (kind == std::end(kinds)) bad_safetensors(file, "dtypes of the format", array.descr);
        header[name] = {{"dtype", kind->name},
                        {"shape", array.shape},
                        {"data_offsets", {at, at + array.bytes.size()}}};
        at += array.bytes.size();
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8
    const std::uint64_t length = boost::endian::native_to_little<std::uint64_t>(text.size());
    AtomicFile atomic(file);
    atomic.write({reinterpret_cast<const char*>(&length), sizeof length});
    atomic.write(text);
    for (const auto& [name, array] : arrays) {
        if (is_text(array)) continue;
        atomic.write({reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
    }
    atomic.commit();
}

Npz read_safetensors(const fs::path& file, std::string_view path, const Wanted& wanted) {
    Reader reader(file);
    const Json header = reader.header();
    Npz arrays;
    std::map<std::string, Entry> entries;
    for (const auto& [name, json] : header.items()) {
        if (name != metadata) {
            entries.emplace(name, to_entry(file, name, json));
            continue;
        }
        if (!json.is_object()) bad_safetensors(file, "__metadata__ of texts", "something else");
        for (const auto& [key, text] : json.items()) {
            if (!text.is_string())
                bad_safetensors(file, "__metadata__ of texts", key + " that is none");
            if (!key.starts_with(path)) continue;
            NpyArray& array = arrays[key] = from_text(text.get_ref<const std::string&>());
            if (wanted && !wanted(key, array)) array.bytes.clear();
        }
    }
    require_covered(file, entries, reader.data_size());
    for (auto& [name, entry] : entries) {
        if (!name.starts_with(path)) continue;
        if (!wanted || wanted(name, entry.array)) {
            entry.array.bytes.resize(entry.end - entry.begin);
            reader.read_data(entry.begin, entry.array, name);
        }
        arrays[name] = std::move(entry.array);
    }
    return arrays;
}

void write_stored(const fs::path& file, const Npz& arrays) {
    (file.extension() == ".safetensors" ? write_safetensors : write_npz)(file, arrays);
}

Npz read_stored(const fs::path& file, std::string_view path, const Wanted& wanted) {
    const bool is_safetensors = file.extension() == ".safetensors";
    return (is_safetensors ? read_safetensors : read_npz)(file, path, wanted);
}

}  // namespace catena
