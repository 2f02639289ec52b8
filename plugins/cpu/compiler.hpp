// catena.compiler.draft/1 of the CPU: the system's C++ compiler, asked at run time.
#pragma once

#include "catena/abi/ext/draft/compiled.h"
#include "catena/abi/ext/draft/compiler.h"

namespace catena_cpu {

extern const catena_compiler compiler_table;
// catena.targets.draft/1: the levels of the x86-64 psABI.
extern const catena_targets targets_table;

// Source that comes before every kernel.

}  // namespace catena_cpu
