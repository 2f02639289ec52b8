// Reads ELF headers with every offset checked.
#include "elf_file.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace catena {

ElfFile::ElfFile(int fd) : fd_(fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) throw PluginError("the file cannot be read");
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ < sizeof(header_)) throw PluginError("not a shared library: it is too short");
    header_ = read<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
        throw PluginError("not a shared library: it does not begin as an ELF file");
    }
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_type != ET_DYN) {
        throw PluginError("not a 64-bit little-endian shared library");
    }
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= header_.e_shnum) {
        throw PluginError("its section table is damaged");
    }
}

void ElfFile::read(std::uint64_t offset, void* target, std::uint64_t bytes) const {
    if (offset > size_ || bytes > size_ - offset) {
        throw PluginError(fmt::format("the file is truncated: {} bytes at {} wanted, it has {}",
                                      bytes, offset, size_));
    }
    const ssize_t n = pread(fd_, target, bytes, static_cast<off_t>(offset));
    if (n != static_cast<ssize_t>(bytes)) throw PluginError("the file cannot be read");
}

std::optional<Elf64_Shdr> ElfFile::section(std::string_view wanted) const {
    const auto header = [&](unsigned i) {
        return read<Elf64_Shdr>(header_.e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr names = header(header_.e_shstrndx);
    std::string name(wanted.size() + 1, '\0');
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
        const Elf64_Shdr s = header(i);
        if (s.sh_name >= names.sh_size || names.sh_size - s.sh_name < name.size()) continue;
        read(names.sh_offset + s.sh_name, name.data(), name.size());
        if (name.back() == '\0' && name.compare(0, wanted.size(), wanted) == 0) return s;
    }
    return std::nullopt;
}

Elf64_Phdr ElfFile::segment(unsigned i) const {
    return read<Elf64_Phdr>(header_.e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr));
}

void ElfFile::check_segments() const {
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
        const Elf64_Phdr s = segment(i);
        if (s.p_type == PT_LOAD && (s.p_offset > size_ || s.p_filesz > size_ - s.p_offset)) {
            throw PluginError("the file is truncated: a segment ends behind it");
        }
    }
}

std::string ElfFile::text(std::uint64_t offset) const {
    std::string result;
    for (char part[256];;) {
        const auto n = std::min<std::uint64_t>(sizeof(part), size_ - std::min(size_, offset));
        if (n == 0) throw PluginError("the file is truncated: a text ends behind it");
        read(offset, part, n);
        const auto length = strnlen(part, n);
        result.append(part, length);
        if (length < n) return result;
        offset += n;
    }
}

ElfFile::Wants ElfFile::wants() const {
    std::vector<Elf64_Phdr> loaded;
    std::vector<Elf64_Dyn> entries;
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
        const Elf64_Phdr s = segment(i);
        if (s.p_type == PT_LOAD) loaded.push_back(s);
        if (s.p_type != PT_DYNAMIC) continue;
        for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= s.p_filesz; at += sizeof(Elf64_Dyn)) {
            entries.push_back(read<Elf64_Dyn>(s.p_offset + at));
            if (entries.back().d_tag == DT_NULL) break;
        }
    }
    const auto value = [&](std::int64_t tag) -> std::optional<std::uint64_t> {
        const auto found = std::ranges::find(entries, tag, &Elf64_Dyn::d_tag);
        if (found == entries.end()) return std::nullopt;
        return found->d_un.d_val;
    };
    Wants wants;
    const auto address = value(DT_STRTAB);
    if (!address) return wants;
    const auto segment = std::ranges::find_if(loaded, [&](const Elf64_Phdr& s) {
        return *address >= s.p_vaddr && *address - s.p_vaddr < s.p_filesz;
    });
    if (segment == loaded.end()) throw PluginError("its table of names is damaged");
    const std::uint64_t texts = segment->p_offset + (*address - segment->p_vaddr);
    for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_NEEDED) wants.libraries.push_back(text(texts + entry.d_un.d_val));
    }
    if (const auto name = value(DT_SONAME)) wants.soname = text(texts + *name);
    auto path = value(DT_RUNPATH);
    wants.is_runpath = path.has_value();
    if (!path) path = value(DT_RPATH);
    if (!path) return wants;
    const std::string list = text(texts + *path);
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(':', begin), list.size());
        wants.folders.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    return wants;
}

}  // namespace catena
