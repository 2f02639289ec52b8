// Names of addresses without any package: from the dynamic symbols, else from the ELF files.
#include "dispatch/stack_trace.hpp"

#include <fmt/format.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

namespace catena {
namespace {

constexpr int most_frames = 64;
constexpr int most_lines = 16;

template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T* out, std::uint64_t n) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(n * sizeof(T)));
    return static_cast<bool>(file);
}

// The function at address in the symbol table of a file that was mapped at base; else empty.
std::string symbol_in(const std::string& path, std::uintptr_t base, std::uintptr_t address) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header;
    if (!file || !read_at(file, 0, &header, 1)) return {};
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
        return {};
    }
    if (header.e_type != ET_EXEC) address -= base;
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    if (!read_at(file, header.e_shoff, sections.data(), sections.size())) return {};
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
        std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
        if (!read_at(file, section.sh_offset, symbols.data(), symbols.size())) return {};
        for (const Elf64_Sym& s : symbols) {
            const bool here = address >= s.st_value && address - s.st_value < s.st_size;
            if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !here) continue;
            file.seekg(
                static_cast<std::streamoff>(sections[section.sh_link].sh_offset + s.st_name));
            std::string name;
            std::getline(file, name, '\0');
            return name;
        }
    }
    return {};
}

std::string demangle(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return text ? text.get() : name;
}

void* base_of(const void* address) {
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

struct Frame {
    std::string function;
    std::string file;
    std::uintptr_t offset = 0;
    bool ours = false;
};

// What stands before the parameters, without template arguments; a template's begins with what it
// returns.
std::string head_of(const std::string& function) {
    std::string head;
    int depth = 0;
    for (const char c : function) {
        if (c == '(' && depth == 0) break;
        if (c == '<') ++depth;
        else if (c == '>') depth = std::max(depth - 1, 0);
        else if (depth == 0) head += c;
    }
    return head;
}

Frame describe(void* return_address) {
    const auto address = reinterpret_cast<std::uintptr_t>(return_address) - 1;  // within the call
    static void* const core = base_of(reinterpret_cast<const void*>(&stack_trace));
    static void* const program = base_of(reinterpret_cast<const void*>(getauxval(AT_PHDR)));
    Frame frame;
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(address), &info) || !info.dli_fname) {
        frame.offset = address;
        return frame;
    }
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    frame.file = std::filesystem::path(info.dli_fname).filename().string();
    frame.offset = address - base;
    std::string symbol = info.dli_sname ? info.dli_sname : "";
    if (symbol.empty()) {
        symbol =
            symbol_in(info.dli_fbase == program ? "/proc/self/exe" : info.dli_fname, base, address);
    }
    frame.function = demangle(symbol);
    const std::string head = head_of(frame.function);
    frame.ours = info.dli_fbase == core || frame.file.starts_with("libcatena-") ||
                 head.starts_with("catena::") || head.find(" catena::") != head.npos;
    return frame;
}

}  // namespace

std::vector<void*> stack_trace() {
    void* addresses[most_frames];
    const int n = backtrace(addresses, most_frames);
    return std::vector<void*>(addresses, addresses + n);
}

std::string to_string(std::span<void* const> trace) {
    std::vector<Frame> frames;
    for (void* address : trace) frames.push_back(describe(address));
    // Above our own there may be what a sanitizer puts in.
    const auto ours = std::find_if(frames.begin(), frames.end(), [](auto& f) { return f.ours; });
    std::string text;
    int lines = 0;
    for (auto next = ours == frames.end() ? frames.begin() : ours; next != frames.end(); ++next) {
        const Frame& frame = *next;
        if (frame.ours) continue;
        text += fmt::format("\n  {}{}+{:#x}", frame.function.empty() ? "" : frame.function + " in ",
                            frame.file, frame.offset);
        if (frame.function == "main" || ++lines == most_lines) break;
    }
    return text;
}

}  // namespace catena
