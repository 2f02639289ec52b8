// Finds, checks, maps and registers plugins, a step after the other.
#include "loader/loader.hpp"

#include "device/context.hpp"
#include "loader/plugin_audit.hpp"
#include "loader/plugin_image.hpp"
#include "loader/plugin_lock.hpp"
#include "loader/plugin_search.hpp"
#include "loader/plugin_step.hpp"
#include "registry/registry.hpp"

#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace catena {
namespace {

namespace fs = std::filesystem;

struct Loader {
    PluginReport report;
    PluginLocks locks;
    std::vector<const PluginEntry*> started;
    std::vector<std::string> unwanted;  // ids
    bool default_done = false;
    bool loading = false;
    bool lock_fault_said = false;
    std::vector<LoadedPlugin> idle;  // of the folders that are being loaded

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
            if (!(*it)->table->deinit) continue;
            const PluginStep step((*it)->info.path, "deinit()");
            (*it)->table->deinit();
        }
        started.clear();
    }
};

// Any word but "on" switches off: a slip of the pen must not load what shall not be loaded.
std::optional<std::string> switched_off() {
    const char* wish = std::getenv("CATENA_PLUGINS");
    if (!wish || !*wish || std::string_view(wish) == "on") return std::nullopt;
    return wish;
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

void start(LoadedPlugin& info, const PluginImage& image, PluginStep& step) {
    boost::dll::shared_library& library = image.map();
    if (!library.has("catena_plugin_entry_v1")) {
        throw PluginError("it exports no catena_plugin_entry_v1");
    }
    using Entry = const catena_plugin*(const catena_host*, catena_ctx*);
    auto& entry = library.get<Entry>("catena_plugin_entry_v1");
    catena_ctx ctx;
    step.enters("entry");
    const catena_plugin* table = guarded("entry", [&] { return entry(&host_table(), &ctx); });
    if (!table) throw PluginError(fmt::format("its entry failed: {}", words(ctx)));
    info.n_functions = static_cast<int>(table->n_functions);
    info.n_kernels = static_cast<int>(table->n_kernels);
    info.n_backends = static_cast<int>(table->n_backends);
    const PluginEntry& plugin = Registry::get().add(info, *table);
    if (table->init) {
        try {
            catena_ctx init_ctx;
            step.enters("init()");
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
}

enum class Asked { by_name, by_folder };

// False if it is passed over: left out, or overridden by an earlier folder's.
bool is_wanted(const Attempt& attempt, Asked asked) {
    Loader& loader = Loader::get();
    const LoadedPlugin& info = attempt.info;
    if (std::ranges::count(loader.unwanted, info.id) > 0) {
        loader.report.left_out.push_back(info);
        audit("left-out", attempt, "");
        return false;
    }
    const auto first = std::ranges::find(loader.report.loaded, info.id, &LoadedPlugin::id);
    if (first == loader.report.loaded.end()) return true;
    if (asked == Asked::by_name || first->path.parent_path() == info.path.parent_path()) {
        throw PluginError(
            fmt::format("id {} is already loaded from {}", info.id, first->path.string()));
    }
    loader.report.overridden.push_back({info, first->path});
    audit("overridden", attempt, first->path.string() + " came first");
    return false;
}

// Throws PluginError with the bare reason; the attempt knows then how far it came.
void load(Attempt& attempt, Asked asked) {
    Loader& loader = Loader::get();
    if (const auto off = switched_off()) {
        throw PluginError(switched_off_text(*off));
    }
    const fs::path path = attempt.info.path;
    const TrustedFile file(path, Writers::owner);
    attempt.owner = file.owner();
    attempt.mode = file.mode();
    attempt.info.file = file.path();
    const PluginFolders folders{path.parent_path(), file.path().parent_path()};
    const bool locked = loader.locks.mode(folders) != PluginLockMode::off;
    using Bytes = PluginImage::Bytes;
    const PluginImage image(file, locked ? Bytes::sealed : Bytes::of_the_file);
    attempt.info = check_manifest(read_raw_manifest(image.elf()), path);
    attempt.info.file = file.path();
    if (locked || audit_has_file()) attempt.info.sha256 = image.sha256();
    if (!is_wanted(attempt, asked)) return;
    if (asked == Asked::by_folder) {
        if (const auto reason = Registry::get().no_device(attempt.info.devices)) {
            loader.report.idle.push_back({attempt.info, *reason});
            loader.idle.push_back(attempt.info);
            // In the log once for each backend, not for each plugin: see the report.
            return audit_to_file("idle", attempt, *reason);
        }
    }
    for (const std::string& warning : loader.locks.check(attempt.info, folders)) {
        const std::string text = fmt::format("[plugin] {}: {}", path.string(), warning);
        host_table().log(nullptr, CATENA_LOG_WARNING, text.c_str());
    }
    {
        PluginStep step(attempt);
        start(attempt.info, image, step);
    }
    std::erase_if(loader.report.idle,
                  [&](const IdlePlugin& idle) { return idle.plugin.id == attempt.info.id; });
    loader.report.loaded.push_back(attempt.info);
    audit("loaded", attempt, "");
}

// What a file says of itself, if it may be read.
std::optional<LoadedPlugin> peek(const fs::path& path) {
    try {
        const TrustedFile file(path, Writers::owner);
        const PluginImage image(file, PluginImage::Bytes::of_the_file);
        return check_manifest(read_raw_manifest(image.elf()), path);
    } catch (const PluginError&) {
        return std::nullopt;
    }
}

// Each refusal goes to the report and to the audit.
void refused(Attempt& attempt, const RefusedPlugin& refusal) {
    Loader::get().report.refused.push_back(refusal);
    struct stat status {};
    const fs::path& path = attempt.info.path;
    if (!attempt.owner && path.is_absolute() && stat(path.c_str(), &status) == 0) {
        attempt.owner = status.st_uid;
        attempt.mode = status.st_mode & 07777;
    }
    audit("refused", attempt, refusal.reason);
}

// Of what is no plugin's file: a folder, or odd words for one.
void refused(const RefusedPlugin& refusal) {
    Attempt attempt;
    attempt.info.path = refusal.path;
    refused(attempt, refusal);
}

// One file; a refusal is thrown on, with its bare reason.
void load_file(const fs::path& file, Asked asked) {
    Attempt attempt;
    std::error_code error;
    attempt.info.path = fs::absolute(file, error);
    try {
        load(attempt, asked);
    } catch (const std::exception& refusal) {
        refused(attempt, {file, refusal.what()});
        throw;
    }
}

bool already_loaded(const fs::path& path) {
    const auto& loaded = Loader::get().report.loaded;
    return std::any_of(loaded.begin(), loaded.end(), [&](const LoadedPlugin& p) {
        std::error_code error;
        return p.path == path || fs::equivalent(p.path, path, error);
    });
}

// Words of the environment that mean nothing are said once, not for each plugin.
bool knows_lock_of(const fs::path& folder) {
    Loader& loader = Loader::get();
    try {
        loader.locks.mode({folder, folder});
        return true;
    } catch (const PluginError& error) {
        if (!std::exchange(loader.lock_fault_said, true)) refused({folder, error.what()});
        return false;
    }
}

// Plugins that name no devices come first, for they may bring them; but never before one of the same
// id that comes first.
void bringers_first(std::vector<fs::path>& files) {
    std::vector<std::string> later;
    std::stable_partition(files.begin(), files.end(), [&](const fs::path& file) {
        const auto info = peek(file);
        if (info && info->devices.empty() && std::ranges::count(later, info->id) == 0) return true;
        if (info) later.push_back(info->id);
        return false;
    });
}

// A line in the log for each backend without a device: the plugins for it are many.
void say_idle() {
    const std::vector<LoadedPlugin> idle = std::exchange(Loader::get().idle, {});
    if (idle.empty()) return;
    for (const BackendInfo& backend : Registry::get().backends()) {
        if (backend.devices > 0) continue;
        std::string ids;
        for (const LoadedPlugin& plugin : idle) {
            const std::string served = "," + plugin.devices + ",";
            if (served.find("," + backend.name + ",") == served.npos) continue;
            ids += (ids.empty() ? "" : ", ") + plugin.id;
        }
        if (ids.empty()) continue;
        const std::string text = one_line(fmt::format("[plugin] {}: no device ({}): not loaded: {}",
                                                      backend.name, backend.reason, ids));
        host_table().log(nullptr, CATENA_LOG_INFO, text.c_str());
    }
}

// Once for each function, after the usual folders are searched: until then a plugin may still bring
// the function. A plugin of kernels alone may be installed without the functions; what is probably a
// misspelled name is a warning. The report always lists them.
void tell_of_kernels_without_function() {
    const Loader& loader = Loader::get();
    if (!loader.default_done || loader.loading) return;
    static std::set<std::string> told;
    for (const KernelsWithoutFunction& kernels : Registry::get().kernels_without_function()) {
        const std::string text = one_line("[plugin] " + to_string(kernels));
        if (!told.insert(text).second) continue;
        const auto level = kernels.guess.empty() ? CATENA_LOG_INFO : CATENA_LOG_WARNING;
        host_table().log(nullptr, level, text.c_str());
    }
}

void load_folders(std::vector<SearchedFolder> folders) {
    std::vector<fs::path> all;
    for (SearchedFolder& folder : folders) {
        if (!folder.path.has_filename()) folder.path = folder.path.parent_path();  // "/plugins/"
        Loader::get().report.searched.push_back(folder);
        std::vector<RefusedPlugin> unread;
        const std::vector<fs::path> files = plugin_files(folder, unread);
        for (const auto& refusal : unread) refused(refusal);
        if (files.empty() || !knows_lock_of(folder.path)) continue;
        all.insert(all.end(), files.begin(), files.end());
    }
    bringers_first(all);
    for (const fs::path& file : all) {
        if (already_loaded(file)) continue;
        try {
            load_file(file, Asked::by_folder);
        } catch (const std::exception&) {  // one odd file must not stop the others
        }
    }
    say_idle();
}

}  // namespace

void load_plugin(const fs::path& file) {
    const std::lock_guard lock(Registry::get().mutex());
    if (!switched_off() && already_loaded(file)) return;
    try {
        load_file(file, Asked::by_name);
    } catch (const PluginError& error) {
        throw PluginError(fmt::format("[plugin] {}: refused: {}", file.string(), error.what()));
    }
    tell_of_kernels_without_function();
}

void load_plugins(const fs::path& folder) {
    const std::lock_guard lock(Registry::get().mutex());
    if (switched_off()) return;
    std::error_code error;  // of the usual places one may be missing, not of those that are named
    (void)fs::directory_iterator(folder, error);
    if (error) {
        throw PluginError(fmt::format("[plugins] expected a folder, got '{}': {}", folder.string(),
                                      error.message()));
    }
    load_folders({{fs::absolute(folder, error), "program"}});
    tell_of_kernels_without_function();
}

void load_default_plugins() {
    static std::atomic<bool> done{false};
    if (done.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(Registry::get().mutex());
    Loader& loader = Loader::get();
    if (loader.loading) return;  // a plugin that asks while it is loaded
    if (!loader.default_done && !switched_off()) {
        loader.loading = true;
        std::vector<RefusedPlugin> odd;
        std::vector<SearchedFolder> folders = usual_folders(odd);
        for (const auto& refusal : odd) refused(refusal);
        load_folders(std::move(folders));
        loader.loading = false;
    }
    loader.default_done = true;
    Registry::get().report_pins();
    tell_of_kernels_without_function();
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

void set_plugin_lock(PluginLockMode mode, const fs::path& file) {
    const std::lock_guard lock(Registry::get().mutex());
    Loader::get().locks.set(mode, file);
}

PluginReport plugin_report() {
    const std::lock_guard lock(Registry::get().mutex());
    PluginReport report = Loader::get().report;
    report.switched_off = switched_off();
    report.backends = Registry::get().backends();
    report.kernels_without_function = Registry::get().kernels_without_function();
    return report;
}

std::vector<SearchedFolder> default_plugin_folders() {
    std::vector<RefusedPlugin> odd;
    return usual_folders(odd);
}

}  // namespace catena
