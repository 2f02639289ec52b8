// Formats arrays and variables as text.
#include <catena/array_text.hpp>

#include <fmt/format.h>

#include <ostream>

namespace catena {
namespace {

constexpr std::int64_t most = 1000;  // arrays of at most this size are shown in full
constexpr std::int64_t edge = 3;     // else elements shown at each end of an axis

// Formats the elements of an array. In a matrix, numbers are padded to the same width, with aligned
// decimal points unless a number has an exponent.
class Rows {
public:
    Rows(const Array& array, std::size_t indent)
        : shape_(array.shape()),
          dtype_(array.dtype()),
          whole_(array.size() <= most),
          indent_(indent) {
        if (is_floating(dtype_)) reals_ = array.to_vector<double>();
        else integers_ = array.to_vector<std::int64_t>();
        if (shape_.ndim() >= 2) (void)text();
        if (exponents_) before_ = widest_, behind_ = 0;
        measures_ = false;
    }
    std::string text() { return shape_.size() == 0 ? "[]" : row(0, 0); }

private:
    std::string number(std::int64_t at) const {
        const auto i = static_cast<std::size_t>(at);
        if (is_floating(dtype_)) return fmt::format("{:.6g}", reals_[i]);
        if (dtype_ == Dtype::bool8) return integers_[i] != 0 ? "true" : "false";
        return fmt::format("{}", integers_[i]);
    }
    std::string cell(std::int64_t at) {
        const std::string text = number(at);
        const std::size_t point = std::min(text.find('.'), text.size());
        if (measures_) {
            before_ = std::max(before_, point);
            behind_ = std::max(behind_, text.size() - point);
            widest_ = std::max(widest_, text.size());
            exponents_ = exponents_ || (is_floating(dtype_) && text.find('e') != text.npos);
        }
        if (behind_ == 0) return fmt::format("{:>{}}", text, before_);
        return fmt::format("{:>{}}{:<{}}", text.substr(0, point), before_, text.substr(point),
                           behind_);
    }
    // Formats the axes from `axis` on, of the subarray with index `at` in row-major order.
    std::string row(int axis, std::int64_t at) {
        if (axis == shape_.ndim()) return cell(at);
        const int inner = shape_.ndim() - 1 - axis;
        // Each row starts on a new line; each further axis adds an empty line between its elements.
        const std::string separator =
            inner == 0 ? ", "
                       : "," + std::string(static_cast<std::size_t>(inner), '\n') +
                             std::string(indent_ + static_cast<std::size_t>(axis) + 1, ' ');
        std::string text = "[";
        for (std::int64_t i = 0; i < shape_[axis]; ++i) {
            if (i > 0) text += separator;
            if (!whole_ && i == edge && shape_[axis] > 2 * edge) {
                text += "..." + separator;
                i = shape_[axis] - edge;
            }
            text += row(axis + 1, at * shape_[axis] + i);
        }
        return text + "]";
    }

    Shape shape_;
    Dtype dtype_;
    bool whole_;
    std::vector<double> reals_;  // of floating dtypes; else integers_
    std::vector<std::int64_t> integers_;
    std::size_t indent_, before_ = 0, behind_ = 0, widest_ = 0;
    bool measures_ = true, exponents_ = false;
};

}  // namespace

std::string to_string(const Array& array) {
    if (!array) return "array(none)";
    constexpr std::string_view head = "array(";
    return fmt::format("{}{}, shape={}, {}, {})", head, Rows(array, head.size()).text(),
                       to_string(array.shape()), name(array.dtype()), array.device().name());
}

std::string to_string(const Variable& variable) {
    if (!variable) return "variable(none)";
    const std::string& name = variable.name();
    std::string text = fmt::format("variable({}", name.empty() ? "" : name + ", ");
    const std::string indent = "\n" + std::string(text.size(), ' ');
    for (const char c : to_string(variable.data())) {  // keeps the rows aligned
        if (c == '\n') text += indent;
        else text += c;
    }
    return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << to_string(array); }
std::ostream& operator<<(std::ostream& out, const Variable& variable) {
    return out << to_string(variable);
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) {
    return out << (device ? device.name() : "device(none)");
}

}  // namespace catena
