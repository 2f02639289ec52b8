// Values that are allowed and seldom.
#include "garbage.hpp"

#include <catena/testing/attributes.hpp>
#include <testing/functions.hpp>
#include <testing/types.hpp>

#include <limits>
#include <map>

namespace catena::check {

using plugin::value_of;
using testing::Array;
using testing::Dims;
using testing::Example;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

void set_clamped(Array& a, std::int64_t i, double value) {
    testing::detail::with_type(a.dtype(), [&]<class T>(T) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            constexpr auto low = std::numeric_limits<T>::min(),
                           high = std::numeric_limits<T>::max();
            a.data<T>()[i] = value != value                       ? T(0)
                             : value <= static_cast<double>(low)  ? low
                             : value >= static_cast<double>(high) ? high
                                                                  : static_cast<T>(value);
        } else {
            a.set(i, value);
        }
    });
}

std::int64_t Garbage::whole(const catena_attr_spec& spec) {
    std::vector<std::int64_t> list = {-17, -3, -2, -1, 0, 0, 1, 1, 2, 3, 4, 7, 16, 17, 65, 255};
    for (const int power : {30, 31, 32, 62}) list.push_back(std::int64_t{1} << power);
    for (const std::int64_t n : {least, least + 1, most, std::int64_t{INT32_MAX},
                                 -(std::int64_t{1} << 62), -(std::int64_t{1} << 32)})
        list.push_back(n);
    if ((spec.flags & CATENA_ATTR_RANGED) != 0) {
        list.insert(list.end(), 3, spec.lo.v.i);
        list.insert(list.end(), 3, spec.hi.v.i);
    }
    return one_of(list);
}

double Garbage::real(const catena_attr_spec& spec) {
    std::vector<double> list = {-inf, inf,  NAN,    0,     -0.0,   1,     -1,   0.5,       2,
                                3,    1e-3, 5e-324, 1e308, -1e308, 1e-30, 1e30, 1 + 1e-12, 0.1};
    if ((spec.flags & CATENA_ATTR_RANGED) != 0) {
        list.insert(list.end(), 3, spec.lo.v.f);
        list.insert(list.end(), 3, spec.hi.v.f);
    }
    return one_of(list);
}

void Garbage::attribute(const catena_attr_spec& spec, testing::OwnedAttrs& attrs) {
    static const std::vector<std::size_t> lengths = {0, 1, 1, 2, 2, 3, 4, 5, 16, 17, 1000};
    static const std::vector<std::string> words = {
        "", " ", "%s%n", "\n", "\xc3\xa4", "none", "\"", std::string(10000, 'x')};
    const auto try_value = [&](const auto& value) {
        const catena_value v = value_of(value);
        if (!testing::detail::refused(spec, v).empty()) return false;
        attrs.set(spec.name, v);
        return true;
    };
    for (int i = 0; i < 100; ++i) {  // until the schema allows it
        bool done = false;
        switch (spec.kind) {
            case CATENA_ATTR_INT: done = try_value(whole(spec)); break;
            case CATENA_ATTR_FLOAT: done = try_value(real(spec)); break;
            case CATENA_ATTR_BOOL: done = try_value(chance(2)); break;
            case CATENA_ATTR_DTYPE: done = try_value(dtype()); break;
            case CATENA_ATTR_STRING: {
                std::vector<std::string> list = words;
                if (spec.choices != nullptr) list.clear();
                for (const char* const* c = spec.choices; c != nullptr && *c != nullptr; ++c)
                    list.emplace_back(*c);
                const std::string word = one_of(list);
                done = try_value(word.c_str());
                break;
            }
            case CATENA_ATTR_INTS: {
                Dims list(one_of(lengths));
                for (std::int64_t& n : list) n = whole(spec);
                done = try_value(plugin::Ints(list));
                break;
            }
            default: {
                std::vector<double> list(one_of(lengths));
                for (double& d : list) d = real(spec);
                done = try_value(plugin::Floats(list));
            }
        }
        if (done) return;
    }
}

Example Garbage::attributes(const catena_function& f, const Example& from) {
    Example e = from;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i)
        if (!chance(3)) attribute(*f.attrs[i], e.attrs);
    return e;
}

Dims Garbage::shape(const Dims& from, bool wild) {
    static const std::vector<std::int64_t> extents = {
        0, 1, 2, 3, 7, 255, 65536, (1LL << 31) - 1, 1LL << 31, (1LL << 32) + 1, 1LL << 62, most};
    Dims shape = from;
    const std::int64_t change = pick(0, 5);
    if (change == 0) shape.resize(static_cast<std::size_t>(pick(0, wild ? CATENA_MAX_NDIM : 5)), 2);
    if (change == 1) shape.push_back(1);
    if (shape.size() > CATENA_MAX_NDIM) shape.resize(CATENA_MAX_NDIM);
    for (std::int64_t& d : shape) {
        if (!chance(3)) continue;
        d = wild ? one_of(extents) : pick(0, 9);
    }
    return shape;
}

Example Garbage::shapes(const catena_function& f, const Example& from, bool wild) {
    Example e = from;
    const bool alike = chance(2);  // inputs of the same shape stay so
    std::map<Dims, Dims> same;
    for (Example::Input& in : e.inputs) {
        if (!in.present) continue;
        Dims& to = same[in.shape];
        if (!alike || to.empty()) to = shape(in.shape, wild);
        in.shape = to;
    }
    if (e.inputs.empty()) return e;
    const std::uint32_t last = testing::detail::input_flags(f, f.n_inputs - 1);
    if ((last & CATENA_PORT_VARIADIC) != 0 && chance(4))
        e.inputs.resize(static_cast<std::size_t>(pick(f.n_inputs, 70)), e.inputs.back());
    for (std::size_t i = 0; i < e.inputs.size(); ++i)
        if ((testing::detail::input_flags(f, i) & CATENA_PORT_OPTIONAL) != 0 && chance(3))
            e.inputs[i].present = !e.inputs[i].present;
    return e;
}

catena_dtype Garbage::dtype() {
    using namespace testing;
    static const std::vector<catena_dtype> all = {
        dtype_of<float>(),         dtype_of<double>(),        dtype_of<Float16>(),
        dtype_of<BFloat16>(),      dtype_of<std::int8_t>(),   dtype_of<std::int16_t>(),
        dtype_of<std::int32_t>(),  dtype_of<std::int64_t>(),  dtype_of<std::uint8_t>(),
        dtype_of<std::uint16_t>(), dtype_of<std::uint32_t>(), dtype_of<std::uint64_t>(),
        dtype_of<bool>()};
    return one_of(all);
}

Array Garbage::numbers(const Example::Input& in, catena_dtype dtype) {
    Array a = testing::detail::draw(in, dtype, static_cast<unsigned>(engine_()));
    if (!chance(3)) return a;
    static const std::vector<double> list = {NAN,   inf, -inf, -1,    0,    1e30, -1e30,
                                             1e-40, 1e5, 127,  65504, 3e38, -2,   0.5};
    const bool all = chance(4);
    for (std::int64_t i = 0; i < a.size(); ++i)
        if (all || chance(4)) set_clamped(a, i, one_of(list));
    return a;
}

}  // namespace catena::check
