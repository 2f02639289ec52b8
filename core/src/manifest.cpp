// Reads a plugin's manifest from the file: no code of the plugin runs.
#include "abi_sizes.hpp"
#include "loader.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace catena {
namespace {

class ElfFile {
public:
    explicit ElfFile(const std::filesystem::path& path) {
        std::error_code error;
        const auto kind = std::filesystem::status(path, error).type();
        if (kind == std::filesystem::file_type::not_found)
            throw PluginError("there is no such file");
        if (kind != std::filesystem::file_type::regular) throw PluginError("it is no regular file");
        file_.open(path, std::ios::binary);
        if (!file_) throw PluginError("the file cannot be opened");
        file_.seekg(0, std::ios::end);
        size_ = static_cast<std::uint64_t>(file_.tellg());
    }

    // Throws if the file ends before.
    template <class T>
    T read(std::uint64_t offset) {
        T value;
        read(offset, &value, sizeof(T));
        return value;
    }
    void read(std::uint64_t offset, void* target, std::uint64_t bytes) {
        if (offset > size_ || bytes > size_ - offset) {
            throw PluginError(fmt::format("the file is truncated: {} bytes at {} wanted, it has {}",
                                          bytes, offset, size_));
        }
        file_.seekg(static_cast<std::streamoff>(offset));
        file_.read(static_cast<char*>(target), static_cast<std::streamsize>(bytes));
        if (!file_) throw PluginError("the file cannot be read");
    }
    std::uint64_t size() const { return size_; }

private:
    std::ifstream file_;
    std::uint64_t size_ = 0;
};

template <std::size_t N>
std::string field(const char (&text)[N]) {
    return std::string(text, strnlen(text, N));
}

}  // namespace

catena_manifest read_raw_manifest(const std::filesystem::path& path) {
    ElfFile file(path);
    if (file.size() < sizeof(Elf64_Ehdr))
        throw PluginError("not a shared library: it is too short");
    const auto header = file.read<Elf64_Ehdr>(0);
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
    const auto section = [&](unsigned i) {
        return file.read<Elf64_Shdr>(header.e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr names = section(header.e_shstrndx);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr s = section(i);
        char name[sizeof(CATENA_MANIFEST_SECTION)] = {};
        if (s.sh_name >= names.sh_size || names.sh_size - s.sh_name < sizeof(name)) continue;
        file.read(names.sh_offset + s.sh_name, name, sizeof(name));
        if (std::memcmp(name, CATENA_MANIFEST_SECTION, sizeof(name)) != 0) continue;
        if (s.sh_size < size_1_0<catena_manifest>) {
            throw PluginError(fmt::format("its manifest: expected at least {} bytes, got {}",
                                          size_1_0<catena_manifest>, s.sh_size));
        }
        catena_manifest manifest{};  // an older plugin's may be shorter than this host's
        file.read(s.sh_offset, &manifest, std::min<std::uint64_t>(s.sh_size, sizeof(manifest)));
        if (std::memcmp(manifest.magic, CATENA_MANIFEST_MAGIC, sizeof(manifest.magic)) != 0) {
            throw PluginError("its manifest does not begin with CATENAPL");
        }
        // A file cut behind the manifest would bring down the dynamic loader: check the segments.
        for (unsigned p = 0; p < header.e_phnum; ++p) {
            const auto segment =
                file.read<Elf64_Phdr>(header.e_phoff + std::uint64_t{p} * sizeof(Elf64_Phdr));
            if (segment.p_type == PT_LOAD && (segment.p_offset > file.size() ||
                                              segment.p_filesz > file.size() - segment.p_offset)) {
                throw PluginError("the file is truncated: a segment ends behind it");
            }
        }
        return manifest;
    }
    throw PluginError("no catena plugin: it has no manifest (section .catena)");
}

LoadedPlugin check_manifest(const catena_manifest& m, const std::filesystem::path& path) {
    if (m.abi_major != CATENA_ABI_MAJOR) {
        throw PluginError(
            fmt::format("ABI major: expected {}, got {}", CATENA_ABI_MAJOR, m.abi_major));
    }
    if (m.abi_minor_needed > CATENA_ABI_MINOR) {
        throw PluginError(fmt::format("ABI minor: it needs {}.{}, this host has {}.{}", m.abi_major,
                                      m.abi_minor_needed, CATENA_ABI_MAJOR, CATENA_ABI_MINOR));
    }
    if (m.struct_size < size_1_0<catena_manifest>) {
        throw PluginError(fmt::format("its manifest: struct_size: expected at least {}, got {}",
                                      size_1_0<catena_manifest>, m.struct_size));
    }
    LoadedPlugin info{
        field(m.id), field(m.version), field(m.vendor), field(m.devices), path, 0, 0, 0};
    if (info.id.empty()) throw PluginError("its manifest has no id");
    return info;
}

LoadedPlugin read_manifest(const std::filesystem::path& file) {
    try {
        return check_manifest(read_raw_manifest(file), file);
    } catch (const PluginError& error) {
        throw PluginError(fmt::format("{}: {}", file.string(), error.what()));
    }
}

}  // namespace catena
