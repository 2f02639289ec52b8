// Ends the process with a message where a plugin calls exit() while it is loaded.
#include "load_step.hpp"

#include "context.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace catena {
namespace {

thread_local LoadStep* current = nullptr;

}  // namespace

// exit() does not unwind the stack: the step and its attempt are still there.
void LoadStep::process_ends() {
    const LoadStep* const step = std::exchange(current, nullptr);
    if (!step) return;
    const std::string reason = fmt::format("its {} called exit()", step->step_);
    host_table().log(nullptr, CATENA_LOG_ERROR,
                     fmt::format("[plugin] {}: {}: the process ends with code {}",
                                 step->attempt_.info.path.string(), reason, EXIT_FAILURE)
                         .c_str());
    audit_to_file("refused", step->attempt_, reason);
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
}

LoadStep::LoadStep(const Attempt& attempt)
    : attempt_(attempt), before_(std::exchange(current, this)) {
    static const bool registered =
        std::atexit(process_ends) + std::at_quick_exit(process_ends) == 0;
    (void)registered;
}
LoadStep::~LoadStep() { current = before_; }
void LoadStep::enters(const char* step) { step_ = step; }

}  // namespace catena
