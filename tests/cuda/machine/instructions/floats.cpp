// Floating point arithmetic and approximations.
#include "lanes.hpp"

namespace catena_machine::MACHINE_ISA {
namespace {

template <class T>
T smaller(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
template <class T>
T larger(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float root(float a) { return __builtin_sqrtf(a); }
inline double root(double a) { return __builtin_sqrt(a); }

// Runs the handler in another rounding mode of the CPU.
template <Handler run, int mode>
void rounded(Warp& w, const Instruction& in) {
    std::fesetround(mode);
    run(w, in);
    std::fesetround(FE_TONEAREST);
}

// The approximations of the hardware: the exact value is moved by one unit in the last place, up or
// down, as a hash of the operand says. The manual allows as much or more. Exact results of
// simple operands stay: 2 to a whole number, for one, on which NVIDIA's own library relies.
inline float approximate(double exact, u32 operand) {
    const float x = static_cast<float>(exact);
    if (static_cast<double>(x) == exact || x != x || __builtin_isinf(x) || x == 0) return x;
    const u32 bits = std::bit_cast<u32>(x);
    const u32 h = (operand * 2654435761u) >> 30;
    return std::bit_cast<float>(h == 0 ? bits + 1 : h == 1 ? bits - 1 : bits);
}
enum class Function { ex2, lg2, rcp, sqrt, rsqrt, sin, cos, tanh };
template <Function f, bool flushes>
float approximation(float x) {
    if (flushes) x = flushed(x);
    const u32 bits = std::bit_cast<u32>(x);
    const double wide = x;
    double y = 0;
    if constexpr (f == Function::ex2) y = ::exp2(wide);
    if constexpr (f == Function::lg2) y = ::log2(wide);
    if constexpr (f == Function::rcp) y = 1 / wide;
    if constexpr (f == Function::sqrt) y = __builtin_sqrt(wide);
    if constexpr (f == Function::rsqrt) y = 1 / __builtin_sqrt(wide);
    if constexpr (f == Function::sin) y = ::sin(wide);
    if constexpr (f == Function::cos) y = ::cos(wide);
    if constexpr (f == Function::tanh) y = ::tanh(wide);
    const float r = approximate(y, bits);
    return flushes ? flushed(r) : r;
}
// Only the upper 32 bits of the operand and of the result count.
template <Function f>
double upper_half(double x) {
    constexpr u64 upper = 0xffffffff00000000;
    double wide = std::bit_cast<double>(std::bit_cast<u64>(x) & upper);
    if (__builtin_fabs(wide) < std::numeric_limits<double>::min())
        wide = __builtin_copysign(0.0, wide);
    double r = f == Function::rcp ? 1 / wide : 1 / __builtin_sqrt(wide);
    if (r != r) return std::bit_cast<double>(u64{0x7fffffff00000000});
    if (__builtin_fabs(r) < std::numeric_limits<double>::min()) r = __builtin_copysign(0.0, r);
    return std::bit_cast<double>(std::bit_cast<u64>(r) & upper);
}
inline float quotient(float a, float b) {
    return approximate(static_cast<double>(a) / b, std::bit_cast<u32>(a) ^ std::bit_cast<u32>(b));
}
// Division by huge numbers gives 0, or NaN for an infinity.
inline float quotient_by_reciprocal(float a, float b) {
    const float size = __builtin_fabsf(b);
    if (size > 0x1p126f && size < std::numeric_limits<float>::infinity())
        return a * __builtin_copysignf(0.0f, b);
    return quotient(a, b);
}

// Adds a function for each rounding mode, whose letter takes the place of `?` in the name.
template <auto f>
void add_rounded(Table& t, const char* name) {
    constexpr Handler run = &Each<f>::run;
    const auto put = [&](char letter, Handler handler) {
        char text[16];
        __builtin_strcpy(text, name);
        *__builtin_strchr(text, '?') = letter;
        Each<f>::add(t, text, handler);
    };
    put('n', run);
    put('z', &rounded<run, FE_TOWARDZERO>);
    put('m', &rounded<run, FE_DOWNWARD>);
    put('p', &rounded<run, FE_UPWARD>);
}

template <class T>
void add_float(Table& t) {
    constexpr auto plus = [](T a, T b) { return a + b; };
    constexpr auto minus = [](T a, T b) { return a - b; };
    constexpr auto times = [](T a, T b) { return a * b; };
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    add<plus>(t, "add.$");
    add<minus>(t, "sub.$");
    add<times>(t, "mul.$");
    add_rounded<plus>(t, "add.r?.$");
    add_rounded<minus>(t, "sub.r?.$");
    add_rounded<times>(t, "mul.r?.$");
    add_rounded<[](T a, T b) { return a / b; }>(t, "div.r?.$");
    add_rounded<[](T a, T b, T c) { return fused(a, b, c); }>(t, "fma.r?.$");
    add_rounded<[](T a) { return T(1) / a; }>(t, "rcp.r?.$");
    add_rounded<[](T a) { return root(a); }>(t, "sqrt.r?.$");
    add<[](T a) { return -a; }>(t, "neg.$");
    add<[](T a) { return std::fabs(a); }>(t, "abs.$");
    add<smaller<T>>(t, "min.$");
    add<larger<T>>(t, "max.$");
    add<[](T a, T b) { return a != a || b != b ? nan : smaller(a, b); }>(t, "min.NaN.$");
    add<[](T a, T b) { return a != a || b != b ? nan : larger(a, b); }>(t, "max.NaN.$");
    add<[](T a, T b) { return std::copysign(b, a); }>(t, "copysign.$");
    add<[](T a) { return static_cast<u8>(std::isfinite(a)); }>(t, "testp.finite.$");
}

template <Function f>
void add_approximation(Table& t, const char* plain, const char* ftz) {
    add<approximation<f, false>>(t, plain);
    add<approximation<f, true>>(t, ftz);
}

}  // namespace

void fill_floats(Table& t) {
    add_float<float>(t), add_float<double>(t);
    add_approximation<Function::ex2>(t, "ex2.approx.f32", "ex2.approx.ftz.f32");
    add_approximation<Function::lg2>(t, "lg2.approx.f32", "lg2.approx.ftz.f32");
    add_approximation<Function::rcp>(t, "rcp.approx.f32", "rcp.approx.ftz.f32");
    add_approximation<Function::sqrt>(t, "sqrt.approx.f32", "sqrt.approx.ftz.f32");
    add_approximation<Function::rsqrt>(t, "rsqrt.approx.f32", "rsqrt.approx.ftz.f32");
    add_approximation<Function::sin>(t, "sin.approx.f32", "sin.approx.ftz.f32");
    add_approximation<Function::cos>(t, "cos.approx.f32", "cos.approx.ftz.f32");
    add<approximation<Function::tanh, false>>(t, "tanh.approx.f32");
    add<quotient_by_reciprocal>(t, "div.approx.f32");
    add<quotient>(t, "div.full.f32");
    add<[](float a, float b) { return flushed(quotient_by_reciprocal(flushed(a), flushed(b))); }>(
        t, "div.approx.ftz.f32");
    add<[](float a, float b) { return flushed(quotient(flushed(a), flushed(b))); }>(
        t, "div.full.ftz.f32");
    add<upper_half<Function::rcp>>(t, "rcp.approx.ftz.f64");
    add<upper_half<Function::rsqrt>>(t, "rsqrt.approx.ftz.f64");
    add<[](double x) { return 1 / __builtin_sqrt(x); }>(t, "rsqrt.approx.f64");
}

}  // namespace catena_machine::MACHINE_ISA
