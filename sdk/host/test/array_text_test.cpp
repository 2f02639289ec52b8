// Tests of arrays and variables as text.
#include <catena/array_text.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <sstream>

using namespace catena;

TEST_CASE("arrays are printed in rows") {
    CHECK(to_string(Array::from<double>({1, 2.5, 10, -4}, {2, 2})) ==
          "array([[ 1  ,  2.5],\n"
          "       [10  , -4  ]], shape=(2, 2), float64, cpu:0)");
    CHECK(to_string(
              Array::from<std::int64_t>({1, -20, 3, 9007199254740993, 5, 6, 7, 8}, {2, 2, 2})) ==
          "array([[[               1,              -20],\n"
          "        [               3, 9007199254740993]],\n"
          "\n"
          "       [[               5,                6],\n"
          "        [               7,                8]]], shape=(2, 2, 2), int64, cpu:0)");
    CHECK(to_string(Array::from<bool>({true, false}, {2, 1})) ==
          "array([[ true],\n       [false]], shape=(2, 1), bool, cpu:0)");
    CHECK(to_string(Array::from<double>({1e10, 0.5}, {2, 1})) ==
          "array([[1e+10],\n       [  0.5]], shape=(2, 1), float64, cpu:0)");
    CHECK(to_string(Array()) == "array(none)");
    CHECK(to_string(Array::full({}, 2.5)) == "array(2.5, shape=(), float32, cpu:0)");
    CHECK(to_string(Array::zeros({0, 3})) == "array([], shape=(0, 3), float32, cpu:0)");
    CHECK(to_string(Array::zeros({2, 0})) == "array([], shape=(2, 0), float32, cpu:0)");
    std::ostringstream out;
    out << Array::ones({1, 2});
    CHECK(out.str() == "array([[1, 1]], shape=(1, 2), float32, cpu:0)");
    CHECK(to_string(Variable()) == "variable(none)");
    Variable named(Array::ones({2, 1}));
    named.set_name("w");
    CHECK(to_string(named) ==
          "variable(w, array([[1],\n"
          "                   [1]], shape=(2, 1), float32, cpu:0))");
    out.str("");
    out << named << ' ' << Parameter(2, {}) << ' ' << Shape{2, 3} << ' ' << Dtype::int64 << ' '
        << named.device() << ' ' << Device();
    CHECK(out.str() == to_string(named) +
                           " variable(array(2, shape=(), float32, cpu:0)) (2, 3) int64 cpu:0 "
                           "device(none)");
}

TEST_CASE("a long array shows its ends") {
    CHECK(to_string(Array::full({2000}, 7)) ==
          "array([7, 7, 7, ..., 7, 7, 7], shape=(2000,), float32, cpu:0)");
    CHECK(to_string(Array::zeros({5, 300})) ==
          "array([[0, 0, 0, ..., 0, 0, 0],\n"
          "       [0, 0, 0, ..., 0, 0, 0],\n"
          "       [0, 0, 0, ..., 0, 0, 0],\n"
          "       [0, 0, 0, ..., 0, 0, 0],\n"
          "       [0, 0, 0, ..., 0, 0, 0]], shape=(5, 300), float32, cpu:0)");
    CHECK(
        to_string(Array::zeros({1000, 2})).find("       [0, 0],\n       ...,\n       [0, 0],\n") !=
        std::string::npos);
    CHECK(to_string(Array::zeros({1000})).find("...") == std::string::npos);
    CHECK(to_string(Array::from<double>({1, -0.5, 1e10}, {3})) ==
          "array([1, -0.5, 1e+10], shape=(3,), float64, cpu:0)");
}
