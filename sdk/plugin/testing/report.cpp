// Report: verdicts and texts.
#include "catena/testing/report.hpp"

#include <algorithm>
#include <cstdio>

namespace catena::testing {

char doing[256] = "";
void now_doing(const std::string& function, const std::string& what) {
    std::snprintf(doing, sizeof doing, "%s: %s", function.c_str(), what.c_str());
}

namespace {

constexpr std::size_t most_lines = 6;

// The position of a kernel's dtypes and instruction set, "float64 'x86-64-v3'" in label_of().
struct Variant {
    std::size_t begin = 0;
    std::size_t length = 0;  // 0: none
};
Variant variant_in(const std::string& text) {
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

std::string joined(const std::set<std::string>& parts, const char* between) {
    std::string list;
    for (const std::string& part : parts) list += (list.empty() ? "" : between) + part;
    return list;
}

}  // namespace

std::string detail::kind_of(const std::string& text) {
    const Variant variant = variant_in(text);
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

std::string Report::Line::all() const {
    if (others.empty()) return text;
    std::set<std::string> rows;
    std::set<std::string> isas;
    for (const std::string& other : others) {
        rows.insert(other.substr(0, other.find(' ')));
        isas.insert(other.substr(other.find(' ') + 1));
    }
    const std::size_t end = begin + length;
    return text.substr(0, end) + " (and " + std::to_string(others.size()) + " more, of " +
           joined(rows, " or ") + " for " + joined(isas, " or ") + ")" + text.substr(end);
}

void Report::pass(Check check) {
    if (!failed(check)) at(check) = {Verdict::passed, {}};
}
void Report::skip(Check check, const std::string& reason) {
    Entry& e = at(check);
    if (e.verdict <= Verdict::not_applicable) e = {Verdict::not_applicable, reason};
}
void Report::fail(Check check, const std::string& text) {
    std::vector<Line>& lines = lines_[static_cast<std::size_t>(check)];
    const Variant variant = variant_in(text);
    const std::string kind = detail::kind_of(text);
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.kind == kind; });
    if (same == lines.end()) {
        lines.push_back({kind, text, variant.begin, variant.length});
    } else if (variant.length > 0) {
        const std::string other = text.substr(variant.begin, variant.length);
        if (other != same->text.substr(same->begin, same->length) &&
            std::find(same->others.begin(), same->others.end(), other) == same->others.end())
            same->others.push_back(other);
    }
    Entry& e = at(check);
    e = {Verdict::failed, {}};
    for (std::size_t i = 0; i < lines.size() && i < most_lines; ++i)
        e.text += lines[i].all() + "\n";
}

void Report::finish(std::optional<Check> only) {
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

std::vector<std::string> Report::lines() const {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < n_checks; ++i) {
        if (!failed(static_cast<Check>(i))) continue;
        const std::string start = function_ + ": " + check_infos[i].name + ": ";
        for (std::size_t k = 0; k < lines_[i].size() && k < most_lines; ++k)
            result.push_back(start + lines_[i][k].all());
        if (lines_[i].size() > most_lines)
            result.push_back(start + std::to_string(lines_[i].size() - most_lines) + " more");
    }
    return result;
}
std::string Report::failures() const {
    std::string result;
    for (const std::string& line : lines()) result += line + "\n";
    return result;
}

}  // namespace catena::testing
