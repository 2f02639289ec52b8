// Initializers: initial values of parameters.
#pragma once

#include <catena/core/array.hpp>

#include <cstdint>

namespace catena::initializers {

// The number of inputs and outputs of each unit of a weight (out, in, kernel...). Throws ShapeError
// for fewer than two extents.
struct Fans {
    std::int64_t in;
    std::int64_t out;
};
Fans fans_of(const Shape& shape);

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
    Array operator()(const Shape& shape, Dtype dtype = Dtype::float32) const override;

private:
    double value_;
};

struct Zero : Constant {
    Zero() : Constant(0) {}
};
struct One : Constant {
    One() : Constant(1) {}
};

// A distribution with mean 0, whose width may depend on the shape. Calls throw InvalidError unless
// the scale is finite.
class Random : public Initializer {
public:
    Array operator()(const Shape& shape, Dtype dtype = Dtype::float32) const final;

protected:
    enum class Kind : std::uint8_t { normal, uniform };
    Random(Kind kind, double scale) : kind_(kind), scale_(scale) {}
    // The standard deviation (normal) or half width (uniform) for scale 1.
    virtual double width(const Shape&) const { return 1; }

private:
    Kind kind_;
    double scale_;
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
class LeCunNormal : public Random {
public:
    explicit LeCunNormal(double scale = 1) : Random(Kind::normal, scale) {}

private:
    double width(const Shape& shape) const override;
};

// Standard deviation scale * sqrt(2 / (in + out)), or half width scale * sqrt(6 / (in + out)).
class GlorotNormal : public Random {
public:
    explicit GlorotNormal(double scale = 1) : Random(Kind::normal, scale) {}

private:
    double width(const Shape& shape) const override;
};
class GlorotUniform : public Random {
public:
    explicit GlorotUniform(double scale = 1) : Random(Kind::uniform, scale) {}

private:
    double width(const Shape& shape) const override;
};

// Standard deviation scale * sqrt(2 / in): for layers before a ReLU.
class HeNormal : public Random {
public:
    explicit HeNormal(double scale = 1) : Random(Kind::normal, scale) {}

private:
    double width(const Shape& shape) const override;
};

}  // namespace catena::initializers
