// Formats results as Markdown and JSON.
#include "table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace catena_bench {
namespace {

std::string show(const Result& result, const std::vector<double>& seconds) {
    if (seconds.empty()) return "-";
    const double s = median(seconds);
    if (result.comparison->memory) return fmt::format("{:.1f} MiB", s / (1 << 20));
    if (result.flops > 0) return fmt::format("{:.0f} GFLOP/s", result.flops / s * 1e-9);
    if (s < 1e-6) return fmt::format("{:.0f} ns", s * 1e9);
    if (s < 1e-4) return fmt::format("{:.2f} µs", s * 1e6);
    return fmt::format("{:.3f} ms", s * 1e3);
}

using Row = std::array<std::string, 6>;

std::size_t width(const std::string& text) {  // in UTF-8 characters
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string lay_out(const std::vector<Row>& rows) {
    std::array<std::size_t, 6> widths{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string text;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t i = 0; i < widths.size(); ++i) {
            const std::string pad(widths[i] - width(rows[r][i]), ' ');
            text += i == 0 ? "| " + rows[r][i] + pad + " |" : " " + pad + rows[r][i] + " |";
        }
        text += '\n';
        if (r > 0) continue;
        for (std::size_t i = 0; i < widths.size(); ++i) {
            const std::string line(widths[i], '-');
            text += i == 0 ? "|-" + line + "-|" : "-" + line + ":|";
        }
        text += '\n';
    }
    return text;
}

}  // namespace

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::optional<double> Result::ratio() const {
    if (ours.empty() || theirs.empty()) return {};
    const double times = median(ours) / median(theirs);
    return comparison->rate ? 1 / times : times;
}

bool Result::ok() const {
    if (!goal) return true;
    const auto r = ratio();
    return r && !disturbed && (comparison->rate ? *r >= *goal : *r <= *goal);
}

std::string to_table(const std::vector<Result>& results) {
    std::string text;
    for (std::size_t i = 0; i < results.size();) {
        const Comparison& comparison = *results[i].comparison;
        std::vector<Row> rows{{"work", comparison.ours, comparison.peer, "ratio", "goal", "ok"}};
        for (; i < results.size() && results[i].comparison == &comparison; ++i) {
            const Result& r = results[i];
            const auto ratio = r.ratio();
            const char* relation = comparison.rate ? "≥" : "≤";
            const std::string way = r.way.empty() ? "" : ", " + r.way;
            rows.push_back({r.work, show(r, r.ours), show(r, r.theirs) + way,
                            ratio ? fmt::format("{:.2f}", *ratio) : "-",
                            r.goal ? fmt::format("{} {:.2f}", relation, *r.goal) : "",
                            r.disturbed       ? "disturbed"
                            : r.goal && ratio ? (r.ok() ? "yes" : "no")
                                              : ""});
        }
        text += (text.empty() ? "" : "\n") + lay_out(rows);
    }
    return text;
}

std::string to_json(const std::vector<Result>& results, int threads, double block) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Result& r : results) {
        nlohmann::ordered_json row{{"work", r.work}, {"peer", r.comparison->peer}};
        const std::string unit = r.comparison->memory ? "_bytes" : "_seconds";
        row["catena" + unit] = r.ours;
        row["peer" + unit] = r.theirs;
        row["flops"] = r.flops;
        if (!r.way.empty()) row["peer_way"] = r.way;
        if (const auto ratio = r.ratio()) row["ratio"] = *ratio;
        if (r.goal) {
            row["goal"] = *r.goal;
            row["ok"] = r.ok();
        }
        row["disturbed"] = r.disturbed;
        row["ratio_of"] = r.comparison->memory ? "bytes" : r.comparison->rate ? "rates" : "times";
        if (!r.failure.empty()) row["failure"] = r.failure;
        rows.push_back(std::move(row));
    }
    return nlohmann::ordered_json{{"threads", threads}, {"block_seconds", block}, {"works", rows}}
               .dump(2) +
           '\n';
}

}  // namespace catena_bench
