// What was executed, for the tests' coverage and the prediction of speed.
#pragma once

#include "../../machine/machine.hpp"

namespace catena_emulator {

// Runs a kernel. If CATENA_EMULATOR_COVERAGE names a folder, the kernel is in a file there when the process
// ends, with the number of its launches; with CATENA_EMULATOR_PROFILE=1 together with the counts of its
// launch of the most instructions.
catena_machine::Fault run_and_count(catena_machine::Launch& launch);
// Counts other work of a device, such as "copy", in the same file.
void count(const char* work);

}  // namespace catena_emulator
