// The tables of an ELF file, none of them believed.
#include "elf_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace catena {
namespace {

// Links are followed; what is no regular file is not waited for.
int opened(const std::filesystem::path& file) {
    const int fd = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) return fd;
    if (errno == ENOENT) throw PluginError("there is no such file");
    throw PluginError(
        fmt::format("the file cannot be opened: {}", std::generic_category().message(errno)));
}

// Zero-terminated, within a table.
std::string text_at(const std::vector<char>& table, std::uint64_t at, const char* what) {
    if (at < table.size())
        return {table.data() + at, strnlen(table.data() + at, table.size() - at)};
    throw PluginError(
        fmt::format("{} is damaged: a name at {}, the table has {} bytes", what, at, table.size()));
}

}  // namespace

ElfFile::ElfFile(const std::filesystem::path& file) : fd_(opened(file)) {
    own_ = std::shared_ptr<void>(nullptr, [fd = fd_](void*) { close(fd); });
    read_headers();
}

ElfFile::ElfFile(int fd) : fd_(fd) { read_headers(); }

void ElfFile::need(std::uint64_t offset, std::uint64_t bytes, const char* what) const {
    if (offset <= size_ && bytes <= size_ - offset) return;
    throw PluginError(fmt::format("the file is truncated: {}: {} bytes at {} wanted, it has {}",
                                  what, bytes, offset, size_));
}

template <class T>
std::vector<T> ElfFile::table(std::uint64_t offset, std::uint64_t bytes, const char* what) const {
    need(offset, bytes, what);  // before memory is asked for
    std::vector<T> entries(bytes / sizeof(T));
    auto* to = reinterpret_cast<char*>(entries.data());
    for (std::uint64_t left = entries.size() * sizeof(T); left > 0;) {
        const ssize_t n = pread(fd_, to, left, static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw PluginError("the file cannot be read");
        to += n;
        offset += static_cast<std::uint64_t>(n);
        left -= static_cast<std::uint64_t>(n);
    }
    return entries;
}

void ElfFile::read_headers() {
    struct stat status {};
    if (fstat(fd_, &status) != 0) throw PluginError("the file cannot be read");
    if (!S_ISREG(status.st_mode)) throw PluginError("it is no regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);

    if (size_ < sizeof(Elf64_Ehdr)) throw PluginError("not a shared library: it is too short");
    const auto header = table<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr), "its header").front();
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        throw PluginError("not a shared library: it does not begin as an ELF file");
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_DYN) {
        throw PluginError("not a 64-bit little-endian shared library");
    }
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum) {
        throw PluginError("its section table is damaged");
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr)) {
        throw PluginError("its segment table is damaged");
    }
    machine_ = header.e_machine;
    read_segments(header);
    read_sections(header);
}

void ElfFile::read_segments(const Elf64_Ehdr& header) {
    segments_ = table<Elf64_Phdr>(
        header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), "its segment table");
    for (const Elf64_Phdr& s : segments_) {
        // A file cut behind its headers would bring down the system's loader.
        if (s.p_type == PT_LOAD) need(s.p_offset, s.p_filesz, "a segment");
        if (s.p_type != PT_DYNAMIC) continue;
        dynamic_ = table<Elf64_Dyn>(s.p_offset, s.p_filesz, "its dynamic section");
        const auto end = std::ranges::find(dynamic_, DT_NULL, &Elf64_Dyn::d_tag);
        dynamic_.erase(end, dynamic_.end());
    }
    if (dynamic_.empty()) throw PluginError("it has no dynamic section");
}

void ElfFile::read_sections(const Elf64_Ehdr& header) {
    const auto headers = table<Elf64_Shdr>(
        header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "its section table");
    const Elf64_Shdr& names = headers[header.e_shstrndx];
    const auto texts = table<char>(names.sh_offset, names.sh_size, "its names of sections");
    for (const Elf64_Shdr& s : headers) {
        if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS)
            need(s.sh_offset, s.sh_size, "a section");
        sections_.push_back({text_at(texts, s.sh_name, "its section table"), s});
    }
}

std::string ElfFile::machine() const {
    switch (machine_) {
        case EM_X86_64: return "x86-64";
        case EM_AARCH64: return "aarch64";
        case EM_RISCV: return "riscv64";
        default: return fmt::format("ELF machine {}", machine_);
    }
}

std::string ElfFile::build_id() const {
    const Section* const found = section(".note.gnu.build-id");
    if (!found) return {};
    const auto note = contents(*found);
    Elf64_Nhdr head;
    if (note.size() < sizeof head) return {};
    std::memcpy(&head, note.data(), sizeof head);
    const std::size_t begin = sizeof head + (std::size_t{head.n_namesz} + 3) / 4 * 4;
    if (head.n_type != NT_GNU_BUILD_ID || begin > note.size()) return {};
    const std::size_t bytes = std::min<std::size_t>(head.n_descsz, note.size() - begin);
    const auto* const id = note.data() + begin;
    return fmt::format("{:02x}", fmt::join(id, id + bytes, ""));
}

const ElfFile::Section* ElfFile::section(std::string_view name) const {
    const auto found = std::ranges::find(sections_, name, &Section::name);
    return found == sections_.end() ? nullptr : &*found;
}

std::vector<std::uint8_t> ElfFile::contents(const Section& section) const {
    const Elf64_Shdr& s = section.header;
    if (s.sh_type == SHT_NOBITS) return {};
    return table<std::uint8_t>(s.sh_offset, s.sh_size, "a section");
}

std::vector<std::uint64_t> ElfFile::values(std::int64_t tag) const {
    std::vector<std::uint64_t> result;
    for (const Elf64_Dyn& d : dynamic_)
        if (d.d_tag == tag) result.push_back(d.d_un.d_val);
    return result;
}

std::vector<std::string> ElfFile::strings(std::int64_t tag) const {
    std::vector<std::string> result;
    const auto offsets = values(tag);
    if (offsets.empty()) return result;
    const auto texts = mapped<char>(DT_STRTAB, DT_STRSZ, "its table of names");
    for (const std::uint64_t offset : offsets)
        result.push_back(text_at(texts, offset, "its dynamic section"));
    return result;
}

std::vector<std::string> ElfFile::stand_ins() const {
    std::vector<std::string> result;
    for (const auto& [tag, word] : {std::pair{DT_AUXILIARY, "DT_AUXILIARY"},
                                    {DT_FILTER, "DT_FILTER"},
                                    {DT_AUDIT, "DT_AUDIT"},
                                    {DT_DEPAUDIT, "DT_DEPAUDIT"}}) {
        for (const std::string& name : strings(tag))
            result.push_back(fmt::format("{} ({})", name, word));
    }
    return result;
}

std::vector<ElfFile::Symbol> ElfFile::symbols(std::uint32_t section_type) const {
    std::vector<Symbol> result;
    for (const Section& section : sections_) {
        const Elf64_Shdr& s = section.header;
        if (s.sh_type != section_type) continue;
        if (s.sh_link >= sections_.size()) throw PluginError("its symbols have no names");
        const Elf64_Shdr& names = sections_[s.sh_link].header;
        const auto texts = table<char>(names.sh_offset, names.sh_size, "the names of its symbols");
        const auto entries = table<Elf64_Sym>(s.sh_offset, s.sh_size, "its symbols");
        for (std::size_t i = 1; i < entries.size(); ++i) {  // the first is none
            const Elf64_Sym& e = entries[i];
            result.push_back({text_at(texts, e.st_name, "its table of symbols"),
                              static_cast<unsigned char>(ELF64_ST_BIND(e.st_info)),
                              static_cast<unsigned char>(ELF64_ST_TYPE(e.st_info)),
                              static_cast<unsigned char>(ELF64_ST_VISIBILITY(e.st_other)),
                              e.st_shndx != SHN_UNDEF, e.st_shndx == SHN_ABS, e.st_value,
                              e.st_size});
        }
    }
    return result;
}

std::vector<ElfFile::Relocation> ElfFile::relocations() const {
    std::vector<Relocation> result;
    for (const auto& [begin, bytes] : {std::pair{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}}) {
        for (const auto& r : mapped<Elf64_Rela>(begin, bytes, "its relocations"))
            result.push_back({r.r_offset, static_cast<std::uint64_t>(r.r_addend)});
    }
    const auto relative = [&](std::uint64_t at) {
        const std::uint64_t offset = offset_of(at, sizeof(std::uint64_t), "a relocation");
        result.push_back({at, table<std::uint64_t>(offset, sizeof at, "a relocation").front()});
    };
    // Packed: an address, or bits for the 63 words that follow.
    std::uint64_t next = 0;
    for (const std::uint64_t entry : mapped<std::uint64_t>(DT_RELR, DT_RELRSZ, "its relocations")) {
        if (entry % 2 == 0) {
            relative(entry);
            next = entry + 8;
            continue;
        }
        for (unsigned bit = 1; bit < 64; ++bit)
            if ((entry >> bit & 1) != 0) relative(next + (bit - 1) * 8);
        next += 63 * 8;
    }
    return result;
}

std::uint64_t ElfFile::offset_of(std::uint64_t address, std::uint64_t bytes,
                                 const char* what) const {
    for (const Elf64_Phdr& s : segments_) {
        const std::uint64_t into = address - s.p_vaddr;
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && into <= s.p_filesz &&
            bytes <= s.p_filesz - into)
            return s.p_offset + into;
    }
    throw PluginError(fmt::format("{}: {} bytes at address {:#x} wanted, it has none there", what,
                                  bytes, address));
}

template <class T>
std::vector<T> ElfFile::mapped(std::int64_t begin, std::int64_t bytes, const char* what) const {
    const auto address = values(begin), size = values(bytes);
    if (address.empty() && size.empty()) return {};
    if (address.size() != 1 || size.size() != 1)
        throw PluginError(fmt::format("{}: expected them once, got {} beginnings and {} sizes",
                                      what, address.size(), size.size()));
    return table<T>(offset_of(address[0], size[0], what), size[0], what);
}

}  // namespace catena
