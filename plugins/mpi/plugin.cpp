// mpi.catena: the table of the plugin, a communicator. MPI starts when a group is opened.
#include <catena/plugin/tables.hpp>

#include "group.hpp"

namespace catena_mpi {
namespace {

using catena::plugin::extension, catena::plugin::table_of;

void CATENA_CALL deinit() noexcept { Engine::get().stop(); }

const catena_plugin& table() {
    static const catena_communicator communicator = catena::plugin::communicator_table<open>(
        "mpi", "ranks are processes that mpirun starts, on one machine or several", "cpu");
    static const catena_extension entry = extension(CATENA_COMMUNICATOR_1, "", &communicator);
    static const catena_extension* const extensions[] = {&entry};
    static const catena_plugin plugin = table_of({.extensions = extensions, .deinit = deinit});
    return plugin;
}

}  // namespace
}  // namespace catena_mpi

CATENA_EXPORT_PLUGIN("org.catena.mpi", CATENA_VERSION, "", catena_mpi::table());
