// How the toolchain's part of a plugin is told from the author's.
#include "toolchain.hpp"

#include <regex.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace catena::check {
namespace {

std::string text_of(const ElfImage& elf, const ElfImage::Section& section) {
    const auto bytes = elf.contents(section);
    return {bytes.begin(), bytes.end()};
}

bool matches(const std::string& name, const char* pattern) {
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
    const bool found = regexec(&compiled, name.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

}  // namespace

// The marks are texts and sections, since names may be stripped.
Toolchain::Toolchain(const ElfImage& elf) : elf_(elf) {
    gpu_ = elf.section(".nv_fatbin") != nullptr;
    if (const ElfImage::Section* const section = elf.section(".rodata")) {
        const std::string texts = text_of(elf, *section);
        library_ = texts.find("N10__cxxabiv117__class_type_infoE") != texts.npos;
        profiler_ = texts.find("GCOV_PREFIX") != texts.npos;  // in LLVM's, too
    }
}

bool Toolchain::imports(const std::string& name) const {
    static const std::set<std::string> of_library = {"arc4random", "getentropy", "chdir",
                                                     "fesetround", "setlocale",  "uselocale"};
    static const std::set<std::string> of_profiler = {"exit", "fork"};
    return (library_ && of_library.contains(name)) || (profiler_ && of_profiler.contains(name));
}

bool Toolchain::constructs(const std::string& name) const {
    static const std::set<std::string> known = {"frame_dummy",      "__cpu_indicator_init",
                                                "asan.module_ctor", "tsan.module_ctor",
                                                "_sub_I_00099_0",   "_sub_I_00099_1"};
    static constexpr const char* of_library =  // the sources of libstdc++
        "^_GLOBAL__sub_I(\\.[0-9]+)?_(bitmap_allocator|cxx11_ios_failure|cxx11_w?locale_inst|eh_"
        "alloc|future|globals_io|ios_init|w?locale_inst|memory_resource|parallel_settings|system_"
        "error|tzdb)\\.cc$";
    static constexpr const char* of_profiler =
        "^(_sub_I_00100_[0-9]+|__llvm_gcov_init|_GLOBAL__sub_I_InstrProfilingRuntime\\.cpp)$";
    return known.contains(name) || (library_ && matches(name, of_library)) ||
           (profiler_ && matches(name, of_profiler)) || name.find("ARGV_INIT_ARRAY") != name.npos ||
           name.find("really_init") != name.npos ||               // Rust: the program's arguments
           name.find("__sti____cudaRegisterAll") != name.npos ||  // nvcc: where the kernels are
           name.rfind("libcudart_static_", 0) == 0;
}

bool Toolchain::reads_cpu(std::uint64_t address) const {
    constexpr std::string_view cpuid = "\x0f\xa2";
    for (const ElfImage::Section& s : elf_.sections()) {
        const std::uint64_t begin = s.header.sh_addr;
        if ((s.header.sh_flags & SHF_EXECINSTR) == 0 || address < begin ||
            address - begin >= s.header.sh_size)
            continue;
        const std::string code = text_of(elf_, s).substr(address - begin, 64);
        return code.find(cpuid) != code.npos;
    }
    return false;
}

}  // namespace catena::check
