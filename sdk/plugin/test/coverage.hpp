// Writes the coverage page from reports, in Markdown: a row for each function, a column for each check.
#pragma once

#include <catena/testing/report.hpp>

#include <map>

namespace catena::testing {

inline std::string coverage_page(const std::vector<Report>& reports) {
    std::map<std::string, std::size_t> notes;  // why not applicable -> number of the note
    std::vector<std::string> in_order;
    const auto cell = [&](const Report::Entry& e) -> std::string {
        if (e.verdict == Verdict::passed) return "✓";
        if (e.verdict == Verdict::failed) return "**✗**";
        const auto [note, added] = notes.try_emplace(e.text, notes.size() + 1);
        if (added) in_order.push_back(e.text);
        return "–" + std::to_string(note->second);
    };
    std::string table = "| function | examples |";
    std::string line = "|---|---|";
    for (const CheckInfo& c : check_infos) {
        if (&c == &info(Check::example)) continue;
        table += std::string(" ") + c.name + " |";
        line += ":-:|";
    }
    table += "\n" + line + "\n";
    for (const Report& r : reports) {
        table += "| `" + r.function() + "`" + (r.internal ? " *" : "") + " | " +
                 (r.examples > 0 ? std::to_string(r.examples) : "found") + " |";
        for (std::size_t i = 0; i < n_checks; ++i)
            if (const Check c = static_cast<Check>(i); c != Check::example)
                table += " " + cell(r[c]) + " |";
        table += "\n";
    }
    std::string page =
        "# Conformance\n\n"
        "This page shows for every function the results of its conformance test: ✓ passed, **✗** "
        "failed, – not applicable, with the number of the reason in the notes below. The test "
        "calls each function with the examples in its description. Functions marked * are parts of "
        "other functions' gradients.\n\n" +
        table + "\n## Checks\n\n| check | what passes |\n|---|---|\n";
    for (const CheckInfo& c : check_infos)
        if (&c != &info(Check::example))
            page += std::string("| ") + c.name + " | " + c.doc + " |\n";
    page += "\n## Notes\n\n";
    for (std::size_t i = 0; i < in_order.size(); ++i)
        page += std::to_string(i + 1) + ". " + in_order[i] + "\n";
    return page;
}

}  // namespace catena::testing
