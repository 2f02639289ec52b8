// Checks the file without loading it.
#include "check.hpp"

#include <fmt/ranges.h>

#include <elf_tables.hpp>
#include <ids.hpp>
#include <limits.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

namespace catena::check::static_checks {
namespace {

std::string text_of(const ElfTables& elf, const ElfTables::Section& section) {
    const auto bytes = elf.contents(section);
    return {bytes.begin(), bytes.end()};
}

bool matches(const std::string& name, const char* pattern) {
    return std::regex_search(name, std::regex(pattern));
}

// Recognizes code that compilers and their libraries add to a plugin, which is not a failure.
class Toolchain {
public:
    // Searches for strings and sections, since symbol names may be stripped.
    explicit Toolchain(const ElfTables& elf) : elf_(elf) {
        gpu_ = elf.section(".nv_fatbin") != nullptr;
        if (const ElfTables::Section* const section = elf.section(".rodata")) {
            const std::string texts = text_of(elf, *section);
            library_ = texts.find("N10__cxxabiv117__class_type_infoE") != texts.npos;
            profiler_ = texts.find("GCOV_PREFIX") != texts.npos;  // both gcov's and LLVM's have it
        }
    }

    // Whether a C++ library or profiler inside the plugin imports this symbol.
    bool imports(const std::string& name) const {
        static const std::set<std::string> of_library = {"arc4random", "getentropy", "chdir",
                                                         "fesetround", "setlocale",  "uselocale"};
        static const std::set<std::string> of_profiler = {"exit", "fork"};
        return (library_ && of_library.contains(name)) || (profiler_ && of_profiler.contains(name));
    }
    // Whether the toolchain adds a constructor with this name.
    bool constructs(const std::string& name) const {
        static const std::set<std::string> known = {"frame_dummy",      "__cpu_indicator_init",
                                                    "asan.module_ctor", "tsan.module_ctor",
                                                    "_sub_I_00099_0",   "_sub_I_00099_1"};
        static constexpr const char* of_library =  // source files of libstdc++
            "^_GLOBAL__sub_I(\\.[0-9]+)?_(bitmap_allocator|cxx11_ios_failure|cxx11_w?locale_inst|"
            "eh_alloc|future|globals_io|ios_init|w?locale_inst|memory_resource|parallel_settings|"
            "system_error|tzdb)\\.cc$";
        static constexpr const char* of_profiler =
            "^(_sub_I_00100_[0-9]+|__llvm_gcov_init|_GLOBAL__sub_I_InstrProfilingRuntime\\.cpp)$";
        return known.contains(name) || (library_ && matches(name, of_library)) ||
               (profiler_ && matches(name, of_profiler)) ||
               name.find("ARGV_INIT_ARRAY") != name.npos ||
               name.find("really_init") != name.npos ||  // Rust: stores the program's arguments
               name.find("__sti____cudaRegisterAll") != name.npos ||  // nvcc: registers kernels
               name.rfind("libcudart_static_", 0) == 0;
    }
    // Whether nameless constructors can be counted: libraries inside add an unknown number of them.
    bool countable() const { return !library_ && !profiler_ && !gpu_; }
    // Whether the code calls cpuid, as libgcc's constructor for __builtin_cpu_supports() does.
    bool reads_cpu(std::uint64_t address) const {
        constexpr std::string_view cpuid = "\x0f\xa2";
        for (const ElfTables::Section& s : elf_.sections()) {
            const std::uint64_t begin = s.header.sh_addr;
            if ((s.header.sh_flags & SHF_EXECINSTR) == 0 || address < begin ||
                address - begin >= s.header.sh_size)
                continue;
            const std::string code = text_of(elf_, s).substr(address - begin, 64);
            return code.find(cpuid) != code.npos;
        }
        return false;
    }

private:
    const ElfTables& elf_;
    bool library_ = false, profiler_ = false, gpu_ = false;
};

// The size of the manifest in minor 0 of the ABI; later minors may be larger.
constexpr std::size_t least_manifest = size_1_0<catena_manifest>;

// Runs a check that needs only the file.
template <void (*look)(const ElfTables&, Findings&)>
void at_file(const Subject& subject, Findings& findings) {
    std::unique_ptr<ElfTables> elf;
    try {
        elf = std::make_unique<ElfTables>(subject.file);
    } catch (const PluginError&) {
        return findings.skip("it is no whole shared library: see static/file");
    }
    look(*elf, findings);
}
template <void (*look)(const ElfTables&, Findings&)>
void add(const char* name, const char* doc) {
    Registered({"static", name, doc, at_file<look>, Each::plugin, false});
}

// Whether the text is UTF-8 without control characters.
bool is_text(const std::string& text) {
    if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
        return false;
    try {
        nlohmann::json(text).dump();
        return true;
    } catch (const nlohmann::json::type_error&) {
        return false;
    }
}

template <std::size_t N>
std::string field(const char (&text)[N], const char* name, Findings& findings) {
    const std::string result = field_text(text);
    if (result.size() == N)
        findings.fail("{}: expected a zero within its {} bytes, got none", name, N);
    if (!is_text(result)) findings.fail("{}: expected UTF-8 text, got other bytes", name);
    return result;
}

void check_manifest(const catena_manifest& m, Findings& findings) {
    if (m.abi_major != CATENA_ABI_MAJOR)
        findings.fail("abi_major: expected {}, got {}", CATENA_ABI_MAJOR, m.abi_major);
    if (m.abi_minor_needed > m.abi_minor_built)
        findings.fail(
            "abi_minor_needed: expected at most the minor that it was built with ({}), got {}",
            m.abi_minor_built, m.abi_minor_needed);
    if (m.flags != 0 || m.reserved != 0)
        findings.fail("flags and reserved: expected 0, got {} and {}", m.flags, m.reserved);
    const std::string id = field(m.id, "id", findings);
    if (!is_id(id)) findings.fail("id: expected {}, got '{}'", id_rule, id);
    const std::string text = field(m.version, "version", findings);
    if (!matches(text, "^[0-9]+(\\.[0-9]+)*([-+~].*)?$"))
        findings.fail("version: expected numbers as in 1.2.3, got '{}'", text);
    field(m.vendor, "vendor", findings);
    field(m.license, "license", findings);
    const std::string devices = field(m.devices, "devices", findings);
    if (devices.find(' ') != devices.npos)
        findings.fail("devices: expected names with commas and no spaces, got '{}'", devices);
}

void manifest(const ElfTables& elf, Findings& findings) {
    const ElfTables::Section* const section = elf.section(CATENA_MANIFEST_SECTION);
    if (section == nullptr)
        return findings.fail("expected a section " CATENA_MANIFEST_SECTION ", got none");
    const auto bytes = elf.contents(*section);
    if (bytes.size() < least_manifest)
        return findings.fail("section " CATENA_MANIFEST_SECTION
                             ": expected at least {} bytes, got {}",
                             least_manifest, bytes.size());
    catena_manifest m = {};
    std::memcpy(&m, bytes.data(), std::min(bytes.size(), sizeof m));
    if (std::memcmp(m.magic, CATENA_MANIFEST_MAGIC, sizeof m.magic) != 0)
        return findings.fail("magic: expected " CATENA_MANIFEST_MAGIC ", got other bytes");
    if (m.struct_size < least_manifest || m.struct_size > bytes.size())
        return findings.fail("struct_size: expected {} to the {} bytes of its section, got {}",
                             least_manifest, bytes.size(), m.struct_size);
    check_manifest(m, findings);
    const std::uint64_t begin = section->header.sh_addr;
    for (const ElfTables::Relocation& r : elf.relocations())
        if (r.at >= begin && r.at < begin + section->header.sh_size) {
            findings.fail(
                "expected plain data, got a pointer at byte {} that the dynamic loader fills in",
                r.at - begin);
            break;
        }
    for (const ElfTables::Symbol& s : elf.symbols(SHT_DYNSYM))
        if (s.defined && s.name == "catena_manifest_v1" && s.value != begin)
            findings.fail(
                "catena_manifest_v1: expected it at the beginning of its section, got it "
                "elsewhere");
}

void exports(const ElfTables& elf, Findings& findings) {
    std::set<std::string> missing = {"catena_manifest_v1", "catena_plugin_entry_v1"};
    std::vector<std::string> others;
    for (const ElfTables::Symbol& s : elf.symbols(SHT_DYNSYM)) {
        if (!s.defined || s.absolute || s.binding == STB_LOCAL || s.type == STT_SECTION) continue;
        if (s.visibility == STV_HIDDEN || s.visibility == STV_INTERNAL) continue;
        if (s.binding == STB_GNU_UNIQUE) continue;  // static/unique reports them
        if (missing.erase(s.name) > 0) {
            const bool data = s.name == "catena_manifest_v1";
            if (s.type != (data ? STT_OBJECT : STT_FUNC))
                findings.fail("{}: expected {}, got another type", s.name,
                              data ? "an object" : "a function");
            if (data && s.size < least_manifest)
                findings.fail("{}: expected at least {} bytes, got {}", s.name, least_manifest,
                              s.size);
        } else others.push_back(s.name);
    }
    for (const std::string& name : missing) findings.fail("expected the symbol {}, got none", name);
    if (others.empty()) return;
    const std::size_t n = others.size();
    others.resize(std::min<std::size_t>(n, 8));
    findings.fail("expected the two symbols of the ABI alone, got {} more: {}{}", n,
                  fmt::join(others, ", "), n > others.size() ? " ..." : "");
}

void needed(const ElfTables& elf, Findings& findings) {
    std::vector<std::string> rest;
    for (const std::string& name : elf.strings(DT_NEEDED)) {
        if (name.starts_with("libcatena"))
            findings.fail(
                "expected no library of catena's, got {}: the host comes as a table of functions",
                name);
        else if (matches(name, "^lib(gomp|omp|iomp|tbb)"))
            findings.fail("expected no threads of its own, got {}: parallel_for() is the host's",
                          name);
        else if (name.find('/') != name.npos)
            findings.fail("expected names, got the path {}", name);
        else rest.push_back(name);
    }
    for (const std::string& name : elf.stand_ins())
        findings.fail("expected libraries under DT_NEEDED alone, got {}", name);
    findings.note("needs {}", fmt::join(rest, " "));
}

std::set<std::string> words(const std::string& list) {
    std::istringstream in(list);
    return {std::istream_iterator<std::string>(in), {}};
}

void imports(const ElfTables& elf, Findings& findings) {
    // Functions that end, fork or change the whole process, or unwind past a callback.
    static const auto process = words(
        "exit _exit _Exit quick_exit fork vfork daemon system popen signal sigaction setlocale "
        "uselocale chdir fchdir umask longjmp _longjmp siglongjmp fesetround fesetenv "
        "feenableexcept");
    // Generators of random numbers that ignore the host's seed.
    static const auto generators = words(
        "rand rand_r srand random random_r srandom drand48 erand48 lrand48 nrand48 mrand48 jrand48 "
        "srand48 getrandom getentropy arc4random arc4random_buf arc4random_uniform "
        "_ZNSt13random_device9_M_getvalEv");
    const Toolchain toolchain(elf);
    for (const ElfTables::Symbol& s : elf.symbols(SHT_DYNSYM)) {
        if (s.defined || s.binding == STB_WEAK || toolchain.imports(s.name)) continue;
        if (s.name.starts_with("catena"))
            findings.fail("expected nothing of the host, got {}: it comes as a table of functions",
                          s.name);
        else if (s.name.starts_with("GOMP_") || s.name.starts_with("omp_") ||
                 s.name.starts_with("__kmpc_"))
            findings.fail("expected no threads of its own, got {}: parallel_for() is the host's",
                          s.name);
        else if (generators.contains(s.name))
            findings.fail("expected no random numbers but those of the host's philox(), got {}",
                          s.name);
        else if (process.contains(s.name))
            findings.fail("expected nothing that changes or ends the host's process, got {}",
                          s.name);
    }
}

void unique(const ElfTables& elf, Findings& findings) {
    for (const ElfTables::Symbol& s : elf.symbols(SHT_DYNSYM))
        if (s.defined && s.binding == STB_GNU_UNIQUE)
            findings.fail(
                "expected no unique symbol, got {}: plugins would share it (-fno-gnu-unique, "
                "-fvisibility=hidden)",
                s.name);
}

void writable_code(const ElfTables& elf, Findings& findings) {
    bool stack = false;
    for (const Elf64_Phdr& s : elf.segments()) {
        if (s.p_type == PT_GNU_STACK) {
            stack = true;
            if ((s.p_flags & PF_X) != 0)
                findings.fail(
                    "expected a stack that is not executable (-z noexecstack), got one that is");
        }
        if (s.p_type == PT_LOAD && (s.p_flags & PF_W) != 0 && (s.p_flags & PF_X) != 0)
            findings.fail(
                "expected code or data in a segment, got one at {:#x} that is writable and "
                "executable",
                s.p_vaddr);
    }
    if (!stack)
        findings.fail("expected to say that its stack is not executable, got no PT_GNU_STACK");
    bool text = !elf.values(DT_TEXTREL).empty();
    for (const std::uint64_t flags : elf.values(DT_FLAGS)) text = text || (flags & DF_TEXTREL) != 0;
    if (text)
        findings.fail(
            "expected position-independent code (-fPIC), got relocations in the code (TEXTREL)");
}

void run_path(const ElfTables& elf, Findings& findings) {
    for (const std::int64_t tag : {DT_RPATH, DT_RUNPATH})
        for (const std::string& path : elf.strings(tag)) {
            std::istringstream parts(path + ":");  // an empty part is the current folder
            for (std::string part; std::getline(parts, part, ':');)
                if (part != "$ORIGIN" && !part.starts_with("$ORIGIN/") &&
                    !part.starts_with("${ORIGIN}"))
                    findings.fail("expected paths from $ORIGIN, got '{}'", part);
        }
}
// Checks DT_INIT or DT_FINI, a function that runs when the library is loaded or unloaded. Accepts
// only the linker's, at the start of section `own`.
void lone_function(const ElfTables& elf, std::int64_t tag, const char* own, Findings& findings) {
    const ElfTables::Section* const section = elf.section(own);
    for (const std::uint64_t address : elf.values(tag)) {
        if (address == 0 || (section != nullptr && address == section->header.sh_addr)) continue;
        std::string name = fmt::format("one at {:#x}", address);
        for (const ElfTables::Symbol& s : elf.symbols(SHT_SYMTAB))
            if (s.type == STT_FUNC && s.value == address) name = s.name;
        findings.fail("{}: expected the linker's, got {}", tag == DT_INIT ? "DT_INIT" : "DT_FINI",
                      name);
    }
}

void constructors(const ElfTables& elf, Findings& findings) {
    lone_function(elf, DT_INIT, ".init", findings);
    lone_function(elf, DT_FINI, ".fini", findings);
    if (!elf.values(DT_PREINIT_ARRAY).empty())
        findings.fail("DT_PREINIT_ARRAY: expected none, got one");
    const auto addresses = elf.values(DT_INIT_ARRAY);
    const auto sizes = elf.values(DT_INIT_ARRAYSZ);
    if (addresses.empty() || sizes.empty()) return;
    // Constructors by address of their entry, from the file or from relocations.
    std::map<std::uint64_t, std::uint64_t> functions;
    if (const ElfTables::Section* const section = elf.section(".init_array")) {
        const auto bytes = elf.contents(*section);
        for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8)
            std::memcpy(&functions[section->header.sh_addr + i], bytes.data() + i, 8);
    }
    for (const ElfTables::Relocation& r : elf.relocations())
        if (r.at >= addresses[0] && r.at < addresses[0] + sizes[0]) functions[r.at] = r.addend;
    std::vector<ElfTables::Symbol> symbols = elf.symbols(SHT_SYMTAB);
    std::erase_if(symbols, [](const auto& s) { return s.type != STT_FUNC; });
    const Toolchain toolchain(elf);
    std::vector<std::string> named;
    std::vector<std::uint64_t> nameless;
    for (const auto& [at, address] : functions) {
        const auto found = std::ranges::find(symbols, address, &ElfTables::Symbol::value);
        if (found == symbols.end()) nameless.push_back(address);
        else if (!toolchain.constructs(found->name)) named.push_back(found->name);
    }
    const std::size_t usual = 1 + std::ranges::any_of(nameless, [&](std::uint64_t address) {
                                  return toolchain.reads_cpu(address);
                              });
    if (nameless.size() > usual && toolchain.countable())
        findings.fail("expected none, got {}", nameless.size() - usual);
    else if (nameless.size() > usual)
        findings.note(
            "{} without names: of the C++ library, a profiler or CUDA inside, or your own; the "
            "file before strip tells",
            nameless.size());
    for (const std::string& name : named)
        findings.fail("expected none, got {}: entry() and init() are for that", name);
}

void file(const Subject& subject, Findings&) {
    const ElfTables elf(subject.file);
    elf.symbols(SHT_DYNSYM);
    elf.symbols(SHT_SYMTAB);
    elf.relocations();
    elf.strings(DT_NEEDED);
}

const bool registered = [] {
    Registered({"static", "file",
                "a complete 64-bit shared library; no table is truncated or damaged", file,
                Each::plugin, false});
    add<manifest>("manifest",
                  "plain data in section .catena: magic, sizes, UTF-8, id in reverse DNS, version");
    add<exports>("exports", "exactly the two symbols of the ABI are exported");
    add<needed>("needed",
                "no library of catena, OpenMP or TBB is linked; DT_NEEDED has no paths; there is "
                "no DT_FILTER");
    add<imports>("imports",
                 "no symbols of catena, OpenMP or random number generators, and none that change "
                 "or end the process");
    add<unique>("unique",
                "no STB_GNU_UNIQUE symbols: plugins would share them, and the library could not be "
                "unloaded");
    add<writable_code>("writable-code",
                       "the stack is not executable; code is not writable and has no relocations");
    add<run_path>(
        "run-path",
        "RPATH and RUNPATH, if present, have only paths relative to the plugin ($ORIGIN)");
    add<constructors>("constructors",
                      "dlopen() runs no code of the plugin, such as static constructors");
    return true;
}();

}  // namespace
}  // namespace catena::check::static_checks
