// Report: the results of conform(), a verdict for each check of one function.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catena/abi/plugin.h"

namespace catena::testing {

// The checks, in the order of the coverage page.
enum class Check {
    example,
    dtypes,
    variants,
    threads,
    determinism,
    gradient,
    backward,
    second_order,
    targets,
    missing_gy,
    add,
    retained,
    empty,
    size_one,
    zero_d,
    layout,
    inputs,
    guard,
    written,
    nan,
    reached,
    wrong_rank,
    wrong_shape,
    wrong_dtype,
    count
};
inline constexpr std::size_t n_checks = static_cast<std::size_t>(Check::count);

struct CheckInfo {
    const char* name;
    const char* doc;
    const char* group;  // in catena-check
    const char* check;  // the check's name there
    unsigned phases;    // whose kernels it runs, as bits: 1 forward, 2 backward
};
inline constexpr std::array<CheckInfo, n_checks> check_infos = {{
    {"example", "the function has examples, or trying found a valid call; outputs are finite",
     "values", "examples", 0},
    {"dtypes", "every row of dtypes that a kernel declares gives the same values as float64",
     "values", "dtypes", 1},
    {"variants", "the kernels of all plugins, for all instruction sets of this machine, agree",
     "values", "variants", 3},
    {"threads",
     "1, 2 and 3 threads give the same results (bit for bit if the kernel is DETERMINISTIC)",
     "determinism", "threads", 3},
    {"determinism",
     "the same call gives the same bits; the same seed gives the same random numbers",
     "determinism", "repeated", 3},
    {"gradient", "the composed gradient agrees with finite differences in float64", "gradients",
     "composed", 0},
    {"backward",
     "backward kernels agree with the composed gradient in every dtype and instruction set",
     "gradients", "kernel", 2},
    {"second order", "the gradient of the composed gradient agrees with finite differences",
     "gradients", "second-order", 0},
    {"targets", "any subset of the gradients has the same values as when all are computed",
     "gradients", "targets", 2},
    {"missing gy", "a missing gradient of an output counts as zero", "gradients", "missing", 2},
    {"add", "REQ_ADD adds to the existing values, forward and backward", "values", "add", 3},
    {"retained", "backward reads only inputs and outputs that are declared as retained",
     "gradients", "retained", 2},
    {"empty", "calls are correct if inputs have a first extent of 0", "values", "empty", 0},
    {"size 1", "calls are correct if inputs have extents of 1", "values", "size-one", 0},
    {"0-d", "calls are correct if inputs have no axes", "values", "zero-d", 0},
    {"layout",
     "inputs copied from strided host memory, or at unaligned addresses, give the same results",
     "values", "layout", 3},
    {"inputs", "read-only inputs, outputs and gradients are not modified", "values", "inputs", 3},
    {"guard", "nothing outside outputs, saved state, scratch and inputs is written or read",
     "values", "guard", 3},
    {"written", "every byte of a result is written, and none depends on uninitialized memory",
     "values", "written", 3},
    {"NaN", "calls whose inputs are all NaN neither crash nor hang", "values", "nan", 3},
    {"reached", "every kernel that this machine can run is run, in each of its rows of dtypes",
     "values", "reached", 3},
    {"wrong rank", "a wrong rank is refused with \"[function] ...\" before any kernel runs",
     "inference", "wrong-rank", 0},
    {"wrong shape", "a wrong shape is refused with \"[function] ...\" before any kernel runs",
     "inference", "wrong-shape", 0},
    {"wrong dtype", "a wrong dtype is refused with \"[function] ...\" before any kernel runs",
     "inference", "wrong-dtype", 0},
}};
inline const CheckInfo& info(Check check) { return check_infos[static_cast<std::size_t>(check)]; }

enum class Verdict { none, not_applicable, passed, failed };

class Report {
public:
    struct Entry {
        Verdict verdict = Verdict::none;
        std::string text;  // why it is not applicable, or a line for each failure
    };
    explicit Report(std::string function = {}) : function_(std::move(function)) {}

    const std::string& function() const { return function_; }
    const Entry& operator[](Check check) const { return entries_[static_cast<std::size_t>(check)]; }
    void pass(Check check);
    // If there are several reasons, the last one is kept.
    void skip(Check check, const std::string& reason);
    // Texts that differ only in numbers, dtypes and instruction sets are merged into the first.
    void fail(Check check, const std::string& text);
    bool failed(Check check) const { return (*this)[check].verdict == Verdict::failed; }
    // Call it after the last example. A check without a verdict then fails, because no example
    // reached it. If another check has failed, it is skipped instead, because that failure may be
    // the reason. With `only`, all other checks are skipped.
    void finish(std::optional<Check> only = {});
    // A line "function: check: text" for each failure.
    std::vector<std::string> lines() const;
    // All of these lines in one text; empty if nothing failed.
    std::string failures() const;

    std::set<std::string> skipped;    // a line for each device that is missing
    std::set<std::string> shortened;  // a line for each long call that the time limit shortened
    int examples = 0;                 // number of examples that the function declares
    std::string found;                // if it declares none: the call that was found
    bool internal = false;            // the function is a part of other functions' gradients
    std::set<std::pair<const catena_kernel*, std::string>> reached;  // kernels, rows of dtypes
    // Why a kernel's row of dtypes did not fit an example.
    std::map<std::pair<const catena_kernel*, std::string>, std::string> missed;
    bool compared = false;  // all variants that this machine can run were compared

private:
    // A failure and the kernels that have it: the position in the text of the dtypes and
    // instruction set of the first kernel, and the dtypes and instruction sets of the others.
    struct Line {
        std::string kind;
        std::string text;
        std::size_t begin = 0;
        std::size_t length = 0;
        std::vector<std::string> others = {};
        std::string all() const;
    };
    Entry& at(Check check) { return entries_[static_cast<std::size_t>(check)]; }

    std::string function_;
    std::array<Entry, n_checks> entries_;
    std::array<std::vector<Line>, n_checks> lines_;
};

namespace detail {
// The text without the kernel's dtypes and instruction set, and with # in place of each number.
std::string kind_of(const std::string& text);
}  // namespace detail

// The current activity of the tests, for messages about crashes and hangs.
extern char doing[256];
void now_doing(const std::string& function, const std::string& what);

}  // namespace catena::testing
