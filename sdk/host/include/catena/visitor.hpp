// Visitor: links, optimizers and data list their state, so that it can be saved, moved and loaded.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

class Visitor;

// More epochs than any loop runs, but few enough that the number of steps does not overflow.
inline constexpr std::int64_t most_epochs = std::int64_t{1} << 31;

// A class with named state. An implementation lists every part once, in a fixed order:
//     void visit(Visitor& visitor) override { visitor("W", W)("b", b); }
class Visitable {
public:
    virtual ~Visitable() = default;
    virtual void visit(Visitor& visitor) = 0;

protected:
    Visitable() = default;
    Visitable(const Visitable&) = default;
    Visitable& operator=(const Visitable&) = default;
};

// Visits named state. References may be written to. Paths are names joined by '/': "l1/W".
class Visitor {
public:
    virtual ~Visitor() = default;

    // Trained by an optimizer. An empty one is skipped.
    Visitor& operator()(std::string_view name, Parameter& parameter);
    // For old code without Parameter: the first visit turns the leaf into a parameter. Throws
    // InvalidError if the variable is a result or does not require a gradient.
    [[deprecated("declare what a link learns as catena::Parameter")]] Visitor& operator()(
        std::string_view name, Variable& parameter);
    // Persistent values: saved and moved like parameters, not trained. Empty arrays are skipped.
    Visitor& operator()(std::string_view name, Array& value);
    // The same for running averages: Link::to(Dtype) only converts them to float32 or float64.
    Visitor& running(std::string_view name, Array& value);
    // A part of a larger array whose other parts belong to other processes: elements from `begin`
    // on, in row-major order, of an array with this shape; an empty handle if there are none.
    // Visitors that know no parts throw UnsupportedError.
    Visitor& part(std::string_view name, Array& value, std::int64_t begin, const Shape& whole);
    Visitor& operator()(std::string_view name, std::int64_t& value);
    Visitor& operator()(std::string_view name, std::uint64_t& value);
    Visitor& operator()(std::string_view name, double& value);
    // A number, such as a position in data. Loading rejects values outside [low, high].
    Visitor& within(std::string_view name, std::int64_t& value, std::int64_t low,
                    std::int64_t high);
    // A part whose names are prefixed with name and '/'.
    Visitor& operator()(std::string_view name, Visitable& part);
    // A number or text that must match when saved state is loaded, such as a size or a version.
    Visitor& require(std::string_view name, std::int64_t value);
    Visitor& require(std::string_view name, std::string_view value);
    // The same for a text that files of other programs lack. Loading such a file applies convert()
    // to the value `array`, which must be listed just before.
    using Convert = Array (*)(const Array& there);
    Visitor& require_or_convert(std::string_view name, std::string_view value,
                                std::string_view array, Convert convert);

protected:
    virtual void parameter(const std::string& /*path*/, Variable& /*value*/) {}
    virtual void array(const std::string& /*path*/, Array& /*value*/) {}
    virtual void running_array(const std::string& path, Array& value) { array(path, value); }
    virtual void array_part(const std::string& path, Array& value, std::int64_t begin,
                            const Shape& whole);
    virtual void integer(const std::string& /*path*/, std::int64_t& /*value*/) {}
    virtual void integer(const std::string& /*path*/, std::uint64_t& /*value*/) {}
    virtual void integer_within(const std::string& path, std::int64_t& value, std::int64_t /*low*/,
                                std::int64_t /*high*/) {
        integer(path, value);
    }
    virtual void real(const std::string& /*path*/, double& /*value*/) {}
    virtual void required(const std::string& /*path*/, std::int64_t /*value*/) {}
    virtual void required(const std::string& /*path*/, std::string_view /*value*/) {}
    virtual void required_or_converted(const std::string& path, std::string_view value,
                                       const std::string& /*array*/, Convert /*convert*/) {
        required(path, value);
    }
    virtual void nested(Visitable& part) { part.visit(*this); }

private:
    template <class Visit>
    Visitor& at(std::string_view name, const Visit& visit);
    std::string path_;
};

}  // namespace catena
