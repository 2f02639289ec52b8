// Curves: the plot, a panel for each quantity.
#include <catena/curves.hpp>

#include <fmt/format.h>
#include <boost/algorithm/string/replace.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace catena {
namespace {

// All lengths are pixels.
constexpr double panel_width = 420, panel_height = 280;
constexpr double left = 62, right = 14, top = 34, bottom = 44;
constexpr const char* colours[] = {"#1f77b4", "#d62728", "#2ca02c",
                                   "#9467bd", "#ff7f0e", "#17becf"};

struct Panel {
    std::string quantity;  // what the columns' names end in
    std::vector<std::size_t> columns;
};

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::string escaped(std::string text) {
    boost::replace_all(text, "&", "&amp;");
    boost::replace_all(text, "<", "&lt;");
    boost::replace_all(text, ">", "&gt;");
    return text;
}

// An axis with marks at round numbers.
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
        // Marks have to be numbers of their own.
        constexpr double most = 1e300;
        low = std::clamp(low, -most, most);
        high = std::clamp(high, -most, most);
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

class Drawing {
public:
    Drawing(double x, const std::vector<std::string>& names,
            const std::vector<std::vector<double>>& rows)
        : x0_(x), names_(names), rows_(rows) {}

    std::string draw(const Panel& panel) {
        for (const auto& row : rows_) {
            across_.see(row[0]);
            for (const std::size_t column : panel.columns) up_.see(row[column]);
        }
        across_.round(std::ranges::all_of(
            rows_, [](const auto& row) { return row[0] == std::floor(row[0]); }));
        up_.round(false);
        std::string svg =
            fmt::format("<text x=\"{:.1f}\" y=\"18\" font-weight=\"bold\">{}</text>\n", x0_ + left,
                        escaped(panel.quantity));
        for (int i = 0; i <= up_.marks(); ++i) svg += grid_line(up_.low + i * up_.step);
        for (int i = 0; i <= across_.marks(); ++i) svg += mark(across_.low + i * across_.step);
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                           x0_ + (left + panel_width - right) / 2, panel_height - 8,
                           escaped(names_[0]));
        for (std::size_t i = 0; i < panel.columns.size(); ++i) svg += line(panel, i);
        return svg + legend(panel);
    }

private:
    double x(double value) const {
        return x0_ + left + across_.share(value) * (panel_width - left - right);
    }
    double y(double value) const {
        return panel_height - bottom - up_.share(value) * (panel_height - top - bottom);
    }

    std::string grid_line(double value) const {
        const double shown = std::abs(value) < up_.step * 1e-9 ? 0 : value;
        return fmt::format(
            "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\"/>"
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
            x0_ + left, y(value), x0_ + panel_width - right, x0_ + left - 6, y(value) + 4, shown);
    }
    std::string mark(double value) const {
        return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n",
                           x(value), panel_height - bottom + 16, value);
    }
    std::string line(const Panel& panel, std::size_t i) const {
        const std::size_t column = panel.columns[i];
        const char* colour = colours[i % std::size(colours)];
        std::string path, dots;
        bool pen_down = false;
        for (const auto& row : rows_) {
            if (!std::isfinite(row[column])) {
                pen_down = false;
                continue;
            }
            path += fmt::format("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', x(row[0]), y(row[column]));
            if (rows_.size() <= 60)
                dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>",
                                    x(row[0]), y(row[column]), colour);
            pen_down = true;
        }
        return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>{}\n",
                           path, colour, dots);
    }
    // Above the lines, each name in the colour of its own.
    std::string legend(const Panel& panel) const {
        std::string names;
        for (std::size_t i = 0; i < panel.columns.size(); ++i)
            names +=
                fmt::format("<tspan dx=\"10\" fill=\"{}\">{}</tspan>",
                            colours[i % std::size(colours)], escaped(names_[panel.columns[i]]));
        return fmt::format("<text x=\"{:.1f}\" y=\"18\" text-anchor=\"end\">{}</text>\n",
                           x0_ + panel_width - right, names);
    }

    double x0_;
    const std::vector<std::string>& names_;
    const std::vector<std::vector<double>>& rows_;
    Axis across_, up_;
};

}  // namespace

std::string Curves::to_svg() const {
    std::vector<Panel> panels;
    for (std::size_t i = 1; i < columns_.size(); ++i) {
        const std::string quantity = last_word(columns_[i]);
        auto found = std::ranges::find(panels, quantity, &Panel::quantity);
        if (found == panels.end()) found = panels.insert(found, {quantity, {}});
        found->columns.push_back(i);
    }
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n",
        panel_width * static_cast<double>(panels.size()), panel_height);
    for (std::size_t i = 0; i < panels.size(); ++i)
        svg += Drawing(panel_width * static_cast<double>(i), columns_, rows_).draw(panels[i]);
    return svg + "</svg>\n";
}

}  // namespace catena
