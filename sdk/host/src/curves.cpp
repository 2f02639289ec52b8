// Curves: the table.
#include <catena/core/tables.hpp>
#include <catena/curves.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/text.hpp>
#include <catena/write_file.hpp>

#include <parse_json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

namespace catena {
namespace {

using Row = std::vector<double>;
constexpr double none = std::numeric_limits<double>::quiet_NaN();

bool is_jsonl(const std::filesystem::path& file) { return file.extension() == ".jsonl"; }

[[noreturn]] void bad_curves(const std::filesystem::path& file, const std::string& expected,
                             const std::string& got) {
    catena::fail<DataError>("[Curves] {}: expected {}, got {}", file.string(), expected, got);
}

// Any program reads it in the first line of a table.
bool is_plain(const std::string& name) {
    const auto odd = [](unsigned char c) { return c < ' ' || c == ',' || c == '"' || c == 0x7f; };
    return !name.empty() && std::ranges::none_of(name, odd) && is_utf8(name);
}

std::string header_of(const std::vector<std::string>& columns) {
    return fmt::format("{}", fmt::join(columns, ","));
}

Row from_csv(const std::filesystem::path& file, const std::string& line) {
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

Row from_json(const std::filesystem::path& file, const std::string& line,
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

}  // namespace

Curves::Curves(std::vector<std::string> columns, std::filesystem::path table,
               std::filesystem::path plot)
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

}  // namespace catena
