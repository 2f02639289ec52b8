// Curves: results of a training as a table in a file and as a plot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace catena {

// Rows of numbers with named columns; the first column is the time, such as "epoch" or "step".
// Every add() rewrites the files, so they are always complete.
//
//   Curves curves({"epoch", "train loss", "test loss", "test accuracy"},
//                 "curves.csv", "curves.svg");
//   curves.add({epoch, train.mean("loss"), test.mean("loss"), test.mean("accuracy")});
class Curves {
public:
    // table: NAME.csv, or NAME.jsonl for a JSON object per line. plot: NAME.svg. Either may be
    // empty. Throws DataError for other names, InvalidError for fewer than two columns, duplicate
    // columns, and names with commas, quotes or control characters, or that are not UTF-8.
    Curves(std::vector<std::string> columns, std::filesystem::path table,
           std::filesystem::path plot = {});

    // Loads the rows of an earlier run up to `last`, for a resumed training; none if the file does
    // not exist. Throws DataError if the file contains another table.
    void resume(double last);
    // Adds a row with a number for each column; NaN means none. Throws ShapeError, DataError.
    void add(std::vector<double> row);

    const std::vector<std::vector<double>>& rows() const noexcept { return rows_; }
    std::string to_csv() const;
    std::string to_jsonl() const;
    // Columns whose names end in the same word share a panel: "train loss" and "test loss".
    std::string to_svg() const;

private:
    void write() const;

    std::vector<std::string> columns_;
    std::filesystem::path table_, plot_;
    std::vector<std::vector<double>> rows_;
};

}  // namespace catena
