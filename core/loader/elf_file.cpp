// Checks the headers of an ELF file before libelf follows them.
#include "elf_file.hpp"

#include <fmt/format.h>
#include <limits.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace catena {
namespace {

// Returns libelf's last error. Throws std::bad_alloc for ENOMEM, which libelf does not report.
std::string libelf_error() {
    if (errno == ENOMEM) throw std::bad_alloc();
    return elf_errmsg(-1);
}

}  // namespace

ElfFile::ElfFile(int fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) throw PluginError("the file cannot be read");
    if (!S_ISREG(status.st_mode)) throw PluginError("it is no regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ < sizeof header_) throw PluginError("not a shared library: it is too short");
    if (pread(fd, &header_, sizeof header_, 0) != sizeof header_)
        throw PluginError("the file cannot be read");
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0)
        throw PluginError("not a shared library: it does not begin as an ELF file");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_type != ET_DYN)
        throw PluginError("not a 64-bit little-endian shared library");
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= header_.e_shnum)
        throw PluginError("its section table is damaged");
    need(header_.e_phoff, std::uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr), "its segment table");
    need(header_.e_shoff, std::uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr), "its section table");
    elf_version(EV_CURRENT);
    elf_ = {elf_begin(fd, ELF_C_READ, nullptr), elf_end};
    if (!elf_) throw PluginError(fmt::format("it cannot be read: {}", elf_errmsg(-1)));
    read_segments();
    read_sections();
}

void ElfFile::need(std::uint64_t offset, std::uint64_t bytes, const char* what) const {
    if (offset <= size_ && bytes <= size_ - offset) return;
    throw PluginError(fmt::format("the file is truncated: {}: {} bytes at {} wanted, it has {}",
                                  what, bytes, offset, size_));
}

const void* ElfFile::bytes_at(std::uint64_t offset, std::uint64_t bytes, const char* what) const {
    need(offset, bytes, what);
    if (bytes == 0) return nullptr;
    errno = 0;
    const Elf_Data* const data =
        elf_getdata_rawchunk(elf_.get(), static_cast<std::int64_t>(offset), bytes, ELF_T_BYTE);
    if (!data) throw PluginError(fmt::format("{} cannot be read: {}", what, libelf_error()));
    return data->d_buf;
}

void ElfFile::read_segments() {
    bool dynamic = false;
    for (std::size_t i = 0; i < header_.e_phnum; ++i) {
        GElf_Phdr s;
        if (!gelf_getphdr(elf_.get(), static_cast<int>(i), &s))
            throw PluginError("its segment table is damaged");
        // The system's loader crashes on a file that lacks part of a segment.
        if (s.p_type == PT_LOAD) need(s.p_offset, s.p_filesz, "a segment");
        dynamic = dynamic || (s.p_type == PT_DYNAMIC && s.p_filesz > 0);
        segments_.push_back(s);
    }
    if (!dynamic) throw PluginError("it has no dynamic section");
}

void ElfFile::read_sections() {
    for (std::size_t i = 0; i < header_.e_shnum; ++i) {
        GElf_Shdr s;
        if (!gelf_getshdr(elf_getscn(elf_.get(), i), &s))
            throw PluginError("its section table is damaged");
        if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS)
            need(s.sh_offset, s.sh_size, "a section");
        errno = 0;
        const char* const name = elf_strptr(elf_.get(), header_.e_shstrndx, s.sh_name);
        if (!name) {
            throw PluginError(fmt::format("its section table is damaged: a name at {}: {}",
                                          s.sh_name, libelf_error()));
        }
        sections_.push_back({name, s});
    }
}

const ElfFile::Section* ElfFile::section(std::string_view name) const {
    const auto found = std::ranges::find(sections_, name, &Section::name);
    return found == sections_.end() ? nullptr : &*found;
}

catena_manifest manifest_of(const ElfFile& file) {
    const ElfFile::Section* const section = file.section(CATENA_MANIFEST_SECTION);
    if (!section) throw PluginError("no catena plugin: it has no manifest (section .catena)");
    const auto bytes = file.contents(*section);
    if (bytes.size() < size_1_0<catena_manifest>) {
        throw PluginError(fmt::format("its manifest: expected at least {} bytes, got {}",
                                      size_1_0<catena_manifest>, bytes.size()));
    }
    catena_manifest manifest{};
    std::memcpy(&manifest, bytes.data(), std::min(bytes.size(), sizeof(manifest)));
    if (std::memcmp(manifest.magic, CATENA_MANIFEST_MAGIC, sizeof(manifest.magic)) != 0)
        throw PluginError("its manifest does not begin with CATENAPL");
    return manifest;
}

}  // namespace catena
