// Operators on variables, as in NumPy: with variables (broadcasting) and with numbers on either side.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

Variable operator+(const Variable& x0, const Variable& x1);
Variable operator-(const Variable& x0, const Variable& x1);
Variable operator*(const Variable& x0, const Variable& x1);
Variable operator/(const Variable& x0, const Variable& x1);
Variable pow(const Variable& x0, const Variable& x1);

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

}  // namespace catena
