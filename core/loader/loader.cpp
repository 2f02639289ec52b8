// Finds, checks, loads and registers plugins, and reports the results.
#include "plugin_file.hpp"

#include "graph/call.hpp"

#include <boost/dll/shared_library.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <deque>
#include <ranges>

namespace catena {
namespace {

namespace fs = std::filesystem;

struct Loader {
    PluginReport report;
    PluginLocks locks;
    std::map<std::string, struct stat> files;  // when they were loaded, by id
    std::vector<const PluginEntry*> started;
    std::vector<std::string> unwanted;  // ids
    bool default_done = false;
    bool loading = false;
    std::size_t idle_told = 0;  // the number of entries of report.idle that are in the log
};
Loader& loader = *new Loader;

// Calls deinit() at the end of the process, so that plugins end their threads.
void end_plugins() {
    for (; !loader.started.empty(); loader.started.pop_back()) {
        const PluginEntry& plugin = *loader.started.back();
        if (!plugin.table->deinit) continue;
        const PluginStep step(plugin.file, "deinit()");
        plugin.table->deinit();
    }
}

// Returns $CATENA_PLUGINS unless it is empty or "on". A misspelled "off" disables plugins, too.
std::optional<std::string> switched_off() {
    const char* setting = std::getenv("CATENA_PLUGINS");
    if (!setting || !*setting || std::string_view(setting) == "on") return std::nullopt;
    return setting;
}

std::string_view reason_of(const catena_ctx& ctx) {
    return ctx.error.empty() ? "it gave no reason" : std::string_view(ctx.error);
}

// Calls code of the plugin. It must not throw; if it does, the plugin is refused.
template <class Body>
auto guarded(const char* what, const Body& body) {
    try {
        return body();
    } catch (const std::exception& thrown) {
        raise<PluginError>("its {} threw an exception: {}", what, thrown.what());
    } catch (...) {
        raise<PluginError>("its {} threw an exception", what);
    }
}

// The library stays open until the process ends: arrays, kernels and type information may point to it.
boost::dll::shared_library& open_library(const TrustedFile& file) {
    static auto& all = *new std::deque<boost::dll::shared_library>;
    file.check_unchanged();
    boost::dll::shared_library library;
    std::error_code error;
    library.load(file.path(), error,
                 boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    if (error) {
        const char* given = dlerror();
        const std::string_view reason = given ? given : "it gives no reason";
        const bool short_memory = reason.find("failed to map segment") != reason.npos;
        raise<PluginError>("the system's loader refuses it: {}{}", reason,
                           short_memory ? ", usually for lack of memory" : "");
    }
    all.push_back(std::move(library));
    file.check_unchanged();
    return all.back();
}

void start(LoadedPlugin& info, const TrustedFile& file, PluginStep& step) {
    boost::dll::shared_library& library = open_library(file);
    if (!library.has("catena_plugin_entry_v1"))
        throw PluginError("it exports no catena_plugin_entry_v1");
    using Entry = const catena_plugin*(const catena_host*, catena_ctx*);
    auto& entry = library.get<Entry>("catena_plugin_entry_v1");
    catena_ctx ctx;
    step.enters("entry");
    const catena_plugin* table = guarded("entry", [&] { return entry(&host_table(), &ctx); });
    if (!table) raise<PluginError>("its entry failed: {}", reason_of(ctx));
    info.n_functions = static_cast<int>(table->n_functions);
    info.n_kernels = static_cast<int>(table->n_kernels);
    info.n_backends = static_cast<int>(table->n_backends);
    const PluginEntry& plugin = Registry::get().add(info.id, info.path, *table);
    step.enters("init()");
    forget_failure(ctx);
    try {
        if (table->init && guarded("init()", [&] { return table->init(&host_table(), &ctx); }))
            raise<PluginError>("its init() failed: {}", reason_of(ctx));
    } catch (const PluginError&) {
        Registry::get().remove(plugin);
        throw;
    }
    [[maybe_unused]] static const int at_exit = std::atexit(end_plugins);
    loader.started.push_back(&plugin);
}

enum class Asked { by_name, by_folder };

// Returns false if the program left the plugin out, or if an earlier folder has a plugin with its id.
bool is_wanted(const Attempt& attempt, Asked asked) {
    const LoadedPlugin& info = attempt.info;
    if (std::ranges::count(loader.unwanted, info.id) > 0) {
        loader.report.left_out.push_back(info);
        audit("left-out", attempt, "");
        return false;
    }
    const auto first = std::ranges::find(loader.report.loaded, info.id, &LoadedPlugin::id);
    if (first == loader.report.loaded.end()) return true;
    if (asked == Asked::by_name || first->path.parent_path() == info.path.parent_path())
        raise<PluginError>("id {} is already loaded from {}", info.id, first->path.string());
    loader.report.overridden.push_back({info, first->path});
    audit("overridden", attempt, first->path.string() + " came first");
    return false;
}

// Returns a reason if all backends of a manifest's list ("name,name") are known, but none has a device.
std::optional<std::string> no_device(std::string_view names) {
    const std::vector<BackendInfo> known = Registry::get().backends();
    std::string text;
    for (const auto part : std::views::split(names, ',')) {
        const std::string_view name(part.begin(), part.end());
        if (name.empty()) continue;
        const auto backend = std::ranges::find(known, name, &BackendInfo::name);
        if (backend == known.end() || backend->devices > 0) return std::nullopt;
        text += fmt::format("{}{} has no device", text.empty() ? "" : ", ", name);
    }
    if (text.empty()) return std::nullopt;
    return text;
}

// Loads a file. Throws PluginError with the reason only. Stores in `attempt` what it has read so far.
void load(Attempt& attempt, Asked asked) {
    if (const auto off = switched_off()) throw PluginError(switched_off_text(*off));
    const fs::path path = attempt.info.path;
    const TrustedFile file(path);
    attempt.info.file = file.path();
    const PluginFolders folders{path.parent_path(), file.path().parent_path()};
    const bool locked = loader.locks.mode(folders) != PluginLockMode::off;
    attempt.info = read_manifest(file.fd(), path);
    attempt.info.file = file.path();
    if (locked || audit_has_file()) attempt.info.sha256 = sha256_of(file.fd());
    if (!is_wanted(attempt, asked)) return;
    if (asked == Asked::by_folder) {
        if (const auto reason = no_device(attempt.info.devices)) {
            loader.report.idle.push_back({attempt.info, *reason});
            // The log has one line for each backend, not for each plugin: see tell_of_idle().
            return audit_to_file("idle", attempt, *reason);
        }
    }
    for (const std::string& warning : loader.locks.check(attempt.info, folders))
        tell(CATENA_LOG_WARNING, fmt::format("[plugin] {}: {}", path.string(), warning));
    {
        PluginStep step(path, "static constructors", [&](const std::string& reason) {
            audit_to_file("refused", attempt, reason);
        });
        start(attempt.info, file, step);
    }
    std::erase_if(loader.report.idle,
                  [&](const IdlePlugin& idle) { return idle.plugin.id == attempt.info.id; });
    loader.report.loaded.push_back(attempt.info);
    loader.files[attempt.info.id] = file.status();
    audit("loaded", attempt, "");
}

// Adds a refusal to the report and to the audit.
void refused(const Attempt& attempt, const RefusedPlugin& refusal) {
    loader.report.refused.push_back(refusal);
    audit("refused", attempt, refusal.reason);
}

// Adds refusals of folders and of invalid settings in the environment.
void refused(const std::vector<RefusedPlugin>& all) {
    for (const RefusedPlugin& refusal : all) refused(Attempt(refusal.path), refusal);
}

// Loads one file. Reports a refusal and rethrows it, with the reason only.
void load_file(const fs::path& file, Asked asked) {
    std::error_code error;
    Attempt attempt(fs::absolute(file, error));
    try {
        load(attempt, asked);
    } catch (const std::exception& refusal) {
        refused(attempt, {file, refusal.what()});
        throw;
    }
}

// The plugin that was loaded from this file, or null.
const LoadedPlugin* loaded_from(const fs::path& path) {
    const auto found = std::ranges::find_if(loader.report.loaded, [&](const LoadedPlugin& p) {
        std::error_code error;
        return p.path == fs::absolute(path, error) || fs::equivalent(p.path, path, error);
    });
    return found == loader.report.loaded.end() ? nullptr : &*found;
}

// Throws PluginError if the file is not the one that was loaded: its old code stays.
void require_unchanged(const LoadedPlugin& plugin, const fs::path& path) {
    struct stat now {};
    if (stat(path.c_str(), &now) == 0 && is_same_file(now, loader.files.at(plugin.id))) return;
    raise<PluginError>(
        "[plugin] {}: refused: the file was replaced or changed after {} {} was loaded from it, "
        "whose code stays loaded until the process ends: start the program again",
        path.string(), plugin.id, plugin.version);
}

// Moves plugins that name no devices to the front, because they may provide devices for the others.
// Plugins with the same id keep their order.
void backends_first(std::vector<fs::path>& files) {
    std::vector<std::string> later;
    std::stable_partition(files.begin(), files.end(), [&](const fs::path& file) {
        try {
            const LoadedPlugin info = read_manifest(file);
            if (info.devices.empty() && std::ranges::count(later, info.id) == 0) return true;
            later.push_back(info.id);
        } catch (const PluginError&) {  // load_file() will refuse it
        }
        return false;
    });
}

// Logs one line for each backend without a device, with the ids of all plugins for that backend.
void tell_of_idle() {
    const std::size_t told = std::exchange(loader.idle_told, loader.report.idle.size());
    const auto idle = std::span(loader.report.idle).subspan(std::min(told, loader.idle_told));
    for (const BackendInfo& backend : Registry::get().backends()) {
        if (backend.devices > 0) continue;
        std::string ids;
        for (const auto& [plugin, reason] : idle) {
            const std::string served = "," + plugin.devices + ",";
            if (served.find("," + backend.name + ",") == served.npos) continue;
            ids += (ids.empty() ? "" : ", ") + plugin.id;
        }
        if (ids.empty()) continue;
        tell(CATENA_LOG_INFO, one_line(fmt::format("[plugin] {}: no device ({}): not loaded: {}",
                                                   backend.name, backend.reason, ids)));
    }
}

// Logs kernels for functions that no plugin has, once for each function. Waits until the default
// folders were searched, since a plugin there may have the function. The line is a warning if the name
// is probably misspelled; otherwise the function's plugin is probably not installed.
void tell_of_kernels_without_function() {
    if (!loader.default_done || loader.loading) return;
    static std::set<std::string> told;
    for (const KernelsWithoutFunction& kernels : diagnostics().kernels_without_function()) {
        const std::string text = one_line("[plugin] " + to_string(kernels));
        if (!told.insert(text).second) continue;
        tell(kernels.guess.empty() ? CATENA_LOG_INFO : CATENA_LOG_WARNING, text);
    }
}

void load_folders(std::vector<SearchedFolder> folders) {
    std::vector<fs::path> all;
    for (SearchedFolder& folder : folders) {
        if (!folder.path.has_filename()) folder.path = folder.path.parent_path();  // "/plugins/"
        loader.report.searched.push_back(folder);
        refused(add_plugin_files(folder.path, all));
    }
    if (all.empty()) return;
    try {  // an invalid $CATENA_PLUGIN_LOCK is reported once, not for each plugin
        loader.locks.mode({all[0].parent_path(), all[0].parent_path()});
    } catch (const PluginError& error) {
        return refused({{all[0].parent_path(), error.what()}});
    }
    backends_first(all);
    for (const fs::path& file : all) {
        if (loaded_from(file)) continue;
        try {
            load_file(file, Asked::by_folder);
        } catch (const std::exception&) {  // it is reported; the other files are loaded
        }
    }
    tell_of_idle();
}

}  // namespace

void load_plugin(const fs::path& file) {
    const std::lock_guard lock(Registry::get().mutex());
    if (!switched_off())
        if (const LoadedPlugin* plugin = loaded_from(file)) return require_unchanged(*plugin, file);
    try {
        load_file(file, Asked::by_name);
    } catch (const PluginError& error) {
        raise<PluginError>("[plugin] {}: refused: {}", file.string(), error.what());
    }
    tell_of_kernels_without_function();
}

void load_plugins(const fs::path& folder) {
    const std::lock_guard lock(Registry::get().mutex());
    if (switched_off()) return;
    std::error_code error;  // default folders may be missing, but this folder must exist
    (void)fs::directory_iterator(folder, error);
    if (error) {
        raise<PluginError>("[plugins] expected a folder, got '{}': {}", folder.string(),
                           error.message());
    }
    load_folders({{fs::absolute(folder, error), "program"}});
    tell_of_kernels_without_function();
}

void load_default_plugins() {
    static std::atomic<bool> done{false};
    if (done.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(Registry::get().mutex());
    if (loader.loading) return;  // called by a plugin that is being loaded
    if (!loader.default_done && !switched_off()) {
        loader.loading = true;
        std::vector<RefusedPlugin> invalid;
        std::vector<SearchedFolder> folders = usual_folders(invalid);
        refused(invalid);
        load_folders(std::move(folders));
        loader.loading = false;
    }
    loader.default_done = true;
    diagnostics().report_pins();
    tell_of_kernels_without_function();
    done.store(true, std::memory_order_release);
}

void disable_default_plugins() {
    const std::lock_guard lock(Registry::get().mutex());
    loader.default_done = true;
}

void leave_out_plugin(std::string_view id) {
    const std::lock_guard lock(Registry::get().mutex());
    loader.unwanted.emplace_back(id);
}

void set_plugin_lock(PluginLockMode mode, const fs::path& file) {
    const std::lock_guard lock(Registry::get().mutex());
    loader.locks.set(mode, file);
}

PluginReport plugin_report() {
    const std::lock_guard lock(Registry::get().mutex());
    PluginReport report = loader.report;
    report.switched_off = switched_off();
    report.backends = Registry::get().backends();
    report.kernels_without_function = diagnostics().kernels_without_function();
    return report;
}

std::vector<SearchedFolder> default_plugin_folders() {
    std::vector<RefusedPlugin> invalid;
    return usual_folders(invalid);
}

// ---- the report as text

std::string switched_off_text(std::string_view word) {
    if (word == "off") return "plugins are switched off: CATENA_PLUGINS=off";
    return one_line(fmt::format(
        "plugins are switched off: CATENA_PLUGINS: expected on or off, got '{}'", word));
}

std::string refusals(const PluginReport& report, std::size_t most) {
    const std::span<const RefusedPlugin> all = report.refused;
    std::string text;
    for (const RefusedPlugin& p : all.first(std::min(most, all.size())))
        text += one_line(fmt::format("refused {}: {}", p.path.string(), p.reason)) + '\n';
    if (all.size() > most)
        text += fmt::format("refused {} more files: see catena plugins\n", all.size() - most);
    if (!text.empty()) text.pop_back();
    return text;
}

std::string to_string(const KernelsWithoutFunction& k) {
    return fmt::format("{}: it has kernels for {}, a function that no plugin has{}", k.plugin,
                       k.function, k.guess.empty() ? "" : "; did you mean " + k.guess + "?");
}

namespace {

// The report as text, with counts in place of lists if more than `most` plugins are loaded.
std::string text_of(const PluginReport& report, std::size_t most) {
    std::string text;
    const auto add = [&](const std::string& line) { text += one_line(line) + '\n'; };
    if (report.switched_off) add(switched_off_text(*report.switched_off));
    for (const SearchedFolder& folder : report.searched) {
        std::error_code error;
        const bool there = std::filesystem::is_directory(folder.path, error);
        add(fmt::format("looked in {}{}", folder.path.string(), there ? "" : " (no such folder)"));
    }
    const bool is_long = report.loaded.size() > most;
    const auto unless_long = [&](const auto& list) {
        return std::span(list).first(is_long ? 0 : list.size());
    };
    if (is_long)
        add(fmt::format("loaded {} plugins: 'catena plugins' or plugin_report() lists them",
                        report.loaded.size()));
    for (const LoadedPlugin& p : unless_long(report.loaded)) {
        add(fmt::format("loaded {} {} from {}{}", p.id, p.version, p.path.string(),
                        p.is_another_file() ? " -> " + p.file.string() : ""));
    }
    if (!report.refused.empty()) text += refusals(report, most) + '\n';
    for (const LoadedPlugin& p : report.left_out)
        add(fmt::format("left out {}: {}", p.id, p.path.string()));
    for (const OverriddenPlugin& p : unless_long(report.overridden)) {
        add(fmt::format("overridden {} {} of {}: {} came first", p.plugin.id, p.plugin.version,
                        p.plugin.path.string(), p.by.string()));
    }
    for (const IdlePlugin& p : unless_long(report.idle))
        add(fmt::format("not loaded {}: {}: {}", p.plugin.id, p.plugin.path.string(), p.reason));
    for (const BackendInfo& b : report.backends)
        if (b.devices == 0) add(fmt::format("{}: no device ({})", b.name, b.reason));
    for (const KernelsWithoutFunction& k : report.kernels_without_function) add(to_string(k));
    if (report.loaded.empty()) add("no plugin is loaded");
    text.pop_back();
    return text;
}

// The core calls load() before each search for a function, and the other functions for error messages.
struct Source : PluginSource {
    Source() { set_plugin_source(this); }
    void load() override { load_default_plugins(); }
    std::string report() override { return text_of(plugin_report(), 3); }
    std::string refusals() override { return catena::refusals(plugin_report(), 3); }
};
Source source;

}  // namespace

std::string to_string(const PluginReport& report) { return text_of(report, std::size_t(-1)); }

}  // namespace catena
