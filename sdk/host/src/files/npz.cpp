// .npz, by libzip. Format of .npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "npz.hpp"

#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/read_file.hpp>
#include <catena/write_file.hpp>

#include <unistd.h>
#include <zip.h>
#include <boost/endian/conversion.hpp>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace catena {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view npy_magic{"\x93NUMPY", 6};
constexpr const char* archive_of_arrays = "a zip archive of arrays (.npz)";

[[noreturn]] void bad_npz(const fs::path& file, const std::string& what, const std::string& got) {
    catena::fail<DataError>("[npz] {}: expected {}, got {}", file.string(), what, got);
}

std::string npy_header(const NpyArray& array) {
    std::string shape;
    for (const auto extent : array.shape) shape += fmt::format("{}, ", extent);
    if (array.shape.size() > 1) shape.resize(shape.size() - 2);
    else if (!shape.empty()) shape.pop_back();
    std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   array.descr, shape);
    // Magic, version and length take 10 bytes; the data must start at a multiple of 64.
    dict.resize((dict.size() + 10 + 64) / 64 * 64 - 10, ' ');
    dict.back() = '\n';
    std::string header(npy_magic);
    header +=
        {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
    return header + dict;
}

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;

// Returns the end of the archive. NumPy ignores bytes after it; libzip's consistency check rejects them.
std::uint64_t end_of(const fs::path& file) {
    constexpr std::int64_t end_size = 22, most_comment = 0xffff;
    require_regular("npz", file, archive_of_arrays);
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const std::int64_t size = in.tellg(),
                       begin = std::max<std::int64_t>(0, size - end_size - most_comment);
    if (size < 0) bad_npz(file, archive_of_arrays, std::strerror(errno));
    std::string tail(static_cast<std::size_t>(size - begin), '\0');
    in.seekg(begin).read(tail.data(), std::ssize(tail));
    tail.resize(static_cast<std::size_t>(in.gcount()));
    const std::size_t at =
        tail.size() < end_size ? tail.npos : tail.rfind("PK\5\6", tail.size() - end_size);
    if (at == tail.npos) {
        const std::string kind = file_kind(file);
        const bool cut_off = kind.empty() || kind.starts_with("an .npz");
        bad_npz(file, archive_of_arrays, cut_off ? "a file without a directory" : kind);
    }
    const auto* comment = reinterpret_cast<const unsigned char*>(&tail[at + 20]);
    return static_cast<std::uint64_t>(begin + end_size) + at +
           boost::endian::load_little_u16(comment);
}

// Opens the archive if libzip's check finds that members lie before the directory and match it. Allows
// repeated names, which the check rejects too, because read_npz() checks the names that it reads.
Archive open(const fs::path& file) {
    zip_error_t error{};
    for (const int check : {ZIP_CHECKCONS, 0}) {
        zip_source_t* source = zip_source_file_create(
            file.c_str(), 0, static_cast<std::int64_t>(end_of(file)), &error);
        Archive archive(source ? zip_open_from_source(source, ZIP_RDONLY | check, &error) : nullptr,
                        zip_discard);
        if (archive) return archive;
        zip_source_free(source);
        if (zip_error_code_zip(&error) != ZIP_ER_EXISTS) break;
    }
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    bad_npz(file, archive_of_arrays, text);
}

// The AtomicFile that libzip writes to.
struct Output {
    AtomicFile file;
    std::string failure;  // message of an exception, which must not pass through libzip
    zip_error_t error{};
};

zip_int64_t write_output(void* user, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    Output& output = *static_cast<Output*>(user);
    switch (command) {
        case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE;
        case ZIP_SOURCE_STAT:  // the archive does not exist yet
            zip_error_set(&output.error, ZIP_ER_READ, ENOENT);
            return -1;
        case ZIP_SOURCE_ERROR: return zip_error_to_data(&output.error, data, length);
        case ZIP_SOURCE_WRITE:
            try {
                output.file.write({static_cast<const char*>(data), length});
                return static_cast<zip_int64_t>(length);
            } catch (const std::exception& error) {
                output.failure = error.what();
                zip_error_set(&output.error, ZIP_ER_WRITE, errno);
                return -1;
            }
        case ZIP_SOURCE_TELL_WRITE: return lseek(output.file.fd(), 0, SEEK_CUR);
        case ZIP_SOURCE_SEEK_WRITE: {
            const auto* to =
                ZIP_SOURCE_GET_ARGS(zip_source_args_seek_t, data, length, &output.error);
            if (to == nullptr || lseek(output.file.fd(), to->offset, to->whence) < 0) return -1;
            return 0;
        }
        case ZIP_SOURCE_BEGIN_WRITE:
        case ZIP_SOURCE_COMMIT_WRITE:
        case ZIP_SOURCE_ROLLBACK_WRITE:
        case ZIP_SOURCE_FREE: return 0;
        default: zip_error_set(&output.error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
}

// Returns the members. Throws if they have more bytes than the file: members that overlap can expand a
// small file to any size. (David Fifield, "A better zip bomb", 2019.)
std::vector<zip_stat_t> members_of(const fs::path& file, zip_t* archive) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(file, error);
    std::uint64_t packed = 0;
    std::vector<zip_stat_t> members(static_cast<std::size_t>(zip_get_num_entries(archive, 0)));
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (zip_stat_index(archive, i, 0, &members[i]) != 0)
            bad_npz(file, "a readable archive", zip_strerror(archive));
        if (members[i].comp_size > size - packed)
            bad_npz(file, "members that do not overlap",
                    fmt::format("more bytes of them than the {} of the file", size));
        packed += members[i].comp_size;
    }
    return members;
}

// Returns the bytes of a member, or none if go_on() returns false for the first bytes. Memory grows only
// as data arrives, because sizes in the file may be wrong.
std::vector<std::byte> read_member(
    const fs::path& file, zip_t* archive, const zip_stat_t& stat,
    const std::function<bool(const std::vector<std::byte>&)>& go_on) {
    constexpr std::uint64_t most = 1032;  // deflate's highest compression ratio
    const std::string name = stat.name;
    if (stat.size > stat.comp_size * most) {
        bad_npz(file, "members that fit into the file",
                fmt::format("{} of {} bytes", name, stat.size));
    }
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> member(
        zip_fopen_index(archive, stat.index, 0), zip_fclose);
    if (!member) bad_npz(file, "a readable member " + name, zip_strerror(archive));
    std::vector<std::byte> content;
    constexpr std::uint64_t first = std::uint64_t{1} << 16;  // more than a .npy header
    constexpr std::uint64_t piece = std::uint64_t{1} << 24;
    zip_int64_t got = 0;
    while (content.size() < stat.size) {
        const std::size_t before = content.size();
        content.resize(std::min(stat.size, before + (before == 0 ? first : piece)));
        got = zip_fread(member.get(), &content[before], content.size() - before);
        if (got != static_cast<zip_int64_t>(content.size() - before)) break;
        if (before > 0) continue;
        if (!go_on(content)) return {};
        content.reserve(std::min(stat.size, stat.comp_size));  // not more than the file has
    }
    // libzip compares the checksum when it reads past the end.
    char extra = 0;
    if (got < 0 || content.size() < stat.size || zip_fread(member.get(), &extra, 1) != 0) {
        bad_npz(file, fmt::format("{} bytes of {}", stat.size, name),
                got < 0 ? zip_file_strerror(member.get()) : "damaged data");
    }
    return content;
}

// Returns the text after "'key':" in the header's dict.
std::string_view value_of(std::string_view dict, std::string_view key) {
    const auto at = dict.find(fmt::format("'{}':", key));
    if (at == dict.npos) return {};
    dict.remove_prefix(at + key.size() + 3);
    dict.remove_prefix(std::min(dict.find_first_not_of(' '), dict.size()));
    return dict;
}

std::int64_t element_size(std::string_view descr) {
    std::int64_t size = 0;
    const auto digits = descr.substr(std::min<std::size_t>(2, descr.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    constexpr std::size_t most_digits = 19;  // of 64 bits; longer numbers have leading zeros
    const bool ok = error == std::errc() && end == digits.data() + digits.size() &&
                    digits.size() <= most_digits &&
                    std::string_view("<|>=").find(descr[0]) != std::string_view::npos && size > 0;
    return ok ? size : 0;
}

// Reorders elements from column-major (the first index varies fastest) to row-major.
void make_row_major(NpyArray& array, std::size_t item) {
    const std::vector<std::byte> from = array.bytes;
    std::vector<std::int64_t> index(array.shape.size(), 0);
    for (std::size_t to = 0; to < from.size(); to += item) {
        std::size_t at = 0;
        for (std::size_t d = index.size(); d-- > 0;)
            at = at * static_cast<std::size_t>(array.shape[d]) + static_cast<std::size_t>(index[d]);
        std::memcpy(&array.bytes[to], &from[at * item], item);
        for (std::size_t d = index.size(); d-- > 0;) {
            if (++index[d] < array.shape[d]) break;
            index[d] = 0;
        }
    }
}

struct Layout {
    std::int64_t item = 0;    // bytes of an element
    std::uint64_t total = 0;  // bytes of all elements
    bool column_major = false;
};

// Fills descr, shape and layout from the first bytes of a .npy file, which has `size` bytes in all.
// Returns an empty string, or what is wrong with the file.
std::string parse_header(const std::vector<std::byte>& bytes, std::uint64_t size, NpyArray& array,
                         Layout& layout) {
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (content.substr(0, 6) != npy_magic || content.size() < 12) return "no .npy data";
    const auto* header = reinterpret_cast<const unsigned char*>(bytes.data());
    const bool short_length = header[6] == 1;
    const std::size_t start = short_length ? 10 : 12;
    const std::size_t length = short_length ? boost::endian::load_little_u16(header + 8)
                                            : boost::endian::load_little_u32(header + 8);
    if (length > content.size() - start) return "a header that is cut off";
    const auto dict = content.substr(start, length);
    const std::uint64_t data = size - start - length;

    auto descr = value_of(dict, "descr");
    const auto quote = descr.size() > 1 ? descr.find('\'', 1) : descr.npos;
    if (quote == descr.npos) return "a header without a simple 'descr'";
    array.descr = descr.substr(1, quote - 1);
    layout.item = element_size(array.descr);
    if (layout.item == 0) return fmt::format("elements of type '{}'", array.descr);
    const auto order = value_of(dict, "fortran_order");
    layout.column_major = order.starts_with("True");
    if (!layout.column_major && !order.starts_with("False"))
        return "a header without 'fortran_order'";

    auto shape = value_of(dict, "shape");
    const auto closing = shape.find(')');
    if (!shape.starts_with('(') || closing == shape.npos) return "a header without 'shape'";
    const char* at = shape.data() + 1;
    const char* const end = shape.data() + closing;
    while (at != end) {
        if (*at == ' ' || *at == ',') {
            ++at;
            continue;
        }
        std::int64_t extent = 0;
        const auto [next, error] = std::from_chars(at, end, extent);
        if (error != std::errc() || extent < 0) return "a shape that is not numbers";
        array.shape.push_back(extent);
        at = next;
    }
    if (array.shape.size() > CATENA_MAX_NDIM)
        return fmt::format("{} axes, more than {}", array.shape.size(), CATENA_MAX_NDIM);
    std::int64_t room = 1;  // elements, with extents of 0 counted as 1
    for (const auto extent : array.shape) {
        if (__builtin_mul_overflow(room, std::max<std::int64_t>(extent, 1), &room))
            return "a shape of more elements than can be";
    }
    const auto item = static_cast<std::uint64_t>(layout.item);
    const bool empty = std::ranges::count(array.shape, 0) > 0;
    if (!empty && static_cast<std::uint64_t>(room) > data / item)
        return fmt::format("only {} bytes of data", data);
    const std::uint64_t total = layout.total = empty ? 0 : static_cast<std::uint64_t>(room) * item;
    if (total != data) return fmt::format("{} bytes of data, not {}", data, total);
    return {};
}

constexpr const char* descrs[dtype_count] = {"<f2", "|V2", "<f4", "<f8",
                                             "<i4", "<i8", "|u1", "|b1"};

}  // namespace

std::string parse_npy(std::vector<std::byte> bytes, NpyArray& array) {
    Layout layout;
    std::string wrong = parse_header(bytes, bytes.size(), array, layout);
    if (!wrong.empty()) return wrong;
    bytes.erase(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(layout.total));
    array.bytes = std::move(bytes);
    if (layout.column_major) make_row_major(array, static_cast<std::size_t>(layout.item));
    return {};
}

void write_npz(const fs::path& file, const Npz& arrays) {
    Output output{AtomicFile(file), {}, {}};
    if (arrays.empty()) {  // libzip writes no archive without members
        constexpr char end_of_directory[22] = {'P', 'K', 5, 6};
        output.file.write({end_of_directory, sizeof end_of_directory});
        return output.file.commit();
    }
    zip_error_t error{};
    zip_source_t* target = zip_source_function_create(write_output, &output, &error);
    Archive archive(
        target ? zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error) : nullptr,
        zip_discard);
    if (!archive) {
        zip_source_free(target);
        bad_npz(file, "an archive that can be written", zip_error_strerror(&error));
    }
    std::vector<std::string> headers;  // must live until the archive is closed
    headers.reserve(arrays.size());
    for (const auto& [name, array] : arrays) {
        const std::string& header = headers.emplace_back(npy_header(array));
        zip_buffer_fragment_t parts[2] = {};
        parts[0].data = reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data()));
        parts[0].length = header.size();
        parts[1].data = reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(array.bytes.data()));
        parts[1].length = array.bytes.size();
        zip_source_t* source = zip_source_buffer_fragment(archive.get(), parts, 2, 0);
        const zip_int64_t index =
            source ? zip_file_add(archive.get(), (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8)
                   : -1;
        if (index < 0) {
            zip_source_free(source);
            bad_npz(file, "room for " + name, zip_strerror(archive.get()));
        }
        const auto entry = static_cast<zip_uint64_t>(index);
        constexpr zip_uint16_t first_day = 0x21;  // 1980-01-01, so that bytes do not depend on time
        if (zip_set_file_compression(archive.get(), entry, ZIP_CM_STORE, 0) != 0 ||
            zip_file_set_dostime(archive.get(), entry, 0, first_day, 0) != 0)
            bad_npz(file, "an archive that can be written", zip_strerror(archive.get()));
    }
    if (zip_close(archive.get()) != 0) {
        if (!output.failure.empty()) throw DataError(output.failure);
        bad_npz(file, "a file that can be written", zip_strerror(archive.get()));
    }
    archive.release();
    output.file.commit();
}

Npz read_npz(const fs::path& file, std::string_view path, const Wanted& wanted) {
    const Archive archive = open(file);
    Npz arrays;
    for (const zip_stat_t& stat : members_of(file, archive.get())) {
        std::string name = stat.name;
        if (!name.starts_with(path)) continue;
        if (!name.ends_with(".npy")) {
            const std::string kind = file_kind(file);
            if (!kind.starts_with("an .npz")) bad_npz(file, archive_of_arrays, kind);
            bad_npz(file, "members named *.npy", "'" + name + "'");
        }
        name.resize(name.size() - 4);
        const auto [entry, added] = arrays.try_emplace(name);
        if (!added) bad_npz(file, "each name once", name + " twice");
        const auto require_sound = [&](const std::string& wrong) {
            if (!wrong.empty()) bad_npz(file, "an array " + name + " that fits its header", wrong);
        };
        NpyArray header;
        bool whole = true;
        std::vector<std::byte> content =
            read_member(file, archive.get(), stat, [&](const std::vector<std::byte>& first) {
                if (!wanted) return true;
                Layout layout;
                require_sound(parse_header(first, stat.size, header, layout));
                return whole = wanted(name, header);
            });
        if (whole) require_sound(parse_npy(std::move(content), entry->second));
        else entry->second = std::move(header);
    }
    return arrays;
}

// ---- elements between arrays and .npy members: the same bytes

const char* descr_of(Dtype dtype) noexcept { return descrs[static_cast<int>(dtype)]; }

std::optional<Dtype> dtype_of_descr(std::string_view descr) noexcept {
    const auto* found = std::ranges::find(descrs, descr);
    if (found == std::end(descrs)) return {};
    return static_cast<Dtype>(found - descrs);
}

bool is_text(const NpyArray& npy) noexcept {
    return npy.descr.starts_with("|S") && npy.shape.empty();
}

std::uint64_t text_size(const NpyArray& npy) { return std::stoull(npy.descr.substr(2)); }

std::string text_of(const NpyArray& npy) {
    const std::string_view text(reinterpret_cast<const char*>(npy.bytes.data()), npy.bytes.size());
    return std::string(text.substr(0, text.find_last_not_of('\0') + 1));
}

NpyArray from_text(std::string_view text) {
    NpyArray npy{"", {}, std::vector<std::byte>(std::max<std::size_t>(text.size(), 1))};
    npy.descr = fmt::format("|S{}", npy.bytes.size());
    std::ranges::copy(std::as_bytes(std::span(text)), npy.bytes.begin());
    return npy;
}

NpyArray to_npy(const Array& array) {
    const Shape shape = array.shape();
    NpyArray npy{descr_of(array.dtype()),
                 {shape.begin(), shape.end()},
                 std::vector<std::byte>(static_cast<std::size_t>(array.nbytes()))};
    array.to_host(array.dtype(), npy.bytes.data());
    return npy;
}

Array to_array(const NpyArray& npy, Dtype dtype, Device device) {
    const Shape shape{std::span<const std::int64_t>(npy.shape)};
    return with_type(dtype, [&]<class T>(T) {
        // std::vector<bool> stores bits, not elements of type bool.
        using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        std::vector<Element> values(static_cast<std::size_t>(shape.size()));
        if (!values.empty()) std::memcpy(values.data(), npy.bytes.data(), npy.bytes.size());
        return Array::from(values, shape, device).astype(dtype);
    });
}

std::map<std::string, Array> load_arrays(const fs::path& file, Device device,
                                         std::string_view path) {
    return naming_file("load_arrays", file, [&] {
        std::map<std::string, Array> arrays;
        for (const auto& [name, npy] : read_stored(file, path)) {
            if (is_text(npy)) continue;
            const auto dtype = dtype_of_descr(npy.descr);
            if (!dtype)
                fail<DataError>(
                    "[load_arrays] {}: {}: expected dtypes float16, bfloat16 (as |V2), float32, "
                    "float64, int32, int64, uint8 or bool, got '{}'",
                    file.string(), name, npy.descr);
            arrays[name] = to_array(npy, *dtype, device);
        }
        return arrays;
    });
}

std::map<std::string, std::string> load_texts(const fs::path& file, std::string_view path) {
    return naming_file("load_texts", file, [&] {
        std::map<std::string, std::string> texts;
        for (const auto& [name, npy] : read_stored(file, path)) {
            if (is_text(npy)) texts[name] = text_of(npy);
        }
        return texts;
    });
}

void save_arrays(const fs::path& file, const std::map<std::string, Array>& arrays,
                 const std::map<std::string, std::string>& texts) {
    naming_file("save_arrays", file, [&] {
        Npz npz;
        for (const auto& [name, text] : texts) npz[name] = from_text(text);
        for (const auto& [name, array] : arrays) {
            if (array) npz[name] = to_npy(array);
        }
        write_stored(file, npz);
    });
}

}  // namespace catena
