// What an exam asks, and how exactly.
#pragma once

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
    // A part of the exam, for functions that crash in another. What is left out says nothing.
    std::optional<Check> only;      // with what it needs of the others
    bool large = true;              // calls long enough for vectors and for threads
    std::int64_t elements = 40000;  // of an input of those for threads
    bool gradients = true;
    const char* device = nullptr;  // kernels of this backend alone, by its name

    bool wants(Check check) const {
        if (!only || check == *only) return true;
        // What differs from call to call says nothing else.
        if (check == Check::determinism) return true;
        // Kernels are measured by the composition, and some serve small calls alone.
        if (*only == Check::backward) return check == Check::gradient;
        return *only == Check::reached &&
               (check == Check::empty || check == Check::size_one || check == Check::zero_d);
    }
    // Where the one that watches for it is not asked.
    Check blamed(Check usual) const { return only.value_or(usual); }
    bool wants_kernels(int phase) const {
        if (!only) return true;
        switch (*only) {
            case Check::example:
            case Check::gradient:
            case Check::second_order:
            case Check::empty:
            case Check::size_one:
            case Check::zero_d:
            case Check::wrong_rank:
            case Check::wrong_shape:
            case Check::wrong_dtype: return false;
            case Check::dtypes: return phase == CATENA_PHASE_FORWARD;
            case Check::backward:
            case Check::targets:
            case Check::missing_gy:
            case Check::retained: return phase == CATENA_PHASE_BACKWARD;
            default: return true;
        }
    }
};

}  // namespace catena::testing
