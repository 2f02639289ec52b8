// The tables of a shared library, for the programs that look into plugins; the loader needs none.
#pragma once

#include <descriptor.hpp>
#include <elf_file.hpp>

#include <filesystem>

namespace catena {

// Checks each entry. All functions throw PluginError with the bare reason.
class ElfTables : public ElfFile {
public:
    struct Symbol {
        std::string name;
        unsigned char binding, type, visibility;
        bool defined, absolute;  // absolute: the name of a version, no code or data
        std::uint64_t value, size;
    };
    // What the system's loader writes to an address: for most, another address of the library.
    struct Relocation {
        std::uint64_t at, addend;
    };

    explicit ElfTables(const std::filesystem::path& file);  // which stays open

    std::string machine() const;   // "x86-64"
    std::string build_id() const;  // hexadecimal; "" if it has none

    // Values in the dynamic section, where the system's loader looks for them.
    std::vector<std::uint64_t> values(std::int64_t tag) const;
    std::vector<std::string> strings(std::int64_t tag) const;
    // Libraries that the system's loader maps besides DT_NEEDED: "libx.so (DT_FILTER)".
    std::vector<std::string> stand_ins() const;

    std::vector<Symbol> symbols(std::uint32_t section_type) const;  // SHT_DYNSYM or SHT_SYMTAB
    std::vector<Relocation> relocations() const;

private:
    explicit ElfTables(Descriptor open) : ElfFile(open.get()), open_(std::move(open)) {}
    // Where the file has what is mapped to these addresses.
    std::uint64_t offset_of(std::uint64_t address, std::uint64_t bytes, const char* what) const;
    // The table whose address and size the dynamic section has under these tags.
    template <class T>
    std::span<const T> mapped(std::int64_t begin, std::int64_t bytes, const char* what) const;

    Descriptor open_;
};

}  // namespace catena
