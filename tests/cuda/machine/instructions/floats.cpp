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

// Adds a function of one operand and More for each rounding mode.
template <auto f, class T, class... More>
void add_rounded(Table& t, const char* rn, const char* rz, const char* rm, const char* rp) {
    constexpr Handler run = [] {
        if constexpr (sizeof...(More) == 0) return &unary<f, T, T>;
        else if constexpr (sizeof...(More) == 1) return &binary<f, T, T, T>;
        else return &ternary<f, T, T, T, T>;
    }();
    const auto put = [&](const char* name, Handler h) {
        t.add(name, type_of<T>, h, {type_of<T>, type_of<T>, type_of<More>...});
    };
    put(rn, run);
    put(rz, &rounded<run, FE_TOWARDZERO>);
    put(rm, &rounded<run, FE_DOWNWARD>);
    put(rp, &rounded<run, FE_UPWARD>);
}

template <class T>
void add_float(Table& t) {
    constexpr auto plus = [](T a, T b) { return a + b; };
    constexpr auto minus = [](T a, T b) { return a - b; };
    constexpr auto times = [](T a, T b) { return a * b; };
    add<plus, T, T, T>(t, "add.$");
    add<minus, T, T, T>(t, "sub.$");
    add<times, T, T, T>(t, "mul.$");
    add_rounded<plus, T, T>(t, "add.rn.$", "add.rz.$", "add.rm.$", "add.rp.$");
    add_rounded<minus, T, T>(t, "sub.rn.$", "sub.rz.$", "sub.rm.$", "sub.rp.$");
    add_rounded<times, T, T>(t, "mul.rn.$", "mul.rz.$", "mul.rm.$", "mul.rp.$");
    add_rounded<[](T a, T b) { return a / b; }, T, T>(t, "div.rn.$", "div.rz.$", "div.rm.$",
                                                      "div.rp.$");
    add_rounded<[](T a, T b, T c) { return fused(a, b, c); }, T, T, T>(t, "fma.rn.$", "fma.rz.$",
                                                                       "fma.rm.$", "fma.rp.$");
    add_rounded<[](T a) { return T(1) / a; }, T>(t, "rcp.rn.$", "rcp.rz.$", "rcp.rm.$", "rcp.rp.$");
    add_rounded<[](T a) { return root(a); }, T>(t, "sqrt.rn.$", "sqrt.rz.$", "sqrt.rm.$",
                                                "sqrt.rp.$");
    add<[](T a) { return -a; }, T, T>(t, "neg.$");
    add<[](T a) { return std::fabs(a); }, T, T>(t, "abs.$");
    add<[](T a, T b) { return smaller(a, b); }, T, T, T>(t, "min.$");
    add<[](T a, T b) { return larger(a, b); }, T, T, T>(t, "max.$");
    add<[](T a, T b) {
        return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : smaller(a, b);
    },
        T, T, T>(t, "min.NaN.$");
    add<[](T a, T b) {
        return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : larger(a, b);
    },
        T, T, T>(t, "max.NaN.$");
    add<[](T a, T b) { return std::copysign(b, a); }, T, T, T>(t, "copysign.$");
    add<[](T a) { return static_cast<u8>(std::isfinite(a)); }, u8, T>(t, "testp.finite.$");
}

template <Function f>
void add_approximation(Table& t, const char* plain, const char* ftz) {
    add<[](float x) { return approximation<f, false>(x); }, float, float>(t, plain);
    add<[](float x) { return approximation<f, true>(x); }, float, float>(t, ftz);
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
    add<[](float x) { return approximation<Function::tanh, false>(x); }, float, float>(
        t, "tanh.approx.f32");
    add<&quotient_by_reciprocal, float, float, float>(t, "div.approx.f32");
    add<&quotient, float, float, float>(t, "div.full.f32");
    add<[](float a, float b) { return flushed(quotient_by_reciprocal(flushed(a), flushed(b))); },
        float, float, float>(t, "div.approx.ftz.f32");
    add<[](float a, float b) { return flushed(quotient(flushed(a), flushed(b))); }, float, float,
        float>(t, "div.full.ftz.f32");
    add<[](double x) { return upper_half<Function::rcp>(x); }, double, double>(
        t, "rcp.approx.ftz.f64");
    add<[](double x) { return upper_half<Function::rsqrt>(x); }, double, double>(
        t, "rsqrt.approx.ftz.f64");
    add<[](double x) { return 1 / __builtin_sqrt(x); }, double, double>(t, "rsqrt.approx.f64");
}

}  // namespace catena_machine::MACHINE_ISA
