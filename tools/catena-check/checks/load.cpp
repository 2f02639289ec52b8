// Loading: what a plugin may not do to the process that loads it.
#include "plugin.hpp"

namespace catena::check {
namespace {

void entry(const Subject& subject, Findings&) {
    testing::World world{std::vector<std::string>()};
    doing("dlopen()");
    const Module module(subject.file);
    doing("catena_plugin_entry_v1()");
    module.table(world);
}
const Registered r1{{"load", "entry", "it can be loaded, and its entry returns a table", entry,
                     Each::plugin, false}};

}  // namespace
}  // namespace catena::check
