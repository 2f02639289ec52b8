// The tables of a shared library, for tools that inspect plugins. The loader does not need them.
#pragma once

#include <descriptor.hpp>
#include <elf_file.hpp>

#include <filesystem>

namespace catena {

// Reads and checks each entry. All functions throw PluginError; its text does not name the file.
class ElfTables : public ElfFile {
public:
    struct Symbol {
        std::string name;
        unsigned char binding, type, visibility;
        bool defined, absolute;  // absolute: the name of a version, no code or data
        std::uint64_t value, size;
    };
    // A value that the dynamic loader writes to an address; mostly another address in the library.
    struct Relocation {
        std::uint64_t at, addend;
    };

    explicit ElfTables(const std::filesystem::path& file);  // keeps it open

    std::string machine() const;   // "x86-64"
    std::string build_id() const;  // hexadecimal; "" if it has none

    // Return the values of a tag in the dynamic section, located by PT_DYNAMIC as in the loader.
    std::vector<std::uint64_t> values(std::int64_t tag) const;
    std::vector<std::string> strings(std::int64_t tag) const;
    // Returns libraries that the dynamic loader maps besides DT_NEEDED: "libx.so (DT_FILTER)".
    std::vector<std::string> stand_ins() const;

    std::vector<Symbol> symbols(std::uint32_t section_type) const;  // SHT_DYNSYM or SHT_SYMTAB
    std::vector<Relocation> relocations() const;

private:
    explicit ElfTables(Descriptor open) : ElfFile(open.get()), open_(std::move(open)) {}
    // Returns the offset in the file of the bytes that are mapped to these addresses.
    std::uint64_t offset_of(std::uint64_t address, std::uint64_t bytes, const char* what) const;
    // Returns the table whose address and size have these tags in the dynamic section.
    template <class T>
    std::span<const T> mapped(std::int64_t begin, std::int64_t bytes, const char* what) const;

    Descriptor open_;
};

}  // namespace catena
