// Link: a part of a network that owns parameters, or a network made of such parts.
#pragma once

#include <catena/cuda/device.hpp>
#include <catena/visitor.hpp>

#include <concepts>
#include <span>
#include <string>
#include <vector>

namespace catena {

// A parameter and its path in the link it was listed from.
struct NamedParameter {
    std::string name;
    Variable variable;
};

// The list with each variable once, under the first of its names: parameters may be shared. Throws
// InvalidError if different variables have the same name, or one is neither a Parameter nor a leaf
// that takes gradients, which becomes one.
std::vector<NamedParameter> each_once(std::vector<NamedParameter> parameters);

// Names its parameters and children in visit(); all else follows from that:
//
//     struct Mlp : Chain {
//         links::Linear l1{784, 100}, l2{100, 10};
//         void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
//         Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
//     };
//
// What a link learns is declared as `Parameter W;` and named like a child: `v("W", W)`. A Parameter may
// meet volatile variables. Parameters are shared handles: a copy of a link has the same parameters,
// and a network may contain both (tied weights). deep_copy() makes a link with parameters of its
// own. Not thread-safe.
class Link : public Visitable {
public:
    // Calls the link. A class overrides the const operator, so that const links can be called, or the
    // other one if a call changes the link. Throws UnsupportedError if the class overrides neither,
    // because its calls do not take exactly one variable (it has operators of its own); also if the
    // link is const and its class overrides only the operator that is not.
    virtual Variable operator()(const Variable& x) const;
    virtual Variable operator()(const Variable& x);  // calls the const one

    // Parameters with their paths, in the order of visit(); shared ones once, under the first path.
    // Throws InvalidError if a path stands for different parameters.
    std::vector<NamedParameter> collect_parameters() const;
    std::vector<Variable> parameters() const;
    // Their gradients; none where backward() has not reached.
    std::vector<Array> gradients() const;
    // Number of elements in all parameters.
    std::int64_t count_parameters() const;

    void cleargrads() const;  // none
    void zerograds() const;   // zeros
    // Adds the gradients of another link of the same shape, which may be on another device. Throws
    // ShapeError, and changes nothing, if numbers, shapes or dtypes differ.
    void add_gradients(const Link& source) const;

    // Writes the values of others into these parameters, in the order of parameters(); devices may
    // differ. Throws ShapeError, and changes nothing, if numbers, shapes or dtypes differ.
    void copy_parameters_from(const Link& source) const;
    void copy_parameters_from(std::span<const Variable> source) const;
    void copy_parameters_from(std::span<const Array> source) const;

    // Moves parameters, their gradients and persistent values, or converts those that are floating,
    // and returns this link. Parameters stay the same variables, and shared ones stay shared; arrays
    // taken from them before do not change. An optimizer moves its state to the new device by itself;
    // after a change of dtype set it up anew. Throws, and changes nothing: DtypeError unless dtype
    // is floating, GraphError while a graph refers to a parameter that would change.
    Link& to(Device device);
    Link& to(Dtype dtype);
    // The same to the GPU that the argument names, and to the host. cuda::to_gpu(link) and
    // cuda::to_cpu(link) return the link's own type. Throws as cuda::get_gpu(), too.
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

// A link made of links. It adds nothing to Link but its name, for the reader.
using Chain = Link;

// A copy with the same values that shares nothing with the original; gradients are not copied. A
// parameter with two names in the original has both in the copy.
template <std::derived_from<Link> L>
L deep_copy(const L& link) {
    L copy(link);
    copy.unshare();
    return copy;
}

}  // namespace catena
