// Finds and loads plugins: the only file that opens libraries.
#include "loader.hpp"

#include "context.hpp"
#include "registry.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <boost/dll/runtime_symbol_info.hpp>
#include <boost/dll/shared_library.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

namespace catena {
namespace {

namespace fs = std::filesystem;

struct Loader {
    PluginReport report;
    std::vector<const PluginEntry*> started;
    std::vector<std::string> unwanted;  // ids
    // Never unloaded: arrays, kernels and type information may point into them.
    std::vector<boost::dll::shared_library> mapped;
    bool default_done = false;
    bool loading = false;

    static Loader& get() {
        static Loader* instance = new Loader;
        return *instance;
    }
};

// Lets plugins end their threads before the process does.
struct AtExit {
    ~AtExit() {
        auto& started = Loader::get().started;
        for (auto it = started.rbegin(); it != started.rend(); ++it) {
            if ((*it)->table->deinit) (*it)->table->deinit();
        }
        started.clear();
    }
};

bool switched_off() {
    const char* wish = std::getenv("CATENA_PLUGINS");
    return wish && std::string_view(wish) == "off";
}

const char* words(const catena_ctx& ctx) {
    return ctx.error.empty() ? "it gave no reason" : ctx.error.c_str();
}

// Runs code of the plugin; what it should not have thrown becomes the reason.
template <class Body>
auto guarded(const char* what, const Body& body) {
    try {
        return body();
    } catch (const std::exception& thrown) {
        throw PluginError(fmt::format("its {} threw an exception: {}", what, thrown.what()));
    } catch (...) {
        throw PluginError(fmt::format("its {} threw an exception", what));
    }
}

boost::dll::shared_library& map(const fs::path& path) {
    namespace dll = boost::dll;
    boost::system::error_code error;
    dll::shared_library library;
    library.load(boost::filesystem::path(path.string()), error,
                 dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    if (error) {
        const char* text = dlerror();  // names the symbol or library that is missing
        throw PluginError(
            fmt::format("the system's loader refuses it: {}", text ? text : error.message()));
    }
    return Loader::get().mapped.emplace_back(std::move(library));
}

// Throws PluginError with the bare reason.
void load(const fs::path& path) {
    LoadedPlugin info = check_manifest(read_raw_manifest(path), path);
    if (std::ranges::count(Loader::get().unwanted, info.id) > 0) {
        Loader::get().report.left_out.push_back(std::move(info));
        return;
    }
    boost::dll::shared_library& library = map(path);
    if (!library.has("catena_plugin_entry_v1")) {
        throw PluginError("it exports no catena_plugin_entry_v1");
    }
    using Entry = const catena_plugin*(const catena_host*, catena_ctx*);
    auto& entry = library.get<Entry>("catena_plugin_entry_v1");
    catena_ctx ctx;
    const catena_plugin* table = guarded("entry", [&] { return entry(&host_table(), &ctx); });
    if (!table) throw PluginError(fmt::format("its entry failed: {}", words(ctx)));
    info.n_functions = static_cast<int>(table->n_functions);
    info.n_kernels = static_cast<int>(table->n_kernels);
    info.n_backends = static_cast<int>(table->n_backends);
    const PluginEntry& plugin = Registry::get().add(info, *table);
    if (table->init) {
        try {
            catena_ctx init_ctx;
            if (guarded("init()", [&] { return table->init(&host_table(), &init_ctx); })) {
                throw PluginError(fmt::format("its init() failed: {}", words(init_ctx)));
            }
        } catch (const PluginError&) {
            Registry::get().remove(plugin);
            throw;
        }
    }
    static const AtExit at_exit;
    (void)at_exit;
    Loader::get().started.push_back(&plugin);
    Loader::get().report.loaded.push_back(std::move(info));
    host_table().log(nullptr, CATENA_LOG_INFO, fmt::format("loaded {}", path.string()).c_str());
}

bool already_loaded(const fs::path& path) {
    const auto& loaded = Loader::get().report.loaded;
    return std::any_of(loaded.begin(), loaded.end(), [&](const LoadedPlugin& p) {
        std::error_code error;
        return p.path == path || fs::equivalent(p.path, path, error);
    });
}

}  // namespace

void load_plugin(const fs::path& file) {
    const std::lock_guard lock(Registry::get().mutex());
    if (already_loaded(file)) return;
    try {
        load(fs::absolute(file));
    } catch (const PluginError& error) {
        Loader::get().report.refused.push_back({file, error.what()});
        throw PluginError(fmt::format("[plugin] {}: refused: {}", file.string(), error.what()));
    }
}

void load_plugins(const fs::path& folder) {
    const std::lock_guard lock(Registry::get().mutex());
    PluginReport& report = Loader::get().report;
    report.searched.push_back(folder);
    std::error_code error;
    std::vector<fs::path> files;
    for (const auto& item : fs::directory_iterator(folder, error)) {
        if (item.path().extension() == ".catena") files.push_back(item.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
        if (already_loaded(file)) continue;
        try {
            load(fs::absolute(file));
        } catch (const std::exception& refusal) {  // one odd file must not stop the others
            report.refused.push_back({file, refusal.what()});
        }
    }
}

void load_default_plugins() {
    static std::atomic<bool> done{false};
    if (done.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(Registry::get().mutex());
    Loader& loader = Loader::get();
    if (loader.loading) return;  // a plugin that asks while it is loaded
    if (!loader.default_done && !switched_off()) {
        loader.loading = true;
        if (const char* list = secure_getenv("CATENA_PLUGIN_PATH")) {
            for (std::string_view rest = list; !rest.empty();) {
                const std::size_t colon = rest.find(':');
                const std::string_view folder = rest.substr(0, colon);
                if (!folder.empty() && folder.front() == '/') load_plugins(fs::path(folder));
                else if (!folder.empty()) {
                    loader.report.refused.push_back(
                        {fs::path(folder), "CATENA_PLUGIN_PATH: expected absolute folders"});
                }
                rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
            }
        }
        const fs::path here = fs::weakly_canonical(boost::dll::this_line_location().string());
        load_plugins(here.parent_path() / "catena" / "plugins");
        loader.loading = false;
    }
    loader.default_done = true;
    Registry::get().report_pins();
    done.store(true, std::memory_order_release);
}

void disable_default_plugins() {
    const std::lock_guard lock(Registry::get().mutex());
    Loader::get().default_done = true;
}

void leave_out_plugin(std::string_view id) {
    const std::lock_guard lock(Registry::get().mutex());
    Loader::get().unwanted.emplace_back(id);
}

PluginReport plugin_report() {
    const std::lock_guard lock(Registry::get().mutex());
    return Loader::get().report;
}

std::string to_string(const PluginReport& report) {
    std::string text;
    if (switched_off()) text += "plugins are switched off: CATENA_PLUGINS=off\n";
    for (const fs::path& place : report.searched) {
        std::error_code error;
        const bool there = fs::is_directory(place, error);
        text += fmt::format("looked in {}{}\n", place.string(), there ? "" : " (no such folder)");
    }
    for (const LoadedPlugin& p : report.loaded) {
        text += fmt::format("loaded {} {} from {}\n", p.id, p.version, p.path.string());
    }
    for (const RefusedPlugin& p : report.refused) {
        text += fmt::format("refused {}: {}\n", p.path.string(), p.reason);
    }
    for (const LoadedPlugin& p : report.left_out) {
        text += fmt::format("left out {}: {}\n", p.id, p.path.string());
    }
    if (report.loaded.empty()) text += "no plugin is loaded\n";
    if (!text.empty()) text.pop_back();
    return text;
}

}  // namespace catena
