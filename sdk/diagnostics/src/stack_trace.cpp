// Names of addresses: from the dynamic symbols, else from the symbol tables of the files.
#include "diagnostics.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <boost/core/demangle.hpp>

#include <filesystem>

namespace catena {
namespace {

constexpr int most_frames = 64;
constexpr int most_lines = 16;

// The function at address in the symbol table of a file that was mapped at base; else empty.
std::string symbol_in(const char* path, std::uintptr_t base, std::uintptr_t address) {
    elf_version(EV_CURRENT);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf* const elf = elf_begin(fd, ELF_C_READ, nullptr);
    std::string name;
    GElf_Ehdr header;
    if (gelf_getehdr(elf, &header) && header.e_type != ET_EXEC) address -= base;
    for (Elf_Scn* next = nullptr; (next = elf_nextscn(elf, next));) {
        GElf_Shdr section;
        if (!gelf_getshdr(next, &section) || section.sh_type != SHT_SYMTAB) continue;
        Elf_Data* const symbols = elf_getdata(next, nullptr);
        GElf_Sym s;
        for (int i = 0; name.empty() && gelf_getsym(symbols, i, &s); ++i) {
            const bool here = address >= s.st_value && address - s.st_value < s.st_size;
            if (GELF_ST_TYPE(s.st_info) != STT_FUNC || !here) continue;
            if (const char* found = elf_strptr(elf, section.sh_link, s.st_name)) name = found;
        }
    }
    elf_end(elf);
    close(fd);
    return name;
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

// Text before the parameters, without template arguments; a template's begins with its return type.
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
    static void* const own = base_of(&most_frames);
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
    const char* const file = info.dli_fbase == program ? "/proc/self/exe" : info.dli_fname;
    const std::string name = info.dli_sname ? info.dli_sname : symbol_in(file, base, address);
    frame.function = boost::core::demangle(name.c_str());
    const std::string head = head_of(frame.function);
    frame.ours = info.dli_fbase == own || frame.file.starts_with("libcatena-") ||
                 head.starts_with("catena::") || head.find(" catena::") != head.npos;
    return frame;
}

}  // namespace

std::vector<void*> CoreDiagnostics::stack() {
    void* addresses[most_frames];
    const int n = backtrace(addresses, most_frames);
    return std::vector<void*>(addresses, addresses + n);
}

std::string CoreDiagnostics::to_string(std::span<void* const> trace) {
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
