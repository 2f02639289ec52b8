// Loading, as a host does it.
#include "plugin.hpp"

#include <dlfcn.h>

namespace catena::check {

using testing::Failure;

Module::Module(const std::filesystem::path& file) {
    library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Failure(CATENA_E_INVALID, std::string("dlopen: ") + dlerror());
    manifest = static_cast<const catena_manifest*>(dlsym(library, "catena_manifest_v1"));
    if (manifest == nullptr) throw Failure(CATENA_E_INVALID, "no symbol catena_manifest_v1");
    entry = reinterpret_cast<decltype(entry)>(dlsym(library, "catena_plugin_entry_v1"));
    if (entry == nullptr) throw Failure(CATENA_E_INVALID, "no symbol catena_plugin_entry_v1");
}

const catena_plugin& Module::table(testing::World& world) const {
    catena_ctx ctx{&world, {}, {}};
    const catena_plugin* const result = entry(&testing::World::host(), &ctx);
    if (result == nullptr)
        throw Failure(CATENA_E_INVALID, "catena_plugin_entry_v1() returned NULL: " +
                                            (ctx.error.empty() ? "no text" : ctx.error));
    return *result;
}

std::unique_ptr<testing::World> make_world(const Subject& subject) {
    std::vector<std::string> paths = {subject.file.string()};
    for (const auto& path : subject.with) paths.push_back(path.string());
    return std::make_unique<testing::World>(paths);
}

std::string absent_in(testing::World& world, const Subject& subject) {
    if (world.origin(world.function(subject.function)) == subject.id) return {};
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world.kernels(subject.function, phase))
            if (world.origin(*k) == subject.id) return {};
    std::string text = "none of its kernels can run here";
    for (const std::string& line : world.skipped(subject.function)) text += "; " + line;
    return text;
}

}  // namespace catena::check
