// Every offset and count is checked against the size of the file.
#include "elf_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace catena::tools {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;
constexpr std::uint64_t most_entries = 50'000'000;

}  // namespace

const std::uint8_t* ElfFile::at(std::uint64_t offset, std::uint64_t bytes, const char* what) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
        throw ElfError(fmt::format("the file is truncated: {}: {} bytes at {} wanted, it has {}",
                                   what, bytes, offset, bytes_.size()));
    }
    return bytes_.data() + offset;
}

std::string ElfFile::text(const Elf64_Shdr& section, std::uint64_t offset) const {
    at(section.sh_offset, section.sh_size, "a table of strings");
    if (offset >= section.sh_size)
        throw ElfError(
            fmt::format("a string at {}, its table has {} bytes", offset, section.sh_size));
    const auto* const begin =
        reinterpret_cast<const char*>(bytes_.data() + section.sh_offset + offset);
    return {begin, strnlen(begin, section.sh_size - offset)};
}

ElfFile::ElfFile(const std::filesystem::path& file) {
    std::error_code error;
    const auto kind = std::filesystem::status(file, error).type();
    if (kind == std::filesystem::file_type::not_found) throw ElfError("there is no such file");
    if (kind != std::filesystem::file_type::regular) throw ElfError("it is no regular file");
    std::ifstream stream(file, std::ios::binary | std::ios::ate);
    if (!stream) throw ElfError("the file cannot be opened");
    const auto size = static_cast<std::uint64_t>(stream.tellg());
    if (size > most_bytes)
        throw ElfError(fmt::format("expected at most {} bytes, got {}", most_bytes, size));
    bytes_.resize(size);
    stream.seekg(0);
    stream.read(reinterpret_cast<char*>(bytes_.data()), static_cast<std::streamsize>(size));
    if (!stream) throw ElfError("the file cannot be read");

    if (size < sizeof(Elf64_Ehdr)) throw ElfError("not a shared library: it is too short");
    const auto header = read<Elf64_Ehdr>(0, "the ELF header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        throw ElfError("not a shared library: it does not begin as an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_DYN)
        throw ElfError("not a 64-bit little-endian shared library");
    if (header.e_phentsize != sizeof(Elf64_Phdr) ||
        (header.e_shnum > 0 && header.e_shentsize != sizeof(Elf64_Shdr)))
        throw ElfError("its tables have entries of other sizes than 64-bit ELF");
    machine_ = header.e_machine;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        segments_.push_back(
            read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "a program header"));
        if (segments_.back().p_type == PT_LOAD)
            at(segments_.back().p_offset, segments_.back().p_filesz, "a segment");
    }
    for (unsigned i = 0; i < header.e_shnum; ++i)
        sections_.push_back(
            {"", read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr), "a section header")});
    if (!sections_.empty() && header.e_shstrndx >= sections_.size())
        throw ElfError("its sections have no names");
    for (Section& s : sections_) {
        if (s.header.sh_type != SHT_NULL && s.header.sh_type != SHT_NOBITS)
            at(s.header.sh_offset, s.header.sh_size, "a section");
        s.name = text(sections_[header.e_shstrndx].header, s.header.sh_name);
    }
    for (const Elf64_Phdr& segment : segments_) {
        if (segment.p_type != PT_DYNAMIC) continue;
        for (std::uint64_t i = 0; i + sizeof(Elf64_Dyn) <= segment.p_filesz;
             i += sizeof(Elf64_Dyn)) {
            dynamic_.push_back(read<Elf64_Dyn>(segment.p_offset + i, "the dynamic section"));
            if (dynamic_.back().d_tag == DT_NULL) break;
        }
    }
    if (dynamic_.empty()) throw ElfError("it has no dynamic section");
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
    if (found == nullptr) return {};
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
    for (const Section& s : sections_)
        if (s.name == name) return &s;
    return nullptr;
}

std::vector<std::uint8_t> ElfFile::contents(const Section& section) const {
    if (section.header.sh_type == SHT_NOBITS) return {};
    const auto* const begin = at(section.header.sh_offset, section.header.sh_size, "a section");
    return {begin, begin + section.header.sh_size};
}

std::vector<std::uint64_t> ElfFile::values(std::int64_t tag) const {
    std::vector<std::uint64_t> result;
    for (const Elf64_Dyn& d : dynamic_)
        if (d.d_tag == tag) result.push_back(d.d_un.d_val);
    return result;
}

std::vector<std::string> ElfFile::strings(std::int64_t tag) const {
    std::vector<std::string> result;
    const Section* const table = section(".dynstr");
    for (const std::uint64_t offset : values(tag)) {
        if (table == nullptr) throw ElfError("it has no section .dynstr");
        result.push_back(text(table->header, offset));
    }
    return result;
}

std::vector<ElfFile::Symbol> ElfFile::symbols(std::uint32_t section_type) const {
    std::vector<Symbol> result;
    for (const Section& s : sections_) {
        if (s.header.sh_type != section_type) continue;
        if (s.header.sh_link >= sections_.size())
            throw ElfError("a table of symbols without names");
        const std::uint64_t n = s.header.sh_size / sizeof(Elf64_Sym);
        if (n > most_entries) throw ElfError("a table of too many symbols");
        for (std::uint64_t i = 1; i < n; ++i) {
            const auto symbol =
                read<Elf64_Sym>(s.header.sh_offset + i * sizeof(Elf64_Sym), "a symbol");
            result.push_back({text(sections_[s.header.sh_link].header, symbol.st_name),
                              static_cast<unsigned char>(ELF64_ST_BIND(symbol.st_info)),
                              static_cast<unsigned char>(ELF64_ST_TYPE(symbol.st_info)),
                              static_cast<unsigned char>(ELF64_ST_VISIBILITY(symbol.st_other)),
                              symbol.st_shndx != SHN_UNDEF, symbol.st_shndx == SHN_ABS,
                              symbol.st_value, symbol.st_size});
        }
    }
    return result;
}

std::vector<ElfFile::Relocation> ElfFile::relocations() const {
    std::vector<Relocation> result;
    for (const Section& s : sections_) {
        if (s.header.sh_type != SHT_RELA || (s.header.sh_flags & SHF_ALLOC) == 0) continue;
        const std::uint64_t n = s.header.sh_size / sizeof(Elf64_Rela);
        if (n > most_entries) throw ElfError("a table of too many relocations");
        for (std::uint64_t i = 0; i < n; ++i) {
            const auto r =
                read<Elf64_Rela>(s.header.sh_offset + i * sizeof(Elf64_Rela), "a relocation");
            result.push_back(
                {r.r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(r.r_info)), r.r_addend});
        }
    }
    return result;
}

}  // namespace catena::tools
