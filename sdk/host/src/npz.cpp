// .npz over libzip. Format of .npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "npz.hpp"

#include <catena/abi/tensor.h>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/write_file.hpp>

#include <unistd.h>
#include <zip.h>
#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>

namespace catena {
namespace {

constexpr std::string_view npy_magic{"\x93NUMPY", 6};

[[noreturn]] void bad_npz(const std::filesystem::path& file, const std::string& what,
                          const std::string& got) {
    catena::fail<DataError>("[npz] {}: expected {}, got {}", file.string(), what, got);
}

std::string npy_header(const NpyArray& array) {
    std::string shape;
    for (const auto extent : array.shape) shape += fmt::format("{}, ", extent);
    if (array.shape.size() > 1) shape.resize(shape.size() - 2);
    else if (!shape.empty()) shape.pop_back();
    std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   array.descr, shape);
    // Magic, version and length take 10 bytes; data starts at a multiple of 64.
    dict.resize((dict.size() + 10 + 64) / 64 * 64 - 10, ' ');
    dict.back() = '\n';
    std::string header(npy_magic);
    header +=
        {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
    return header + dict;
}

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;

Archive open(const std::filesystem::path& file) {
    int code = 0;
    Archive archive(zip_open(file.c_str(), ZIP_RDONLY, &code), zip_discard);
    if (!archive) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const std::string text = zip_error_strerror(&error);
        zip_error_fini(&error);
        bad_npz(file, "a zip archive of arrays", text);
    }
    return archive;
}

// What libzip writes goes to an AtomicFile.
struct Output {
    AtomicFile file;
    std::string failure;  // an exception must not pass through libzip
    zip_error_t error{};
};

zip_int64_t write_output(void* user, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    Output& output = *static_cast<Output*>(user);
    switch (command) {
        case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE;
        case ZIP_SOURCE_STAT:  // there is nothing yet
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

struct ZipMember {
    std::string name;          // its bytes in the directory
    std::uint64_t packed = 0;  // bytes of its data in the file
    std::uint64_t begin = 0;   // of its header
    std::uint64_t end = 0;     // of its data
};

constexpr std::uint64_t end_size = 22, locator_size = 20, end64_size = 56;
constexpr std::uint64_t record_size = 46, header_size = 30;
constexpr std::uint64_t in_extra = 0xffffffff;  // in place of a number that needs 64 bits

// A number in little endian. The caller has checked that it is there.
std::uint64_t number(std::string_view text, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(text[at + i]);
    return value;
}

// The directory of a zip file, which libzip reads but does not show. The format is PKWARE's
// APPNOTE.TXT, 4.3 and 4.5.3. Fails if the directory or a header is damaged, or a member does not lie
// before the directory.
class Directory {
public:
    explicit Directory(const std::filesystem::path& file)
        : file_(file), in_(file, std::ios::binary) {
        std::error_code error;
        size_ = std::filesystem::file_size(file, error);
        if (error) bad_npz(file_, "a file", error.message());
        find();
    }

    std::vector<ZipMember> members() {
        const std::string all = read(begin_, bytes_, "a directory");
        std::string_view rest = all;
        std::vector<ZipMember> members;
        for (std::uint64_t i = 0; i < count_; ++i) {
            if (!rest.starts_with("PK\1\2") || rest.size() < record_size) damaged();
            const std::uint64_t name = number(rest, 28, 2), extra = number(rest, 30, 2);
            const std::uint64_t whole = record_size + name + extra + number(rest, 32, 2);
            if (rest.size() < whole) damaged();
            members.push_back(member(rest, rest.substr(record_size, name),
                                     rest.substr(record_size + name, extra)));
            rest.remove_prefix(whole);
        }
        return members;
    }

private:
    [[noreturn]] void damaged() const { bad_npz(file_, "a directory of members", "a damaged one"); }

    std::string read(std::uint64_t at, std::uint64_t bytes, const char* what) {
        std::string text;
        const bool there = at <= size_ && bytes <= size_ - at;
        if (there) text.resize(bytes);
        if (!there || !in_.seekg(static_cast<std::streamoff>(at)) ||
            !in_.read(text.data(), static_cast<std::streamsize>(bytes)))
            bad_npz(file_, fmt::format("{} of {} bytes at {}", what, bytes, at),
                    "the end of the file");
        return text;
    }

    // The record at the end of the file, behind which is a comment of at most 2^16 bytes.
    void find() {
        const std::uint64_t tail = std::min<std::uint64_t>(size_, end_size + 0xffff);
        const std::string text = read(size_ - tail, tail, "an end");
        const std::size_t at = tail < end_size ? text.npos : text.rfind("PK\5\6", tail - end_size);
        if (at == text.npos)
            bad_npz(file_, "a zip archive of arrays", "a file without a directory");
        count_ = number(text, at + 10, 2);
        bytes_ = number(text, at + 12, 4);
        begin_ = number(text, at + 16, 4);
        const std::uint64_t end = size_ - tail + at;
        if (end < locator_size) return;
        const std::string locator = read(end - locator_size, locator_size, "a locator");
        if (!locator.starts_with("PK\6\7")) return;
        const std::string end64 = read(number(locator, 8, 8), end64_size, "an end of 64 bits");
        if (!end64.starts_with("PK\6\6")) damaged();
        count_ = number(end64, 32, 8);
        bytes_ = number(end64, 40, 8);
        begin_ = number(end64, 48, 8);
    }

    ZipMember member(std::string_view record, std::string_view name, std::string_view extra) {
        std::uint64_t size = number(record, 24, 4);
        ZipMember found{std::string(name), number(record, 20, 4), number(record, 42, 4), 0};
        while (extra.size() >= 4) {
            const std::uint64_t id = number(extra, 0, 2);
            std::string_view field = extra.substr(4, number(extra, 2, 2));
            extra.remove_prefix(4 + field.size());
            if (id != 1) continue;
            for (std::uint64_t* value : {&size, &found.packed, &found.begin}) {
                if (*value != in_extra) continue;
                if (field.size() < 8) damaged();
                *value = number(field, 0, 8);
                field.remove_prefix(8);
            }
            break;
        }
        const std::string header = read(found.begin, header_size, "the header of a member");
        if (!header.starts_with("PK\3\4")) damaged();
        const std::uint64_t data =
            found.begin + header_size + number(header, 26, 2) + number(header, 28, 2);
        if (data > begin_ || found.packed > begin_ - data)
            bad_npz(file_, "members before the directory",
                    fmt::format("{} at {}", name, found.begin));
        found.end = data + found.packed;
        return found;
    }

    const std::filesystem::path& file_;
    std::ifstream in_;
    std::uint64_t size_ = 0, begin_ = 0, bytes_ = 0, count_ = 0;
};

// Members that share bytes of the file make a small file into any amount of data. (David Fifield, "A
// better zip bomb", 2019.)
void require_apart(const std::filesystem::path& file, zip_t* archive) {
    std::vector<ZipMember> members = Directory(file).members();
    // What is checked here has to be what libzip reads.
    const auto same = [&](std::uint64_t i) {
        zip_stat_t stat;
        return zip_stat_index(archive, i, ZIP_FL_ENC_RAW, &stat) == 0 &&
               stat.name == members[i].name && stat.comp_size == members[i].packed;
    };
    bool all = zip_get_num_entries(archive, 0) == std::ssize(members);
    for (std::size_t i = 0; all && i < members.size(); ++i) all = same(i);
    if (!all) bad_npz(file, "one directory of members", "several that differ");
    std::ranges::stable_sort(members, {}, &ZipMember::begin);
    const auto overlap = std::ranges::adjacent_find(
        members, [](const ZipMember& a, const ZipMember& b) { return b.begin < a.end; });
    if (overlap != members.end()) {
        bad_npz(file, "members that do not overlap",
                fmt::format("{} and {} that do", overlap->name, std::next(overlap)->name));
    }
}

// The bytes of a member, or none if go_on(the first of them) is false. Memory grows with what arrives:
// sizes in the file may be wrong.
std::vector<std::byte> read_member(
    const std::filesystem::path& file, zip_t* archive, const zip_stat_t& stat,
    const std::function<bool(const std::vector<std::byte>&)>& go_on) {
    constexpr std::uint64_t most = 1032;  // times deflate makes smaller
    const std::string name = stat.name;
    if (stat.size > stat.comp_size * most) {
        bad_npz(file, "members that fit into the file",
                fmt::format("{} of {} bytes", name, stat.size));
    }
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> member(
        zip_fopen_index(archive, stat.index, 0), zip_fclose);
    if (!member) bad_npz(file, "a readable member " + name, zip_strerror(archive));
    std::vector<std::byte> content;
    constexpr std::uint64_t first = std::uint64_t{1} << 16;  // more than a .npy header takes
    constexpr std::uint64_t piece = std::uint64_t{1} << 24;
    zip_int64_t got = 0;
    while (content.size() < stat.size) {
        const std::size_t before = content.size();
        content.resize(std::min(stat.size, before + (before == 0 ? first : piece)));
        got = zip_fread(member.get(), &content[before], content.size() - before);
        if (got != static_cast<zip_int64_t>(content.size() - before)) break;
        if (before > 0) continue;
        if (!go_on(content)) return {};
        content.reserve(std::min(stat.size, stat.comp_size));  // which the file has
    }
    // Reading on past the end is what makes libzip compare the checksum.
    char extra = 0;
    if (got < 0 || content.size() < stat.size || zip_fread(member.get(), &extra, 1) != 0) {
        bad_npz(file, fmt::format("{} bytes of {}", stat.size, name),
                got < 0 ? zip_file_strerror(member.get()) : "damaged data");
    }
    return content;
}

// The text after "'key':" in the header's dict.
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
    constexpr std::size_t most_digits = 19;  // of 64 bits; more are zeros in front
    const bool ok = error == std::errc() && end == digits.data() + digits.size() &&
                    digits.size() <= most_digits &&
                    std::string_view("<|>=").find(descr[0]) != std::string_view::npos && size > 0;
    return ok ? size : 0;
}

// Whether the product of the extents, but for those of 0, is a number of 64 bits.
bool fits(const std::vector<std::int64_t>& shape) {
    std::int64_t product = 1;
    return std::ranges::all_of(shape, [&](std::int64_t extent) {
        return !__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product);
    });
}

// Elements from the order in which the first index runs fastest to that of the last.
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
    std::uint64_t total = 0;  // bytes of all
    bool column_major = false;
};

// Fills descr, shape and layout from the first bytes of a .npy file of so many bytes. Returns an empty
// text, or what is wrong with it.
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
    if (!fits(array.shape)) return "a shape of more elements than can be";
    const bool empty = std::ranges::count(array.shape, 0) > 0;
    auto& total = layout.total = static_cast<std::uint64_t>(empty ? 0 : layout.item);
    for (const auto extent : array.shape) {  // the product itself may be too large for 64 bits
        if (!empty && total > data / static_cast<std::uint64_t>(extent)) {
            return fmt::format("only {} bytes of data", data);
        }
        total *= static_cast<std::uint64_t>(extent);
    }
    if (total != data) return fmt::format("{} bytes of data, not {}", data, total);
    return {};
}

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

void write_npz(const std::filesystem::path& file, const Npz& arrays) {
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

Npz read_npz(const std::filesystem::path& file, std::string_view path, const Wanted& wanted) {
    const Archive archive = open(file);
    require_apart(file, archive.get());
    Npz arrays;
    const zip_int64_t n = zip_get_num_entries(archive.get(), 0);
    for (zip_int64_t i = 0; i < n; ++i) {
        zip_stat_t stat;
        if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0)
            bad_npz(file, "a readable archive", zip_strerror(archive.get()));
        std::string name = stat.name;
        if (!name.starts_with(path)) continue;
        if (!name.ends_with(".npy")) bad_npz(file, "members named *.npy", "'" + name + "'");
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

}  // namespace catena
