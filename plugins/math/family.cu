// math.cuda.catena, table of contents: arithmetic, comparisons, elementary functions, sums and products.
#include "arithmetic.hpp"
#include "comparisons.hpp"
#include "constants.hpp"
#include "elementary.hpp"
#include "matmul.cuh"
#include "sum.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.math.cuda", "0.1.0", Abs, Add, AddConstant, Div, DivFromConstant, Equal,
              Exp, Greater, GreaterEqual, Log, Matmul, Maximum, Minimum, Mul, MulConstant, Neg, Pow,
              PowConstVar, PowVarConst, Sqrt, Sub, SubFromConstant, Sum, Where);
