// Reads ELF tables and checks each entry.
#include "elf_tables.hpp"

#include <fmt/format.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace catena {
namespace {

// Follows links. O_NONBLOCK: opening a FIFO must not wait for a writer.
int opened(const std::filesystem::path& file) {
    const int fd = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) return fd;
    if (errno == ENOENT) throw PluginError("there is no such file");
    throw PluginError(
        fmt::format("the file cannot be opened: {}", std::generic_category().message(errno)));
}

// Returns the text at an offset, up to a zero or to the end of the table.
std::string text_at(std::span<const char> table, std::uint64_t at, const char* what) {
    if (at < table.size())
        return {table.data() + at, strnlen(table.data() + at, table.size() - at)};
    throw PluginError(
        fmt::format("{} is damaged: a name at {}, the table has {} bytes", what, at, table.size()));
}

}  // namespace

ElfTables::ElfTables(const std::filesystem::path& file) : ElfTables(Descriptor(opened(file))) {}

std::string ElfTables::machine() const {
    switch (header().e_machine) {
        case EM_X86_64: return "x86-64";
        case EM_AARCH64: return "aarch64";
        case EM_RISCV: return "riscv64";
        default: return fmt::format("ELF machine {}", header().e_machine);
    }
}

std::string ElfTables::build_id() const {
    const Section* const found = section(".note.gnu.build-id");
    if (!found) return {};
    const auto note = contents(*found);
    Elf64_Nhdr head;
    if (note.size() < sizeof head) return {};
    std::memcpy(&head, note.data(), sizeof head);
    const std::size_t begin = sizeof head + (std::size_t{head.n_namesz} + 3) / 4 * 4;
    if (head.n_type != NT_GNU_BUILD_ID || begin > note.size()) return {};
    const std::size_t bytes = std::min<std::size_t>(head.n_descsz, note.size() - begin);
    const auto* const id = note.data() + begin;
    return fmt::format("{:02x}", fmt::join(id, id + bytes, ""));
}

std::vector<std::uint64_t> ElfTables::values(std::int64_t tag) const {
    std::vector<std::uint64_t> result;
    for (const Elf64_Phdr& s : segments()) {
        if (s.p_type != PT_DYNAMIC) continue;
        for (const auto& d : table<Elf64_Dyn>(s.p_offset, s.p_filesz, "its dynamic section")) {
            if (d.d_tag == DT_NULL) break;
            if (d.d_tag == tag) result.push_back(d.d_un.d_val);
        }
    }
    return result;
}

std::vector<std::string> ElfTables::strings(std::int64_t tag) const {
    std::vector<std::string> result;
    const auto offsets = values(tag);
    if (offsets.empty()) return result;
    const auto texts = mapped<char>(DT_STRTAB, DT_STRSZ, "its table of names");
    for (const std::uint64_t offset : offsets)
        result.push_back(text_at(texts, offset, "its dynamic section"));
    return result;
}

std::vector<std::string> ElfTables::stand_ins() const {
    std::vector<std::string> result;
    for (const auto& [tag, word] : {std::pair{DT_AUXILIARY, "DT_AUXILIARY"},
                                    {DT_FILTER, "DT_FILTER"},
                                    {DT_AUDIT, "DT_AUDIT"},
                                    {DT_DEPAUDIT, "DT_DEPAUDIT"}}) {
        for (const std::string& name : strings(tag))
            result.push_back(fmt::format("{} ({})", name, word));
    }
    return result;
}

std::vector<ElfTables::Symbol> ElfTables::symbols(std::uint32_t section_type) const {
    std::vector<Symbol> result;
    for (const Section& section : sections()) {
        const Elf64_Shdr& s = section.header;
        if (s.sh_type != section_type) continue;
        if (s.sh_link >= sections().size()) throw PluginError("its symbols have no names");
        const Elf64_Shdr& names = sections()[s.sh_link].header;
        const auto texts = table<char>(names.sh_offset, names.sh_size, "the names of its symbols");
        const auto entries = table<Elf64_Sym>(s.sh_offset, s.sh_size, "its symbols");
        for (std::size_t i = 1; i < entries.size(); ++i) {  // entry 0 is no symbol
            const Elf64_Sym& e = entries[i];
            result.push_back({text_at(texts, e.st_name, "its table of symbols"),
                              static_cast<unsigned char>(ELF64_ST_BIND(e.st_info)),
                              static_cast<unsigned char>(ELF64_ST_TYPE(e.st_info)),
                              static_cast<unsigned char>(ELF64_ST_VISIBILITY(e.st_other)),
                              e.st_shndx != SHN_UNDEF, e.st_shndx == SHN_ABS, e.st_value,
                              e.st_size});
        }
    }
    return result;
}

std::vector<ElfTables::Relocation> ElfTables::relocations() const {
    std::vector<Relocation> result;
    for (const auto& [begin, bytes] : {std::pair{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}}) {
        for (const auto& r : mapped<Elf64_Rela>(begin, bytes, "its relocations"))
            result.push_back({r.r_offset, static_cast<std::uint64_t>(r.r_addend)});
    }
    const auto relative = [&](std::uint64_t at) {
        const std::uint64_t offset = offset_of(at, sizeof(std::uint64_t), "a relocation");
        result.push_back({at, table<std::uint64_t>(offset, sizeof at, "a relocation").front()});
    };
    // DT_RELR is packed: an entry is an address, or a bitmap for the next 63 words.
    std::uint64_t next = 0;
    for (const std::uint64_t entry : mapped<std::uint64_t>(DT_RELR, DT_RELRSZ, "its relocations")) {
        if (entry % 2 == 0) {
            relative(entry);
            next = entry + 8;
            continue;
        }
        for (unsigned bit = 1; bit < 64; ++bit)
            if ((entry >> bit & 1) != 0) relative(next + (bit - 1) * 8);
        next += 63 * 8;
    }
    return result;
}

std::uint64_t ElfTables::offset_of(std::uint64_t address, std::uint64_t bytes,
                                   const char* what) const {
    for (const Elf64_Phdr& s : segments()) {
        const std::uint64_t into = address - s.p_vaddr;
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && into <= s.p_filesz &&
            bytes <= s.p_filesz - into)
            return s.p_offset + into;
    }
    throw PluginError(fmt::format("{}: {} bytes at address {:#x} wanted, it has none there", what,
                                  bytes, address));
}

template <class T>
std::span<const T> ElfTables::mapped(std::int64_t begin, std::int64_t bytes,
                                     const char* what) const {
    const auto address = values(begin), size = values(bytes);
    if (address.empty() && size.empty()) return {};
    if (address.size() != 1 || size.size() != 1)
        throw PluginError(fmt::format("{}: expected them once, got {} beginnings and {} sizes",
                                      what, address.size(), size.size()));
    return table<T>(offset_of(address[0], size[0], what), size[0], what);
}

}  // namespace catena
