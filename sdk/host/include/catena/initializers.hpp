// Initializers: initial values of parameters.
#pragma once

#include <catena/core/array.hpp>

#include <concepts>

namespace catena {

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

}  // namespace catena

namespace catena::initializers {

// The base class. A call makes a new array of a floating dtype on the thread's current device.
// Random numbers come from that device's stream (catena::seed) and are computed on the host, so
// they are bit-identical on every machine and device.
class Initializer {
public:
    virtual ~Initializer() = default;
    virtual Array operator()(const Shape& shape, Dtype dtype = Dtype::float32) const = 0;
};

class Constant : public Initializer {
public:
    explicit Constant(double value) : value_(value) {}
    Array operator()(const Shape& shape, Dtype dtype = Dtype::float32) const override {
        return Array::full(shape, value_, dtype);
    }

private:
    double value_;
};

struct Zero : Constant {
    Zero() : Constant(0) {}
};
struct One : Constant {
    One() : Constant(1) {}
};

// While one exists, Random makes zeros on this thread, without random numbers, for loading:
//     const initializers::no_random_values loading;
class [[nodiscard]] no_random_values {
public:
    no_random_values() noexcept;
    ~no_random_values();
    no_random_values(const no_random_values&) = delete;
    no_random_values& operator=(const no_random_values&) = delete;

private:
    bool before_;
};

// A distribution with mean 0, whose width may depend on the number of inputs and outputs of each
// unit of a weight (out, in, kernel...). Calls throw InvalidError unless the scale is finite,
// ShapeError for fewer than two extents if the width depends on them.
class Random : public Initializer {
public:
    Array operator()(const Shape& shape, Dtype dtype = Dtype::float32) const final;

protected:
    enum class Kind : std::uint8_t { normal, uniform };
    enum class Fan : std::uint8_t { none, in, in_and_out };
    // The standard deviation, or a uniform's half width: scale * sqrt(gain / fan), or just scale.
    Random(Kind kind, double scale, Fan fan = Fan::none, double gain = 1)
        : kind_(kind), fan_(fan), scale_(scale), gain_(gain) {}

private:
    Kind kind_;
    Fan fan_;
    double scale_, gain_;
};

// N(0, scale^2)
struct Normal : Random {
    explicit Normal(double scale = 0.05) : Random(Kind::normal, scale) {}
};
// U[-scale, scale)
struct Uniform : Random {
    explicit Uniform(double scale = 0.05) : Random(Kind::uniform, scale) {}
};

// Standard deviation scale * sqrt(1 / in): the default of Linear and Convolution2D.
struct LeCunNormal : Random {
    explicit LeCunNormal(double scale = 1) : Random(Kind::normal, scale, Fan::in) {}
};
// Standard deviation scale * sqrt(2 / (in + out)), or half width scale * sqrt(6 / (in + out)).
struct GlorotNormal : Random {
    explicit GlorotNormal(double scale = 1) : Random(Kind::normal, scale, Fan::in_and_out, 2) {}
};
struct GlorotUniform : Random {
    explicit GlorotUniform(double scale = 1) : Random(Kind::uniform, scale, Fan::in_and_out, 6) {}
};
// Standard deviation scale * sqrt(2 / in): for layers before a ReLU.
struct HeNormal : Random {
    explicit HeNormal(double scale = 1) : Random(Kind::normal, scale, Fan::in, 2) {}
};

}  // namespace catena::initializers

namespace catena {

// The initial value of a parameter: a number, an initializer, or an array, which is copied and must
// have the parameter's shape. {} is the link's default.
class Initial {
public:
    Initial() = default;
    template <Number N>
    Initial(N value) : Initial(initializers::Constant(static_cast<double>(value))) {}  // NOLINT
    Initial(const Array& values);                                                      // NOLINT
    template <std::derived_from<initializers::Initializer> I>
    Initial(const I& initializer) : initializer_(std::make_shared<I>(initializer)) {}  // NOLINT

    explicit operator bool() const noexcept { return initializer_ != nullptr; }
    const Initial& otherwise(const Initial& other) const { return *this ? *this : other; }
    // An array keeps its dtype. Throws ShapeError if it has another shape.
    Array operator()(const Shape& shape, Dtype dtype = Dtype::float32) const {
        return (*initializer_)(shape, dtype);
    }

private:
    std::shared_ptr<const initializers::Initializer> initializer_;
};

}  // namespace catena
