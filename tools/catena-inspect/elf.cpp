// Reads plugins as ELF files. Whatever a file says, nothing is read outside of it.
#include "elf.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace catena::inspect {
namespace {

class File {
public:
    explicit File(const std::filesystem::path& path) {
        std::error_code error;
        const auto kind = std::filesystem::status(path, error).type();
        if (kind == std::filesystem::file_type::not_found) throw Error("there is no such file");
        if (kind != std::filesystem::file_type::regular) throw Error("it is no regular file");
        in_.open(path, std::ios::binary);
        in_.seekg(0, std::ios::end);
        if (!in_) throw Error("the file cannot be opened");
        size_ = static_cast<std::uint64_t>(in_.tellg());
    }

    std::uint64_t size() const { return size_; }
    void read(std::uint64_t offset, std::uint64_t bytes, void* target) {
        if (offset > size_ || bytes > size_ - offset) {
            throw Error(fmt::format("the file is truncated: {} bytes at {} wanted, it has {}",
                                    bytes, offset, size_));
        }
        in_.seekg(static_cast<std::streamoff>(offset));
        in_.read(static_cast<char*>(target), static_cast<std::streamsize>(bytes));
        if (!in_) throw Error("the file cannot be read");
    }
    template <class T>
    T read(std::uint64_t offset) {
        T value;
        read(offset, sizeof(T), &value);
        return value;
    }

private:
    std::ifstream in_;
    std::uint64_t size_ = 0;
};

class Elf {
public:
    explicit Elf(const std::filesystem::path& path) : file_(path) {
        if (file_.size() < sizeof(header_)) throw Error("not a shared library: it is too short");
        header_ = file_.read<Elf64_Ehdr>(0);
        if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
            throw Error("not a shared library: it does not begin as an ELF file");
        }
        if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
            header_.e_type != ET_DYN) {
            throw Error("not a 64-bit little-endian shared library");
        }
        if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= header_.e_shnum) {
            throw Error("its section table is damaged");
        }
        for (unsigned i = 0; i < header_.e_shnum; ++i) {
            sections_.push_back(
                file_.read<Elf64_Shdr>(header_.e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr)));
        }
        for (unsigned i = 0; i < header_.e_phnum; ++i) {
            const auto segment =
                file_.read<Elf64_Phdr>(header_.e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr));
            if (segment.p_type == PT_LOAD && (segment.p_offset > file_.size() ||
                                              segment.p_filesz > file_.size() - segment.p_offset)) {
                throw Error("the file is truncated: a segment ends behind it");
            }
        }
    }

    std::uint64_t size() const { return file_.size(); }

    std::string machine() const {
        switch (header_.e_machine) {
            case EM_X86_64: return "x86-64";
            case EM_AARCH64: return "aarch64";
            case EM_RISCV: return "riscv64";
            default: return fmt::format("ELF machine {}", header_.e_machine);
        }
    }

    // Null if there is none.
    const Elf64_Shdr* section(std::string_view name) {
        const std::string names = bytes(sections_[header_.e_shstrndx]);
        const auto found = std::ranges::find_if(
            sections_, [&](const auto& s) { return string_at(names, s.sh_name) == name; });
        return found == sections_.end() ? nullptr : &*found;
    }

    // The start of a section, as much of it as T has; the rest of T is zero.
    template <class T>
    T head(const Elf64_Shdr& section) {
        T value{};
        file_.read(section.sh_offset, std::min<std::uint64_t>(section.sh_size, sizeof(T)), &value);
        return value;
    }

    std::vector<std::string> needed() {
        std::vector<std::string> names;
        for_each<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn& entry, const std::string& strings) {
            if (entry.d_tag == DT_NEEDED) names.push_back(string_at(strings, entry.d_un.d_val));
        });
        return names;
    }

    std::vector<std::string> exports() {
        std::vector<std::string> names;
        for_each<Elf64_Sym>(SHT_DYNSYM, [&](const Elf64_Sym& symbol, const std::string& strings) {
            const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
            if (defined && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
                names.push_back(string_at(strings, symbol.st_name));
            }
        });
        std::ranges::sort(names);
        return names;
    }

    std::string build_id() {
        const Elf64_Shdr* section = this->section(".note.gnu.build-id");
        if (!section) return {};
        const std::string note = bytes(*section);
        Elf64_Nhdr head;
        if (note.size() < sizeof(head)) return {};
        std::memcpy(&head, note.data(), sizeof(head));
        const std::size_t begin = sizeof(head) + (std::size_t{head.n_namesz} + 3) / 4 * 4;
        if (head.n_type != NT_GNU_BUILD_ID || begin > note.size()) return {};
        std::string text;
        for (const char c : note.substr(begin, head.n_descsz)) {
            text += fmt::format("{:02x}", static_cast<unsigned char>(c));
        }
        return text;
    }

private:
    std::string bytes(const Elf64_Shdr& section) {
        if (section.sh_type == SHT_NOBITS) return {};
        if (section.sh_size > file_.size()) throw Error("its section table is damaged");
        std::string data(section.sh_size, '\0');
        file_.read(section.sh_offset, data.size(), data.data());
        return data;
    }

    static std::string string_at(const std::string& strings, std::uint64_t at) {
        return at < strings.size() ? std::string(strings.c_str() + at) : std::string();
    }

    // body(entry, strings) for all of the tables of that type.
    template <class Entry, class Body>
    void for_each(std::uint32_t type, const Body& body) {
        for (const auto& section : sections_) {
            if (section.sh_type != type) continue;
            if (section.sh_link >= sections_.size()) throw Error("its section table is damaged");
            const std::string strings = bytes(sections_[section.sh_link]);
            const std::string entries = bytes(section);
            for (std::size_t i = 0; i + sizeof(Entry) <= entries.size(); i += sizeof(Entry)) {
                Entry entry;
                std::memcpy(&entry, entries.data() + i, sizeof(Entry));
                body(entry, strings);
            }
        }
    }

    File file_;
    Elf64_Ehdr header_ = {};
    std::vector<Elf64_Shdr> sections_;
};

}  // namespace

Library read_library(const std::filesystem::path& path) {
    Elf elf(path);
    const Elf64_Shdr* section = elf.section(CATENA_MANIFEST_SECTION);
    if (!section || section->sh_type == SHT_NOBITS) {
        throw Error("no catena plugin: it has no manifest (section .catena)");
    }
    Library library{elf.size(),   elf.machine(), elf.build_id(),
                    elf.needed(), elf.exports(), elf.head<catena_manifest>(*section)};
    const catena_manifest& m = library.manifest;
    if (std::memcmp(m.magic, CATENA_MANIFEST_MAGIC, sizeof(m.magic)) != 0) {
        throw Error("its manifest does not begin with CATENAPL");
    }
    return library;
}

}  // namespace catena::inspect
