// What is checked, and with which tolerances.
#pragma once

#include <optional>

#include "catena/testing/compare.hpp"
#include "catena/testing/report.hpp"

namespace catena::testing {

struct Settings {
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float16 = {4e-3, 2e-3};
    Tolerance bfloat16 = {3e-2, 2e-2};
    Tolerance differences = {1e-5, 1e-6};  // of second order: ten times that
    double step = 1e-4;                    // of finite differences
    unsigned seed = 1;                     // of all numbers
    // Run only this check, for functions that crash in another one.
    std::optional<Check> only;      // with what it needs of the others
    bool large = true;              // calls long enough for vectors and for threads
    std::int64_t elements = 40000;  // of an input of those for threads
    bool gradients = true;
    const char* device = nullptr;  // kernels of this backend alone, by its name

    bool wants(Check check) const;
    bool wants_kernels(int phase) const;
    // The check that a violation counts for, where the one that watches for it is left out.
    Check blamed(Check usual) const { return only.value_or(usual); }
};

}  // namespace catena::testing
