// Arrays as text, in rows.
#include <catena/array_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace catena {
namespace {

constexpr std::int64_t most = 1000;  // elements that are all shown
constexpr std::int64_t edge = 3;     // of each axis, where there are more

// Numbers of matrices stand in columns: of one width, with their decimal points below each other
// unless one of them has an exponent.
class Rows {
public:
    Rows(const Array& array, std::size_t indent)
        : shape_(array.shape()),
          dtype_(array.dtype()),
          whole_(array.size() <= most),
          indent_(indent) {
        if (is_floating(dtype_)) reals_ = array.to_vector<double>();
        else integers_ = array.to_vector<std::int64_t>();
        if (shape_.ndim() < 2) return;
        bool exponents = false;
        std::size_t widest = 0;
        each(0, 0, [&](std::int64_t at) {
            const std::string text = number(at);
            const std::size_t point = std::min(text.find('.'), text.size());
            before_ = std::max(before_, point);
            behind_ = std::max(behind_, text.size() - point);
            widest = std::max(widest, text.size());
            exponents = exponents || (is_floating(dtype_) && text.find("e") != text.npos);
        });
        if (exponents) before_ = widest, behind_ = 0;
    }
    std::string text() const { return shape_.size() == 0 ? "[]" : row(0, 0); }

private:
    std::string number(std::int64_t at) const {
        const auto i = static_cast<std::size_t>(at);
        if (is_floating(dtype_)) return fmt::format("{:.6g}", reals_[i]);
        if (dtype_ == Dtype::bool8) return integers_[i] != 0 ? "true" : "false";
        return fmt::format("{}", integers_[i]);
    }
    // Whether the middle of the axis is left out.
    bool cut(int axis) const { return !whole_ && shape_[axis] > 2 * edge; }
    std::int64_t stride(int axis) const {
        std::int64_t n = 1;
        for (int d = axis + 1; d < shape_.ndim(); ++d) n *= shape_[d];
        return n;
    }
    // take(i) for what is shown of an axis, gap() for what is not.
    template <class Take, class Gap>
    void along(int axis, const Take& take, const Gap& gap) const {
        for (std::int64_t i = 0; i < shape_[axis]; ++i) {
            if (cut(axis) && i == edge) {
                gap();
                i = shape_[axis] - edge;
            }
            take(i);
        }
    }
    template <class Take>
    void each(int axis, std::int64_t at, const Take& take) const {
        if (axis == shape_.ndim()) return take(at);
        const std::int64_t step = stride(axis);
        along(
            axis, [&](std::int64_t i) { each(axis + 1, at + i * step, take); }, [] {});
    }
    std::string cell(std::int64_t at) const {
        const std::string text = number(at);
        if (behind_ == 0) return fmt::format("{:>{}}", text, before_);
        const std::size_t point = std::min(text.find('.'), text.size());
        return fmt::format("{:>{}}{:<{}}", text.substr(0, point), before_, text.substr(point),
                           behind_);
    }
    std::string row(int axis, std::int64_t at) const {
        if (axis == shape_.ndim()) return number(at);
        const bool last = axis + 1 == shape_.ndim();
        const std::int64_t step = stride(axis);
        // Rows begin on lines of their own; between matrices there is one empty line, and so on.
        const std::string separator =
            last ? ", "
                 : "," + std::string(static_cast<std::size_t>(shape_.ndim() - 1 - axis), '\n') +
                       std::string(indent_ + static_cast<std::size_t>(axis) + 1, ' ');
        std::string text = "[";
        const auto add = [&](const std::string& part) {
            if (text.size() > 1) text += separator;
            text += part;
        };
        along(
            axis,
            [&](std::int64_t i) { add(last ? cell(at + i * step) : row(axis + 1, at + i * step)); },
            [&] { add("..."); });
        return text + "]";
    }

    Shape shape_;
    Dtype dtype_;
    bool whole_;
    std::vector<double> reals_;  // or
    std::vector<std::int64_t> integers_;
    std::size_t indent_, before_ = 0, behind_ = 0;
};

}  // namespace

std::string to_string(const Array& array) {
    if (!array) return "array(none)";
    constexpr std::string_view head = "array(";
    return fmt::format("{}{}, shape={}, {}, {})", head, Rows(array, head.size()).text(),
                       to_string(array.shape()), name(array.dtype()), array.device().name());
}

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << to_string(array); }

std::string to_string(const Variable& variable) {
    if (!variable) return "variable(none)";
    const std::string& name = variable.name();
    std::string text = fmt::format("variable({}", name.empty() ? "" : name + ", ");
    const std::string indent = "\n" + std::string(text.size(), ' ');
    for (const char c : to_string(variable.data())) {  // rows stay below each other
        if (c == '\n') text += indent;
        else text += c;
    }
    return text + ")";
}

}  // namespace catena
