// A shared library as a file. Nothing of it runs, and no damage to it does more than throw an
// ElfError.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace catena::tools {

struct ElfError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

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
    struct Relocation {
        std::uint64_t at;
        std::uint32_t type;
        std::int64_t addend;
    };

    // Refuses what is no 64-bit little-endian shared library, or is cut.
    explicit ElfFile(const std::filesystem::path& file);

    std::uint64_t size() const { return bytes_.size(); }
    std::string machine() const;   // "x86-64"
    std::string build_id() const;  // hexadecimal; "" if it has none

    const std::vector<Elf64_Phdr>& segments() const { return segments_; }
    const std::vector<Section>& sections() const { return sections_; }
    const Section* section(std::string_view name) const;  // null: none
    std::vector<std::uint8_t> contents(const Section& section) const;

    // Of the dynamic section.
    std::vector<std::uint64_t> values(std::int64_t tag) const;
    std::vector<std::string> strings(std::int64_t tag) const;

    std::vector<Symbol> symbols(std::uint32_t section_type) const;  // SHT_DYNSYM or SHT_SYMTAB
    std::vector<Relocation> relocations() const;

private:
    const std::uint8_t* at(std::uint64_t offset, std::uint64_t bytes, const char* what) const;
    template <class T>
    T read(std::uint64_t offset, const char* what) const {
        T value;
        std::memcpy(&value, at(offset, sizeof value, what), sizeof value);
        return value;
    }
    // Zero-terminated, within a section.
    std::string text(const Elf64_Shdr& section, std::uint64_t offset) const;

    std::vector<std::uint8_t> bytes_;
    unsigned machine_ = 0;
    std::vector<Elf64_Phdr> segments_;
    std::vector<Section> sections_;
    std::vector<Elf64_Dyn> dynamic_;
};

}  // namespace catena::tools
