// What conform() found: a verdict for each check of one function.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catena/abi/plugin.h"

namespace catena::testing {

// In the order of the coverage page.
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
};
inline constexpr std::array<CheckInfo, n_checks> check_infos = {{
    {"example", "it has examples, or a call was found by trying; outputs are finite"},
    {"dtypes", "every row of dtypes that a kernel declares gives what float64 gives"},
    {"variants", "kernels for every instruction set of this machine and of every plugin agree"},
    {"threads", "1, 2 and 3 threads agree (bit for bit if the kernel says DETERMINISTIC)"},
    {"determinism", "the same call gives the same bits; the same seed the same random numbers"},
    {"gradient", "the composed gradient is that of finite differences in float64"},
    {"backward", "backward kernels give the same, in every dtype, on every instruction set"},
    {"second order", "the gradient of the composed gradient is that of finite differences"},
    {"targets", "every set of wanted gradients gives the same numbers as all of them"},
    {"missing gy", "an output's gradient that did not come is zero"},
    {"add", "REQ_ADD adds to what is there, forward and backward"},
    {"retained", "backward reads the inputs and outputs alone that are declared as retained"},
    {"empty", "first extents of 0"},
    {"size 1", "extents of 1"},
    {"0-d", "inputs without axes"},
    {"layout", "inputs that came from strided host memory, and at odd addresses"},
    {"inputs", "inputs, outputs and gradients that were lent are unmodified"},
    {"guard", "nothing is written or read beside outputs, saved state, scratch and inputs"},
    {"written", "every byte of a result is written, none depends on uninitialised memory"},
    {"NaN", "NaN everywhere neither crashes nor hangs"},
    {"reached", "every kernel that can run here runs, in each of its rows of dtypes"},
    {"wrong rank", "refused with \"[function] ...\" before any kernel ran"},
    {"wrong shape", "refused with \"[function] ...\" before any kernel ran"},
    {"wrong dtype", "refused with \"[function] ...\" before any kernel ran"},
}};
inline const CheckInfo& info(Check check) { return check_infos[static_cast<std::size_t>(check)]; }

namespace detail {

// Where a text names a kernel's dtypes and instruction set: "float64 'x86-64-v3'" in label_of().
struct Variant {
    std::size_t begin = 0;
    std::size_t length = 0;  // 0: nowhere
};
inline Variant variant_in(const std::string& text) {
    for (const std::string phase : {"forward ", "backward "})
        for (std::size_t at = 0; (at = text.find(phase, at)) != std::string::npos; ++at) {
            const std::size_t begin = at + phase.size();
            const std::size_t isa = text.find(" '", begin);
            if (isa == std::string::npos || isa != text.find(' ', begin)) continue;
            const std::size_t end = text.find("' of ", isa + 1);
            if (end != std::string::npos && end == text.find('\'', isa + 2))
                return {begin, end + 1 - begin};
        }
    return {};
}
// The text without its variant, and with # for each number.
inline std::string kind_of(const std::string& text, Variant variant) {
    if (variant.length == 0) return text;
    std::string kind;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i == variant.begin) i += variant.length;
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (!digit) kind += text[i];
        else if (kind.empty() || kind.back() != '#') kind += '#';
    }
    return kind;
}

}  // namespace detail

enum class Verdict { none, not_applicable, passed, failed };

class Report {
public:
    struct Entry {
        Verdict verdict = Verdict::none;
        std::string text;  // why not applicable; what failed, a line each
    };
    explicit Report(std::string function = {}) : function_(std::move(function)) {}

    const std::string& function() const { return function_; }
    const Entry& operator[](Check check) const { return entries_[static_cast<std::size_t>(check)]; }
    void pass(Check check) {
        Entry& e = at(check);
        if (e.verdict == Verdict::failed) return;
        e = {Verdict::passed, {}};
    }
    // Of several reasons the last one stays.
    void skip(Check check, const std::string& reason) {
        Entry& e = at(check);
        if (e.verdict <= Verdict::not_applicable) e = {Verdict::not_applicable, reason};
    }
    // Texts that differ only in numbers and in the kernels' dtypes and instruction sets make one line:
    // the first of them.
    void fail(Check check, const std::string& text) {
        Entry& e = at(check);
        e.verdict = Verdict::failed;
        std::vector<Line>& lines = lines_[static_cast<std::size_t>(check)];
        const detail::Variant variant = detail::variant_in(text);
        const std::string kind = detail::kind_of(text, variant);
        const auto same =
            std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.kind == kind; });
        if (same == lines.end()) lines.push_back({kind, text, variant, {}});
        else same->add(text.substr(variant.begin, variant.length));
        e.text.clear();
        for (std::size_t i = 0; i < lines.size() && i < most_lines; ++i)
            e.text += lines[i].all() + "\n";
    }
    bool failed(Check check) const { return (*this)[check].verdict == Verdict::failed; }
    // To be called after the last example. A check that has no verdict yet fails. If another check has
    // failed, it is skipped, because that failure may have kept the exam from it. With `only`, all other
    // checks are skipped.
    void finish(std::optional<Check> only = {}) {
        std::string other;
        for (std::size_t i = 0; i < n_checks && other.empty(); ++i)
            if (failed(static_cast<Check>(i))) other = check_infos[i].name;
        for (std::size_t i = 0; i < n_checks; ++i) {
            if (entries_[i].verdict != Verdict::none) continue;
            const Check check = static_cast<Check>(i);
            if (only && check != *only) skip(check, "not asked for");
            else if (other.empty()) fail(check, "no example reaches it");
            else skip(check, "it did not come to it: see " + other);
        }
    }
    // A line "function: check: text" for each failure.
    std::vector<std::string> lines() const {
        std::vector<std::string> result;
        for (std::size_t i = 0; i < n_checks; ++i) {
            if (entries_[i].verdict != Verdict::failed) continue;
            const std::string start = function_ + ": " + check_infos[i].name + ": ";
            const std::string& text = entries_[i].text;
            std::size_t begin = 0;
            for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos;
                 begin = end + 1)
                result.push_back(start + text.substr(begin, end - begin));
            if (lines_[i].size() > most_lines)
                result.push_back(start + std::to_string(lines_[i].size() - most_lines) + " more");
        }
        return result;
    }
    // All of them in one text; empty: nothing failed.
    std::string failures() const {
        std::string result;
        for (const std::string& line : lines()) result += line + "\n";
        return result;
    }

    std::set<std::string> skipped;    // devices that are not there: a line each
    std::set<std::string> shortened;  // long calls that time has limited: a line each
    int examples = 0;                 // that the function declares
    std::string found;                // the call that was found where it declares none
    bool internal = false;            // part of other functions' gradients
    std::set<std::pair<const catena_kernel*, std::string>> reached;  // in which row of dtypes
    // Why a row did not fit an example.
    std::map<std::pair<const catena_kernel*, std::string>, std::string> missed;
    bool compared = false;  // whether all variants that run here were

private:
    static constexpr std::size_t most_lines = 6;
    // One failure, and all kernels that have it.
    struct Line {
        std::string kind;
        std::string text;  // of the first
        detail::Variant variant;
        std::vector<std::string> others;
        void add(const std::string& other) {
            if (other.empty() || other == text.substr(variant.begin, variant.length) ||
                std::find(others.begin(), others.end(), other) != others.end())
                return;
            others.push_back(other);
        }
        std::string all() const {
            if (others.empty()) return text;
            std::set<std::string> rows;
            std::set<std::string> isas;
            for (const std::string& other : others) {
                rows.insert(other.substr(0, other.find(' ')));
                isas.insert(other.substr(other.find(' ') + 1));
            }
            const auto joined = [](const std::set<std::string>& parts, const char* between) {
                std::string list;
                for (const std::string& part : parts) list += (list.empty() ? "" : between) + part;
                return list;
            };
            const std::size_t end = variant.begin + variant.length;
            return text.substr(0, end) + " (and " + std::to_string(others.size()) + " more, of " +
                   joined(rows, " or ") + " for " + joined(isas, " or ") + ")" + text.substr(end);
        }
    };
    Entry& at(Check check) { return entries_[static_cast<std::size_t>(check)]; }

    std::string function_;
    std::array<Entry, n_checks> entries_;
    std::array<std::vector<Line>, n_checks> lines_{};
};

// What the tests do at the moment, for handlers of crashes and hangs.
inline char doing[256] = "";
inline void now_doing(const std::string& function, const std::string& what) {
    std::snprintf(doing, sizeof doing, "%s: %s", function.c_str(), what.c_str());
}

}  // namespace catena::testing
