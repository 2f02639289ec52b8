// Reductions whose elements are split over blocks, as they are for few results of many elements;
// and of no elements.
#include "both.hpp"

#include <cmath>

namespace {

constexpr std::int64_t rows = 600, columns = 17;  // reduced in splits of 300 rows

struct Cell {
    std::int64_t row;
    double value;
};
class Columns {
public:
    // Integers, so that elements are equal, or real numbers.
    Columns(double low, double high, bool integers = true)
        : x_(Array::random<double>({rows, columns}, 1, low, high).numbers()) {
        for (double& v : x_) v = integers ? std::floor(v) : v;
    }
    void fill(std::int64_t column, double value, const std::vector<Cell>& cells) {
        for (std::int64_t row = 0; row < rows; ++row) at(row, column) = value;
        plant(column, cells);
    }
    void plant(std::int64_t column, const std::vector<Cell>& cells) {
        for (const Cell& c : cells) at(c.row, column) = c.value;
    }
    template <class T>
    Array array() const {
        return Array::from<double>(x_, {rows, columns}).to(plugin::dtype_of<T>());
    }

private:
    double& at(std::int64_t row, std::int64_t column) {
        return x_[static_cast<std::size_t>(row * columns + column)];
    }
    std::vector<double> x_;
};

// Columns in which one split or several have the elements that decide.
template <class T>
Array deciding() {
    Columns x(std::is_unsigned_v<T> ? 0 : -3, 4);
    x.fill(0, 0, {});
    x.fill(1, 0, {{599, 1}});
    x.fill(2, 0, {{7, 1}});
    x.fill(3, 1, {});
    x.fill(4, 1, {{300, 0}});
    x.fill(5, 2, {{299, 3}, {300, 3}});
    x.fill(6, 2, {{590, 3}, {310, 3}});
    x.fill(7, 2, {{300, 1}, {299, 1}, {40, 1}});
    if constexpr (std::is_integral_v<T>) {
        Array y = x.array<T>();
        for (std::int64_t row = 0; row < rows; ++row) {
            T* const last = y.template data<T>() + row * columns + 8;
            last[0] = std::numeric_limits<T>::min();
            last[1] = std::numeric_limits<T>::max();
        }
        return y;
    } else {
        x.fill(8, -inf, {});
        x.fill(9, inf, {});
        x.fill(10, -inf, {{550, -3}});
        x.fill(11, 1, {{599, no_number}});
        x.fill(12, 0, {{20, inf}, {320, no_number}, {350, no_number}});
        x.fill(13, 1, {{100, no_number}, {599, -inf}});
        x.fill(14, 0, {{0, inf}, {599, -inf}});
        x.fill(15, 0, {{0, no_number}, {599, no_number}});
        return x.array<T>();
    }
}
// Columns whose products are neither 0 nor infinite, and some whose are. Products of integers are
// odd, modulo 2^64.
template <class T>
Array factors() {
    const bool integers = std::is_integral_v<T>;
    Columns x(integers ? 0 : 0.99, integers ? 6 : 1.01, integers);
    Array y = x.array<T>();
    for (std::int64_t i = 0; integers && i < y.size(); ++i)
        y.set(i, 2 * y.at(i) + (std::is_signed_v<T> ? -5 : 1));
    const auto plant = [&](std::int64_t column, const std::vector<Cell>& cells) {
        for (const Cell& c : cells) y.set(c.row * columns + column, c.value);
    };
    plant(1, {{599, 0}});
    plant(2, {{7, 0}});
    if (integers) return y;
    plant(3, {{7, -1}, {310, -1}, {599, -1}});
    plant(4, {{7, 0}, {599, no_number}});
    plant(5, {{7, inf}, {599, 0}});
    plant(6, {{7, -1}, {599, inf}});
    return y;
}

Attrs along(std::size_t axis) {
    static constexpr std::int64_t all[] = {0, 1};
    return {plugin::set("axis", plugin::Ints(all + axis, 1))};
}

}  // namespace

TEST_CASE_TEMPLATE("splits: extremes and their places, of equal elements and NaN", T, float, double,
                   Float16, BFloat16, std::int32_t, std::int64_t, std::uint8_t) {
    const Array x = deciding<T>();
    for (const char* name : {"catena.max", "catena.min"})
        check_both<T>(name, {x}, along(0), !std::is_integral_v<T>);
    for (const char* name : {"catena.argmax", "catena.argmin"})
        check_both<T>(name, {x}, along(0), false);
}

TEST_CASE_TEMPLATE("splits: any and all", T, float, double, Float16, BFloat16, std::int32_t,
                   std::int64_t, bool) {
    for (const char* name : {"catena.any", "catena.all"})
        check_both<T>(name, {deciding<T>()}, along(0), false);
}

TEST_CASE_TEMPLATE("splits: products", T, float, double, Float16, BFloat16, std::int32_t,
                   std::int64_t, std::uint8_t, bool) {
    check_both<T>("catena.prod", {factors<T>()}, along(0), false);
}

TEST_CASE_TEMPLATE("splits: means, variances, sums of exponentials", T, float, double, Float16,
                   BFloat16) {
    for (const char* name : {"catena.mean", "catena.var", "catena.logsumexp"}) {
        check_both<T>(name, {deciding<T>()}, along(0), false);
        check_both<T>(name, {draw<T>({rows, columns}, 1)}, along(0),
                      std::string_view(name) != "catena.mean");
    }
}

TEST_CASE_TEMPLATE("splits: sums", T, float, double, Float16, BFloat16) {
    check_both<T>("catena.sum", {draw<T>({rows, columns}, 1)}, along(0));
}

TEST_CASE("splits: of rows, of axes between others, more than the threads that join them") {
    const auto check = [](const Array& x, const Attrs& attrs, bool add) {
        for (const char* name : {"catena.max", "catena.mean", "catena.var", "catena.logsumexp"})
            check_both<float>(name, {x}, attrs, false, add);
        check_both<float>("catena.argmin", {x}, attrs, false);
    };
    check(draw<float>({2, 16400}, 1), along(1), false);
    check(draw<float>({2, 1040, 9}, 1), along(1), true);
    check(draw<float>({2600, 17}, 1), along(0), false);  // 10 splits, joined by 8 threads
    // Of splits 1 and 8, equal ones, the thread of splits 0 and 8 joins 8 first.
    Array x = Array::constant({2600, 17}, plugin::dtype_of<float>(), 0);
    for (const std::int64_t row : {270, 2090})
        for (const std::int64_t column : {0, 16})
            x.set(row * 17 + column, column == 0 ? 1 : no_number);
    for (const char* name : {"catena.max", "catena.argmax", "catena.argmin"})
        check_both<float>(name, {x}, along(0), false);
}

TEST_CASE_TEMPLATE("reductions without elements, and without results", T, float, double, Float16) {
    for (const char* name : {"catena.mean", "catena.var", "catena.logsumexp", "catena.prod",
                             "catena.any", "catena.all"}) {
        check_both<T>(name, {draw<T>({3, 0}, 1)}, along(1), false);
        check_both<T>(name, {draw<T>({0, 3}, 1)}, along(1), false);
    }
    for (const char* name : {"catena.max", "catena.min", "catena.argmax", "catena.argmin"}) {
        CHECK_THROWS(world().forward(name, {draw<T>({3, 0}, 1)}, along(1), on("cuda")));
        check_both<T>(name, {draw<T>({0, 3}, 1)}, along(1), false);
        check_both<T>(name, {draw<T>({0, 0}, 1)}, along(1), false);
    }
}
