// write_file() and require_writable(), for programs.
#pragma once

#include <catena/core/atomic_file.hpp>
