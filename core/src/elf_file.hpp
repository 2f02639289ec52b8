// Reads a shared library's file: headers, sections, what it wants loaded. Nothing of it runs.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// Every function throws PluginError with the bare reason if the file is damaged.
class ElfFile {
public:
    // Reads from the descriptor, which stays the caller's.
    explicit ElfFile(int fd);

    std::optional<Elf64_Shdr> section(std::string_view name) const;
    // A file cut behind its headers would bring down the system's loader.
    void check_segments() const;

    struct Wants {
        std::vector<std::string> libraries;  // DT_NEEDED
        std::vector<std::string> folders;    // DT_RUNPATH, else DT_RPATH
        bool is_runpath = false;
        std::string soname;  // "": none
    };
    Wants wants() const;

    template <class T>
    T read(std::uint64_t offset) const {
        T value;
        read(offset, &value, sizeof(T));
        return value;
    }
    void read(std::uint64_t offset, void* target, std::uint64_t bytes) const;

private:
    Elf64_Phdr segment(unsigned i) const;
    std::string text(std::uint64_t offset) const;

    int fd_;
    std::uint64_t size_;
    Elf64_Ehdr header_;
};

}  // namespace catena
