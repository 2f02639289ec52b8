// A shared library as a file: what it says, read without running any of it. Every offset and count
// is checked; damage does no more than throw.
#pragma once

#include <catena/core/error.hpp>

#include <elf.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// All functions throw PluginError with the bare reason.
class ElfFile {
public:
    struct Section {
        std::string name;
        Elf64_Shdr header;
    };
    struct Symbol {
        std::string name;
        unsigned char binding, type, visibility;
        bool defined, absolute;  // absolute: the name of a version, no code or data
        std::uint64_t value, size;
    };
    // What the system's loader puts at an address: for most, another address of the library.
    struct Relocation {
        std::uint64_t at, addend;
    };

    // Refuses what is no 64-bit little-endian shared library with sections, or is cut.
    explicit ElfFile(const std::filesystem::path& file);
    // Reads from the descriptor, which stays the caller's and open.
    explicit ElfFile(int fd);

    std::uint64_t size() const { return size_; }
    std::string machine() const;   // "x86-64"
    std::string build_id() const;  // hexadecimal; "" if it has none

    const std::vector<Elf64_Phdr>& segments() const { return segments_; }
    const std::vector<Section>& sections() const { return sections_; }
    const Section* section(std::string_view name) const;  // null: none
    std::vector<std::uint8_t> contents(const Section& section) const;

    // Of the dynamic section, where the system's loader looks for them.
    std::vector<std::uint64_t> values(std::int64_t tag) const;
    std::vector<std::string> strings(std::int64_t tag) const;
    // What the system's loader maps besides DT_NEEDED, by rules of its own: "libx.so (DT_FILTER)".
    std::vector<std::string> stand_ins() const;

    std::vector<Symbol> symbols(std::uint32_t section_type) const;  // SHT_DYNSYM or SHT_SYMTAB
    std::vector<Relocation> relocations() const;

private:
    void read_headers();
    void read_segments(const Elf64_Ehdr& header);
    void read_sections(const Elf64_Ehdr& header);
    void need(std::uint64_t offset, std::uint64_t bytes, const char* what) const;
    template <class T>
    std::vector<T> table(std::uint64_t offset, std::uint64_t bytes, const char* what) const;
    // Where the file has what is mapped to these addresses.
    std::uint64_t offset_of(std::uint64_t address, std::uint64_t bytes, const char* what) const;
    // The table whose address and size the dynamic section has under these tags.
    template <class T>
    std::vector<T> mapped(std::int64_t begin, std::int64_t bytes, const char* what) const;

    std::shared_ptr<void> own_;  // closes what was opened here
    int fd_;
    std::uint64_t size_ = 0;
    unsigned machine_ = 0;
    std::vector<Elf64_Phdr> segments_;
    std::vector<Section> sections_;
    std::vector<Elf64_Dyn> dynamic_;
};

}  // namespace catena
