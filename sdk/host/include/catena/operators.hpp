// Operators on variables and on arrays, as in NumPy: with their like (broadcasting) and with numbers
// on either side. Each is one registered function; on arrays it records no graph.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

Variable operator+(const Variable& x0, const Variable& x1);
Variable operator-(const Variable& x0, const Variable& x1);
Variable operator*(const Variable& x0, const Variable& x1);
Variable operator/(const Variable& x0, const Variable& x1);
Variable pow(const Variable& x0, const Variable& x1);
// The product of two matrices.
Variable dot(const Variable& a, const Variable& b);

Variable operator-(const Variable& x);
inline Variable operator+(const Variable& x) { return x; }

Variable operator+(const Variable& x, double c);
Variable operator*(const Variable& x, double c);
Variable operator-(double c, const Variable& x);
Variable operator/(double c, const Variable& x);
Variable pow(const Variable& x, double c);
Variable pow(double c, const Variable& x);

inline Variable operator+(double c, const Variable& x) { return x + c; }
inline Variable operator*(double c, const Variable& x) { return x * c; }
inline Variable operator-(const Variable& x, double c) { return x + -c; }
inline Variable operator/(const Variable& x, double c) { return x * (1 / c); }

// x becomes the result: a new variable; other handles to the old one keep it. An empty x counts as
// zero, so that a loss can be summed from Variable().
inline Variable& operator+=(Variable& x, const Variable& y) { return x = x ? x + y : y; }

Array operator+(const Array& x0, const Array& x1);
Array operator-(const Array& x0, const Array& x1);
Array operator*(const Array& x0, const Array& x1);
Array operator/(const Array& x0, const Array& x1);
Array pow(const Array& x0, const Array& x1);
Array dot(const Array& a, const Array& b);

Array operator-(const Array& x);
inline Array operator+(const Array& x) { return x; }

Array operator+(const Array& x, double c);
Array operator*(const Array& x, double c);
Array operator-(double c, const Array& x);
Array operator/(double c, const Array& x);
Array pow(const Array& x, double c);
Array pow(double c, const Array& x);

inline Array operator+(double c, const Array& x) { return x + c; }
inline Array operator*(double c, const Array& x) { return x * c; }
inline Array operator-(const Array& x, double c) { return x + -c; }
inline Array operator/(const Array& x, double c) { return x * (1 / c); }

// Masks: 1 where it holds, else 0, in the arrays' dtype. F::where() chooses by one; F::equal() is
// the comparison for which arrays, being handles, have no operator.
Array operator>(const Array& x0, const Array& x1);
Array operator>=(const Array& x0, const Array& x1);
Array operator>(const Array& x, double c);
Array operator>=(const Array& x, double c);
Array operator<(const Array& x, double c);
Array operator<=(const Array& x, double c);

inline Array operator<(const Array& x0, const Array& x1) { return x1 > x0; }
inline Array operator<=(const Array& x0, const Array& x1) { return x1 >= x0; }
inline Array operator>(double c, const Array& x) { return x < c; }
inline Array operator>=(double c, const Array& x) { return x <= c; }
inline Array operator<(double c, const Array& x) { return x > c; }
inline Array operator<=(double c, const Array& x) { return x >= c; }

}  // namespace catena
