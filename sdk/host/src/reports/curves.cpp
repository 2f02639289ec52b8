// Curves: writes the table, and the plot with a panel for each quantity.
#include <catena/core/tables.hpp>
#include <catena/curves.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/text.hpp>
#include <catena/write_file.hpp>

#include <boost/algorithm/string/replace.hpp>
#include <parse_json.hpp>

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

namespace catena {
namespace fs = std::filesystem;
namespace {

using Row = std::vector<double>;
constexpr double none = std::numeric_limits<double>::quiet_NaN();

bool is_jsonl(const fs::path& file) { return file.extension() == ".jsonl"; }

[[noreturn]] void bad_curves(const fs::path& file, const std::string& expected,
                             const std::string& got) {
    catena::fail<DataError>("[Curves] {}: expected {}, got {}", file.string(), expected, got);
}

// Whether the name is a nonempty UTF-8 text that needs no quotes in the header of a CSV table.
bool is_plain(const std::string& name) {
    const auto odd = [](unsigned char c) { return c < ' ' || c == ',' || c == '"' || c == 0x7f; };
    return !name.empty() && std::ranges::none_of(name, odd) && is_utf8(name);
}

std::string header_of(const std::vector<std::string>& columns) {
    return fmt::format("{}", fmt::join(columns, ","));
}

Row from_csv(const fs::path& file, const std::string& line) {
    Row row;
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) {
        double value = none;
        const char* end = cell.data() + cell.size();
        const auto [stop, error] = std::from_chars(cell.data(), end, value);
        if (!cell.empty() && (error != std::errc() || stop != end))
            bad_curves(file, "numbers", beginning(cell));
        row.push_back(value);
    }
    return row;
}

Row from_json(const fs::path& file, const std::string& line,
              const std::vector<std::string>& columns) {
    const auto json = parse_json(line);
    Row row;
    for (const std::string& column : columns) {
        if (!json.is_object() || !json.contains(column))
            bad_curves(file, "a row with " + column, beginning(line));
        const auto& value = json[column];
        row.push_back(value.is_number() ? value.get<double>() : none);
    }
    return row;
}

// Lengths are in pixels.
constexpr double panel_width = 420, plot_height = 202;
constexpr double left = 62, right = 14, title_y = 18, legend_step = 15, bottom = 44;
constexpr double room = panel_width - left - right;
constexpr double character = 7;  // an upper estimate of its width
constexpr const char* colours[] = {"#1f77b4", "#d62728", "#2ca02c",
                                   "#9467bd", "#ff7f0e", "#17becf"};

struct Panel {
    std::string quantity;  // last word of the columns' names
    std::vector<std::size_t> columns;
};

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::string svg_text(std::string text) {
    boost::replace_all(text, "&", "&amp;");
    boost::replace_all(text, "<", "&lt;");
    boost::replace_all(text, ">", "&gt;");
    return text;
}

// An axis with tick marks at round numbers.
struct Axis {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    double step = 1;

    void see(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void round(bool whole) {
        if (!(low <= high)) low = 0, high = 1;
        // Limits and widens the range, so that marks are finite and distinct.
        constexpr double limit = 1e300;
        low = std::clamp(low, -limit, limit);
        high = std::clamp(high, -limit, limit);
        const double largest = std::max(std::abs(low), std::abs(high));
        if (high - low < 1e-9 * std::max(1.0, largest)) {
            const double room = std::max(0.5, 1e-6 * largest);
            low -= room;
            high += room;
        }
        const double rough = (high - low) / 5;
        const double power = std::pow(10, std::floor(std::log10(rough)));
        for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
            step = factor * power;
            if (step >= rough) break;
        }
        if (whole) step = std::max(step, 1.0);
        low = std::floor(low / step + 1e-9) * step;
        high = std::ceil(high / step - 1e-9) * step;
    }
    double share(double value) const { return std::clamp((value - low) / (high - low), 0.0, 1.0); }
    int marks() const { return static_cast<int>(std::lround((high - low) / step)); }
};

// An attribute that narrows a text which would be wider than the plot.
std::string fit(double width) {
    return width <= room
               ? ""
               : fmt::format(" textLength=\"{:.0f}\" lengthAdjust=\"spacingAndGlyphs\"", room);
}

// The positions of the column names of a panel, below its title, in as many lines as they need.
struct Legend {
    struct Entry {
        double x, y, wanted;
    };
    std::vector<Entry> entries;
    double end = title_y + legend_step;  // the last line

    Legend(const Panel& panel, const std::vector<std::string>& names) {
        constexpr double gap = 14;
        double x = 0;
        for (const std::size_t column : panel.columns) {
            const double wanted = character * static_cast<double>(names[column].size());
            const double width = std::min(wanted, room);
            if (x > 0 && x + width > room) x = 0, end += legend_step;
            entries.push_back({x, end, wanted});
            x += width + gap;
        }
    }
};

// Returns the SVG of a panel whose left edge is at x0, with its plot from y = top on.
std::string draw(const Panel& panel, const Legend& legend, double x0, double top,
                 const std::vector<std::string>& names, const std::vector<Row>& rows) {
    const double panel_height = top + plot_height + bottom;
    Axis across, up;
    for (const Row& row : rows) {
        across.see(row[0]);
        for (const std::size_t column : panel.columns) up.see(row[column]);
    }
    across.round(
        std::ranges::all_of(rows, [](const Row& row) { return row[0] == std::floor(row[0]); }));
    up.round(false);
    const auto x = [&](double value) { return x0 + left + across.share(value) * room; };
    const auto y = [&](double value) {
        return panel_height - bottom - up.share(value) * (panel_height - top - bottom);
    };
    std::string svg = fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" font-weight=\"bold\"{}>{}</text>\n", x0 + left, title_y,
        fit(character * static_cast<double>(panel.quantity.size())), svg_text(panel.quantity));
    for (int i = 0; i <= up.marks(); ++i) {
        const double value = up.low + i * up.step;
        svg += fmt::format(
            "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\"/>"
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
            x0 + left, y(value), x0 + panel_width - right, x0 + left - 6, y(value) + 4,
            std::abs(value) < up.step * 1e-9 ? 0 : value);
    }
    const auto below = [&](double at, double height, const std::string& text) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", at,
                           height, text);
    };
    for (int i = 0; i <= across.marks(); ++i) {
        const double value = across.low + i * across.step;
        below(x(value), panel_height - bottom + 16, fmt::format("{:.6g}", value));
    }
    below(x0 + (left + panel_width - right) / 2, panel_height - 8, svg_text(names[0]));
    for (std::size_t i = 0; i < panel.columns.size(); ++i) {
        const std::size_t column = panel.columns[i];
        const char* colour = colours[i % std::size(colours)];
        std::string path, dots;
        char move = 'M';
        for (const Row& row : rows) {
            const bool gap = !std::isfinite(row[column]);
            if (!gap) path += fmt::format("{}{:.1f} {:.1f}", move, x(row[0]), y(row[column]));
            if (!gap && rows.size() <= 60)
                dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>",
                                    x(row[0]), y(row[column]), colour);
            move = gap ? 'M' : 'L';
        }
        svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>{}\n",
                           path, colour, dots);
        const Legend::Entry& entry = legend.entries[i];
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\"{}>{}</text>\n",
                           x0 + left + entry.x, entry.y, colour, fit(entry.wanted),
                           svg_text(names[column]));
    }
    return svg;
}

}  // namespace

Curves::Curves(std::vector<std::string> columns, fs::path table, fs::path plot)
    : columns_(std::move(columns)), table_(std::move(table)), plot_(std::move(plot)) {
    if (columns_.size() < 2)
        fail<InvalidError>("[Curves] columns: expected two or more, got {}", columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const std::string& name = columns_[i];
        if (!is_plain(name) || std::ranges::count(columns_, name) > 1)
            fail<InvalidError>(
                "[Curves] columns: expected names without commas and quotes, each once, got column "
                "{}",
                i);
    }
    if (!table_.empty() && !is_jsonl(table_) && table_.extension() != ".csv")
        bad_curves(table_, "a name that ends in .csv or .jsonl", "another");
    if (!plot_.empty() && plot_.extension() != ".svg")
        bad_curves(plot_, "a name that ends in .svg", "another");
    for (const auto& file : {table_, plot_}) {
        if (!file.empty()) require_writable(file);
    }
}

void Curves::resume(double last) {
    rows_.clear();
    std::ifstream in(table_);
    std::string line;
    if (table_.empty() || !in || (!is_jsonl(table_) && !std::getline(in, line))) return;
    if (!is_jsonl(table_) && line != header_of(columns_))
        bad_curves(table_, "columns " + header_of(columns_), line);
    while (std::getline(in, line)) {
        Row row = is_jsonl(table_) ? from_json(table_, line, columns_) : from_csv(table_, line);
        if (row.size() != columns_.size())
            bad_curves(table_, fmt::format("{} numbers", columns_.size()), line);
        if (row[0] <= last) rows_.push_back(std::move(row));
    }
}

void Curves::add(Row row) {
    if (row.size() != columns_.size())
        fail<ShapeError>("[Curves] row: expected {} numbers, got {}", columns_.size(), row.size());
    rows_.push_back(std::move(row));
    write();
}

void Curves::write() const {
    if (!table_.empty()) write_file(table_, is_jsonl(table_) ? to_jsonl() : to_csv());
    if (!plot_.empty()) write_file(plot_, to_svg());
}

std::string Curves::to_csv() const {
    std::string text = header_of(columns_) + '\n';
    for (const Row& row : rows_) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            line += (i > 0 ? "," : "") + (std::isfinite(row[i]) ? fmt::format("{}", row[i]) : "");
        text += line + '\n';
    }
    return text;
}

std::string Curves::to_jsonl() const {
    std::string text;
    for (const Row& row : rows_) {
        nlohmann::ordered_json json;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (std::isfinite(row[i])) json[columns_[i]] = row[i];
            else json[columns_[i]] = nullptr;
        }
        text += json.dump() + '\n';
    }
    return text;
}

std::string Curves::to_svg() const {
    std::vector<Panel> panels;
    for (std::size_t i = 1; i < columns_.size(); ++i) {
        const std::string quantity = last_word(columns_[i]);
        auto found = std::ranges::find(panels, quantity, &Panel::quantity);
        if (found == panels.end()) found = panels.insert(found, {quantity, {}});
        found->columns.push_back(i);
    }
    std::vector<Legend> legends;
    double top = 0;  // of the plots
    for (const Panel& panel : panels) {
        legends.emplace_back(panel, columns_);
        top = std::max(top, legends.back().end + 12);
    }
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n",
        panel_width * static_cast<double>(panels.size()), top + plot_height + bottom);
    for (std::size_t i = 0; i < panels.size(); ++i)
        svg +=
            draw(panels[i], legends[i], panel_width * static_cast<double>(i), top, columns_, rows_);
    return svg + "</svg>\n";
}

}  // namespace catena
