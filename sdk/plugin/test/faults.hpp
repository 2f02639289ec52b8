// The faults of broken.catena, and the checks that must find each.
#pragma once

#include <cstddef>

enum class Fault : std::size_t {
    none,
    example_text,
    no_example,
    no_call,
    dtype,
    row,
    isa,
    threads,
    determinism,
    stochastic,
    gradient,
    backward,
    backward_dtype,
    second_order,
    targets,
    composed_targets,
    missing,
    composed_missing,
    add,
    backward_add,
    retained,
    composed_retained,
    empty,
    size_one,
    zero_d,
    layout,
    input,
    backward_input,
    write_beside,
    backward_beside,
    read_beside,
    unwritten,
    uninitialised,
    nan,
    shape,
    late,
    name,
    dtype_name,
    choice,
    truth,
    count
};
inline constexpr std::size_t n_faults = static_cast<std::size_t>(Fault::count);

struct FaultInfo {
    const char* function;
    const char* checks;  // the checks that fail
};
// clang-format off
inline constexpr FaultInfo faults[] = {
    {"org.example.right", ""},
    {"org.example.example_text", "example"},
    {"org.example.no_example", ""},
    {"org.example.no_call", "example"},
    {"org.example.dtype", "dtypes, size 1, 0-d"},
    {"org.example.row", "reached"},
    {"org.example.isa", "dtypes, variants, gradient, size 1, 0-d"},
    {"org.example.threads", "threads"},
    {"org.example.determinism", "determinism"},
    {"org.example.stochastic", "determinism"},
    {"org.example.gradient", "gradient, backward, size 1, 0-d"},
    {"org.example.backward", "backward, size 1, 0-d"},
    {"org.example.backward_dtype", "backward, size 1, 0-d"},
    {"org.example.second_order", "second order"},
    {"org.example.targets", "targets, add"},
    {"org.example.composed_targets", "targets"},
    {"org.example.missing", "missing gy"},
    {"org.example.composed_missing", "missing gy"},
    {"org.example.add", "add, size 1, 0-d"},
    {"org.example.backward_add", "add, size 1, 0-d"},
    {"org.example.retained", "retained"},
    {"org.example.composed_retained", "retained"},
    {"org.example.empty", "guard"},
    {"org.example.size_one", "size 1, 0-d"},
    {"org.example.zero_d", "0-d"},
    {"org.example.layout", "size 1, 0-d, layout"},
    {"org.example.input", "inputs"},
    {"org.example.backward_input", "size 1, 0-d, inputs"},
    {"org.example.write_beside", "guard"},
    {"org.example.backward_beside", "empty, size 1, 0-d, guard"},
    {"org.example.read_beside", "size 1, 0-d, guard"},
    {"org.example.unwritten", "example, add, size 1, 0-d, written"},
    {"org.example.uninitialised", "empty, size 1, 0-d, written"},
    {"org.example.nan", "size 1, 0-d, guard"},
    {"org.example.shape", "empty, 0-d, wrong rank, wrong shape"},
    {"org.example.late", "wrong rank, wrong shape"},
    {"org.example.name", "wrong rank, wrong shape"},
    {"org.example.dtype_name", "wrong dtype"},
    {"org.example.choice", "gradient"},
    {"org.example.truth", "gradient"},
};
// clang-format on
static_assert(sizeof faults / sizeof *faults == n_faults);
constexpr const char* name_of(Fault fault) {
    return faults[static_cast<std::size_t>(fault)].function;
}
