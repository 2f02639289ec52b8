// Reads a shared library with libelf; none of its code runs. Offsets and counts are checked against the size
// of the file, so that a damaged file throws and does no harm.
#pragma once

#include <catena/abi/plugin.h>
#include <catena/core/error.hpp>

#include <gelf.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace catena {

// All functions throw PluginError with the reason only.
class ElfFile {
public:
    struct Section {
        std::string name;
        Elf64_Shdr header;
    };

    // Throws for a file that is not a 64-bit little-endian shared library with sections, or is truncated. The
    // caller owns the descriptor, and keeps it open.
    explicit ElfFile(int fd);

    std::uint64_t size() const { return size_; }
    const Elf64_Ehdr& header() const { return header_; }
    const std::vector<Elf64_Phdr>& segments() const { return segments_; }
    const std::vector<Section>& sections() const { return sections_; }
    const Section* section(std::string_view name) const;  // null: none
    std::span<const std::uint8_t> contents(const Section& section) const {
        const Elf64_Shdr& s = section.header;
        return table<std::uint8_t>(s.sh_offset, s.sh_type == SHT_NOBITS ? 0 : s.sh_size,
                                   "a section");
    }
    // Returns the entries of a table in the file. Valid as long as this object.
    template <class T>
    std::span<const T> table(std::uint64_t offset, std::uint64_t bytes, const char* what) const {
        return {static_cast<const T*>(bytes_at(offset, bytes, what)), bytes / sizeof(T)};
    }

private:
    void need(std::uint64_t offset, std::uint64_t bytes, const char* what) const;
    const void* bytes_at(std::uint64_t offset, std::uint64_t bytes, const char* what) const;
    void read_segments();
    void read_sections();

    std::uint64_t size_ = 0;
    Elf64_Ehdr header_{};
    std::shared_ptr<Elf> elf_;
    std::vector<Elf64_Phdr> segments_;
    std::vector<Section> sections_;
};

// Returns the manifest of a plugin's file; fields beyond the manifest of an older plugin are 0.
catena_manifest manifest_of(const ElfFile& file);
// Returns the text of a manifest field, which need not end with a zero byte.
template <std::size_t N>
std::string field_text(const char (&field)[N]) {
    return {field, strnlen(field, N)};
}

}  // namespace catena
