// math.cuda.catena, table of contents: arithmetic, comparisons, elementary functions, sums and products.
#include "abs.hpp"
#include "add.hpp"
#include "add_constant.hpp"
#include "div.hpp"
#include "div_from_constant.hpp"
#include "equal.hpp"
#include "exp.hpp"
#include "greater.hpp"
#include "greater_equal.hpp"
#include "log.hpp"
#include "matmul.cuh"
#include "maximum.hpp"
#include "minimum.hpp"
#include "mul.hpp"
#include "mul_constant.hpp"
#include "neg.hpp"
#include "pow.hpp"
#include "pow_const_var.hpp"
#include "pow_var_const.hpp"
#include "sqrt.hpp"
#include "sub.hpp"
#include "sub_from_constant.hpp"
#include "sum.cuh"
#include "where.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.math.cuda", "0.1.0", Abs, Add, AddConstant, Div, DivFromConstant, Equal,
              Exp, Greater, GreaterEqual, Log, Matmul, Maximum, Minimum, Mul, MulConstant, Neg, Pow,
              PowConstVar, PowVarConst, Sqrt, Sub, SubFromConstant, Sum, Where);
