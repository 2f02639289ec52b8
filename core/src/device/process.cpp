// Process and thread state: objects, free lists, configuration, hooks, the log; failures of plugins' calls.
#include "device/device_state.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace catena {

namespace {

thread_local constinit ThreadObject* last_object = nullptr;

// Deletes the thread's objects, last constructed first. A destructor may construct another one.
void end_thread(void*) {
    while (ThreadObject* const object = last_object) {
        last_object = object->next;
        delete object;
    }
}

constexpr std::size_t granule = 64;
constexpr std::size_t classes = 16;
constexpr std::size_t most_kept_bytes = std::size_t{16} << 20;  // per size class and thread

struct Block {
    Block* next;
};

struct FreeLists {
    ~FreeLists() {
        for (Block* block : head)
            while (block) ::operator delete(std::exchange(block, block->next));
    }
    Block* head[classes] = {};
    std::size_t count[classes] = {};
};

__attribute__((tls_model("initial-exec"))) thread_local constinit PerThread<FreeLists> lists;

thread_local constinit PerThread<Config> mine;

constinit std::atomic<PluginSource*> source{nullptr};
constinit Diagnostics no_diagnostics;
thread_local PluginStep* current_step = nullptr;

}  // namespace

// A pthread key destroys the objects, because glibc ends the process if it has no memory to
// register a thread_local object with a destructor.
void keep_for_thread(std::unique_ptr<ThreadObject> object) {
    static pthread_key_t key;
    static const bool made = pthread_key_create(&key, end_thread) == 0;
    if (!last_object && (!made || pthread_setspecific(key, &last_object) != 0))
        throw std::bad_alloc();
    object->next = last_object;
    last_object = object.release();
}

void* pool_allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / granule;
    if (!recycle || index >= classes) return ::operator new(bytes);
    if (FreeLists* mine = lists.find()) {
        if (Block* block = mine->head[index]) {
            mine->head[index] = block->next;
            --mine->count[index];
            return block;
        }
    }
    return ::operator new((index + 1) * granule);
}

void pool_free(void* memory, std::size_t bytes) noexcept {
    const std::size_t index = (bytes - 1) / granule;
    FreeLists* mine = recycle && index < classes ? lists.try_get() : nullptr;
    if (!mine || mine->count[index] * (index + 1) * granule >= most_kept_bytes)
        return ::operator delete(memory);
    mine->head[index] = new (memory) Block{mine->head[index]};
    ++mine->count[index];
}

// ---- configuration

Config& global_config() noexcept {
    static Config instance = [] {
        const char* debug = std::getenv("CATENA_DEBUG");
        Config initial;
        initial.debug = debug && *debug && std::string_view(debug) != "0";
        return initial;
    }();
    return instance;
}

Config& config() { return mine.get(global_config()); }

const Config& read_config() noexcept {
    const Config* found = mine.find();
    return found != nullptr ? *found : global_config();
}

std::shared_ptr<const Config> keep_named(const Config& now) {
    static thread_local constinit PerThread<std::shared_ptr<const Config>> kept;
    auto& last = kept.get();
    if (!last || last->named != now.named) last = std::make_shared<const Config>(now);
    return last;
}

// ---- hooks of the loader and of catena::diagnostics, and the plugin that ends the process

constinit std::atomic<Diagnostics*> registered_diagnostics{&no_diagnostics};
constinit std::atomic<const RunHook*> run_hook{nullptr};

void set_plugin_source(PluginSource* registered) noexcept { source = registered; }

void load_plugins_once() {
    if (PluginSource* const loader = source.load(std::memory_order_acquire)) loader->load();
}

std::string with_plugin_report(std::string what) {
    PluginSource* const loader = source;
    return std::move(what) + '\n' +
           (loader ? loader->report() : "no plugin loader is linked: see catena::loader");
}

std::string plugin_refusals() {
    PluginSource* const loader = source;
    const std::string text = loader ? loader->refusals() : "";
    return text.empty() ? text : '\n' + text;
}

// exit() does not unwind the stack, so the step still exists.
void PluginStep::process_ends() {
    const PluginStep* const step = std::exchange(current_step, nullptr);
    if (!step) return;
    const std::string reason = fmt::format("its {} called exit()", step->step_);
    tell(CATENA_LOG_ERROR, fmt::format("[plugin] {}: {}: the process ends with code {}",
                                       step->file_.string(), reason, EXIT_FAILURE));
    if (step->tell_) step->tell_(reason);
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
}

PluginStep::PluginStep(const std::filesystem::path& file, const char* step, Tell tell)
    : file_(file), step_(step), tell_(std::move(tell)), scope_(current_step, this) {
    [[maybe_unused]] static const bool registered =
        std::atexit(process_ends) + std::at_quick_exit(process_ends) == 0;
}

// ---- the log, and failures of calls into plugins

void tell(std::int32_t level, std::string_view text) {
    static const char* const names[] = {"debug", "info", "warning", "error"};
    static const int least = [] {
        const char* wish = std::getenv("CATENA_LOG");
        const auto found = std::ranges::find(names, std::string_view(wish ? wish : "warning"));
        return found == std::end(names) ? CATENA_LOG_WARNING : static_cast<int>(found - names);
    }();
    if (level < least) return;
    std::fprintf(stderr, "catena %s: %.*s\n", names[std::min(std::max(level, 0), 3)],
                 static_cast<int>(text.size()), text.data());
}

catena_status fail(catena_ctx* ctx, catena_status status, const char* text) noexcept {
    if (status == CATENA_OK) status = CATENA_E_INTERNAL;
    if (ctx && ctx->status == CATENA_OK) {
        ctx->status = status;
        try {
            ctx->error = text ? text : "";
        } catch (const std::bad_alloc&) {
            ctx->error = "out of memory";  // short enough for the string's own buffer
        }
    }
    return status;
}

void throw_failure(const catena_ctx& ctx, catena_status status, const std::string& where,
                   const std::string& hint) {
    std::string text = ctx.error.empty() ? fmt::format("failed with status {}", status) : ctx.error;
    if (text.empty() || text.front() != '[') text = fmt::format("[{}] {}", where, text);
    if (ctx.exception) {
        try {
            std::rethrow_exception(ctx.exception);
        } catch (const PluginError&) {  // it does not name the caller
            throw PluginError(text);
        }
    }
    if (!hint.empty()) text += fmt::format(" ({})", hint);
    if (status == CATENA_E_DEVICE && ctx.device)  // an earlier call may have caused it
        text += diagnostics().last_launches(Device(ctx.device));
    throw_status(status, text);
}

}  // namespace catena
