// Link: a part of a net that owns parameters, or a net made of such parts.
#pragma once

#include <catena/cuda/device.hpp>
#include <catena/visitor.hpp>

namespace catena {

// A parameter and its path in the link that listed it.
struct NamedParameter {
    std::string name;
    Variable variable;
};

// Returns the list with each variable once, under its first name, because parameters may be shared.
// Throws InvalidError if different variables have the same name, or if one is neither a Parameter
// nor a leaf that requires a gradient; such a leaf becomes a parameter.
std::vector<NamedParameter> each_once(std::vector<NamedParameter> parameters);

// A class lists its parameters and children in visit(); everything else follows from that:
//
//     struct Mlp : Chain {
//         links::Linear l1{784, 100}, l2{100, 10};
//         void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
//         Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
//     };
//
// Trainable variables are declared as `Parameter W;` and listed like a child: `v("W", W)`. A
// Parameter can be combined with volatile variables. Parameters are shared handles: a copy of a
// link has the same parameters, and a net may contain both (tied weights). deep_copy() makes a link
// with new parameters. Not thread-safe.
class Link : public Visitable {
public:
    // Calls the link. A class overrides the const operator, so that const links can be called, or
    // the other one if a call changes the link. Throws UnsupportedError if the class overrides
    // neither, because its calls take other arguments (it has its own operators), or if the link is
    // const and the class overrides only the non-const operator.
    virtual Variable operator()(const Variable& x) const;
    virtual Variable operator()(const Variable& x);  // calls the const operator

    // Parameters with their paths, in the order of visit(). Shared ones are listed once, under the
    // first path. Throws InvalidError if different parameters have the same path.
    std::vector<NamedParameter> collect_parameters() const;
    std::vector<Variable> parameters() const;
    // The gradients of the parameters; an array is empty if there is no gradient.
    std::vector<Array> gradients() const;
    // The number of elements of all parameters.
    std::int64_t count_parameters() const;

    void cleargrads() const;  // removes the gradients
    void zerograds() const;   // sets the gradients to zeros
    // Adds the gradients of another link with the same parameters, which may be on another device.
    // Throws ShapeError, and changes nothing, if numbers, shapes or dtypes differ.
    void add_gradients(const Link& source) const;

    // Copies other values into these parameters, in the order of parameters(). Devices may differ.
    // Throws ShapeError, and changes nothing, if numbers, shapes or dtypes differ.
    void copy_parameters_from(const Link& source) const;
    void copy_parameters_from(std::span<const Variable> source) const;
    void copy_parameters_from(std::span<const Array> source) const;

    // Moves parameters, gradients and persistent values to a device, or converts the floating ones
    // to a dtype, and returns this link. Parameters stay the same variables, and shared ones stay
    // shared; arrays that were taken from them before do not change. An optimizer moves its state
    // to the new device automatically. After a change of dtype, call its setup() again. On errors
    // nothing changes: DtypeError unless dtype is floating, GraphError if a graph uses a parameter.
    Link& to(Device device);
    Link& to(Dtype dtype);
    // Moves to the given GPU, or to the host. cuda::to_gpu(link) and cuda::to_cpu(link) return the
    // link's own type. Also throws the errors of cuda::get_gpu().
    Link& to_gpu(const cuda::DeviceLike& device = {});
    Link& to_cpu();

protected:
    Link() = default;
    Link(const Link&) = default;
    Link& operator=(const Link&) = default;

private:
    template <std::derived_from<Link> L>
    friend L deep_copy(const L& link);
    void unshare();
};

// A link made of links: another name for Link.
using Chain = Link;

// A copy with the same values that shares nothing with the original. Gradients are not copied. A
// parameter with two names in the original is also shared in the copy.
template <std::derived_from<Link> L>
L deep_copy(const L& link) {
    L copy(link);
    copy.unshare();
    return copy;
}

}  // namespace catena
