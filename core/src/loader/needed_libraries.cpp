// Follows DT_NEEDED as the system's loader would, but looks at each file first.
#include "loader/needed_libraries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dlfcn.h>

#include <algorithm>
#include <set>

namespace catena {
namespace {

namespace fs = std::filesystem;
using Folders = std::vector<fs::path>;

bool is_loaded(const std::string& library) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle) dlclose(handle);
    return handle != nullptr;
}

// "$ORIGIN/lib" with the folder that it means; what is not absolute would be looked for in the
// current directory.
fs::path resolved(const std::string& text, const fs::path& origin) {
    for (const std::string_view token : {"$ORIGIN", "${ORIGIN}"}) {
        if (!text.starts_with(token)) continue;
        const std::string rest = text.substr(token.size());
        if (rest.empty() || rest.front() == '/') return origin.string() + rest;
    }
    if (text.empty() || text.front() != '/') {
        throw PluginError(
            fmt::format("where it looks for libraries: expected absolute folders or $ORIGIN, got "
                        "'{}', in the current directory",
                        text));
    }
    return text;
}

// What was linked by its path and has no SONAME is needed by its path.
fs::path absolute(const fs::path& needed) {
    if (needed.is_absolute()) return needed;
    throw PluginError(
        fmt::format("what it needs: expected names of libraries, got the path {}; link that with "
                    "-Wl,-soname,{}",
                    needed.string(), needed.filename().string()));
}

Folders folders_of(const ElfFile& elf, std::int64_t tag, const fs::path& origin) {
    Folders folders;
    for (const std::string& list : elf.strings(tag)) {
        for (std::size_t begin = 0; begin <= list.size();) {
            const std::size_t end = std::min(list.find(':', begin), list.size());
            folders.push_back(resolved(list.substr(begin, end - begin), origin));
            begin = end + 1;
        }
    }
    return folders;
}

class Search {
public:
    // An RPATH, unlike a RUNPATH, holds for what is needed by what is needed, too.
    void add_needs_of(const ElfFile& elf, const fs::path& path, const Folders& inherited) {
        for (const std::string& library : elf.stand_ins()) {
            throw PluginError(fmt::format(
                "what it needs: expected libraries under DT_NEEDED alone, got {}", library));
        }
        const fs::path origin = path.parent_path();
        Folders folders = folders_of(elf, DT_RUNPATH, origin), passed_on = inherited;
        if (elf.values(DT_RUNPATH).empty()) {
            folders = folders_of(elf, DT_RPATH, origin);
            folders.insert(folders.end(), inherited.begin(), inherited.end());
            passed_on = folders;
        }
        std::vector<std::string> others;
        for (const std::string& name : elf.strings(DT_NEEDED)) {
            const fs::path file = brought(name, folders);
            if (file.empty()) others.push_back(name);
            else add(name, file, passed_on);
        }
        for (const std::string& name : others) found_.push_back({name});
    }
    std::vector<NeededLibrary> take() { return std::move(found_); }

private:
    // "" for what is not in these folders, or was loaded by somebody else.
    static fs::path brought(const std::string& name, const Folders& folders) {
        if (name.find('/') != name.npos) return absolute(name);
        const auto has_it = [&](const fs::path& folder) { return is_there(folder / name); };
        const auto folder = std::ranges::find_if(folders, has_it);
        return folder == folders.end() || is_loaded(name) ? fs::path() : *folder / name;
    }

    void add(const std::string& name, const fs::path& path, const Folders& inherited) {
        if (std::ranges::count(on_the_way_, name) > 0) {
            throw PluginError(fmt::format("libraries that need each other in a circle: {}, {}",
                                          fmt::join(on_the_way_, ", "), name));
        }
        if (!names_.insert(name).second) return;
        on_the_way_.push_back(name);
        try {
            TrustedFile file(path, Writers::owner);
            const ElfFile elf(file.fd());
            check_name(name, elf);
            add_needs_of(elf, file.path(), inherited);
            found_.push_back({name, std::move(file)});
        } catch (const PluginError& error) {
            refuse_library(path, error);
        }
        on_the_way_.pop_back();
    }

    // By the SONAME those who need it find it when it is there already; without, the system's loader
    // would look for a file again.
    static void check_name(const std::string& name, const ElfFile& elf) {
        const auto own = elf.strings(DT_SONAME);
        if (!own.empty() && own[0] == name) return;
        throw PluginError(fmt::format(
            "SONAME: expected {}, as it is asked for, got {}; link it with -Wl,-soname,{}", name,
            own.empty() ? "none" : own[0], fs::path(name).filename().string()));
    }

    std::vector<NeededLibrary> found_;
    std::set<std::string> names_;
    std::vector<std::string> on_the_way_;
};

}  // namespace

std::vector<NeededLibrary> needed_libraries(const ElfFile& plugin, const fs::path& path) {
    Search search;
    search.add_needs_of(plugin, path, {});
    return search.take();
}

void refuse_library(const fs::path& file, const PluginError& reason) {
    throw PluginError(fmt::format("its library {}: {}", file.string(), reason.what()));
}

}  // namespace catena
