// What the CPU can do, in the levels of the x86-64 psABI.
#pragma once

#include <string>

namespace catena_cpu {

// [any] Highest psABI level that the CPU and the system support: 1 .. 4; 0 off x86-64.
int isa_level();

// [any] Whether code for isa may run: "", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4".
bool supports_isa(const char* isa);

// [any] What `-march=native` depends on: the model, and all its features.
std::string cpu_signature();

}  // namespace catena_cpu
