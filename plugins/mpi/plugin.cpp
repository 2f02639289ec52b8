// mpi.catena: the table of the plugin, a communicator. MPI starts when a group is opened.
#include <catena/plugin/tables.hpp>

#include "group.hpp"

namespace catena_mpi {
namespace {

using catena::plugin::extension, catena::plugin::table_of;

const catena_communicator communicator = catena::plugin::communicator_table<open>(
    "mpi", "ranks are processes that mpirun starts, on one machine or several", "cpu");
constexpr catena_extension entry = extension(CATENA_COMMUNICATOR_1, "", &communicator);
const catena_extension* const extensions[] = {&entry};

void CATENA_CALL deinit() noexcept { Engine::get().stop(); }

constexpr catena_plugin table = table_of({.extensions = extensions, .deinit = deinit});

}  // namespace
}  // namespace catena_mpi

CATENA_EXPORT_PLUGIN("org.catena.mpi", "0.1.0", "cpu", catena_mpi::table);
