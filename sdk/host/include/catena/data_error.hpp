// DataError, for programs.
#pragma once

#include <catena/core/data_error.hpp>
