// Curves: numbers of a training as a table in a file, and as a plot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena {

// Rows of numbers under names, the first of which says when: "epoch", "step". Every add() writes the files
// anew, so that they are always whole.
//
//     Curves curves({"epoch", "train loss", "test loss", "test accuracy"}, "curves.csv", "curves.svg");
//     curves.add({epoch, train.mean("loss"), test.mean("loss"), test.mean("accuracy")});
class Curves {
public:
    // table: NAME.csv, or NAME.jsonl for a JSON object in each line; plot: NAME.svg; either may be empty.
    // Throws DataError for other names, InvalidError for fewer than two columns, for one twice, and for
    // columns with commas, quotes or control characters in their names, or not in UTF-8.
    Curves(std::vector<std::string> columns, std::filesystem::path table,
           std::filesystem::path plot = {});

    // What a table of an earlier run says up to `last`, for a training that goes on from there; nothing if
    // there is no such file. Throws DataError if it is another table.
    void resume(double last);
    // A number for each column; NaN where there is none. Throws ShapeError, DataError.
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
