// The hooks, empty until catena::diagnostics is loaded.
#include "device/diagnostics.hpp"

namespace catena {
namespace {

constinit Diagnostics none;

}  // namespace

constinit std::atomic<Diagnostics*> registered_diagnostics{&none};
constinit std::atomic<const RunHook*> run_hook{nullptr};

}  // namespace catena
