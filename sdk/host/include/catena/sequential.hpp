// ChainList and Sequential: links of any type in a row.
#pragma once

#include <catena/function_set.hpp>

namespace catena {

// Links by number, for a Chain that calls them. Paths start with "0", "1" and so on. As with every
// link, copies share the parameters; deep_copy() makes new ones.
//
//     ChainList layers{links::Linear(2, 8), links::Linear(8, 8)};
//     for (Link& layer : layers) h = F::relu(layer(h));
class ChainList : public Link {
public:
    using Child = FunctionSet::Child;
    class Iterator {
    public:
        explicit Iterator(const Child* at) : at_(at) {}
        Link& operator*() const { return at_->link(); }
        Iterator& operator++() {
            ++at_;
            return *this;
        }
        bool operator==(const Iterator&) const = default;

    private:
        const Child* at_;
    };

    ChainList() = default;
    ChainList(std::initializer_list<Child> links) : children_(links) {}

    // Returns the list's link, which stays in place when more are appended.
    Link& append(Child child);
    // Negative numbers count from the end. Throws InvalidError if there is no such link.
    Link& operator[](std::int64_t i) const;
    // The same with its actual type. Throws InvalidError if it has another type.
    template <std::derived_from<Link> L>
    L& get(std::int64_t i) const {
        return detail::link_as<L>("ChainList", std::to_string(i), (*this)[i]);
    }
    std::size_t size() const noexcept { return children_.size(); }
    Iterator begin() const { return Iterator(children_.data()); }
    Iterator end() const { return Iterator(children_.data() + size()); }

    void visit(Visitor& visitor) override;

protected:
    std::vector<Child> children_;
};

// Calls links and functions one after the other. Paths number the links: "0/W", "0/b", "1/W".
//
//     Sequential model{links::Linear(784, 100), F::relu, links::Linear(100, 10)};
//     y = model(x);
class Sequential : public ChainList {
public:
    // A link of any type, or a function of a variable. Functions with more parameters need a
    // lambda: [](const Variable& x) { return F::dropout(x, 0.5); }. Captured links stay outside.
    class Step : public Child {
    public:
        using Child::Child;
        Step(Variable (*function)(const Variable&));  // NOLINT: a step is a function
        template <class F>
            requires(std::is_invocable_r_v<Variable, const F&, const Variable&> &&
                     !std::derived_from<F, Link>)
        Step(F function)  // NOLINT: as above
            : Step(Function(std::move(function)), 0) {}

    private:
        using Function = std::function<Variable(const Variable&)>;
        Step(Function function, int);
    };

    Sequential() = default;
    Sequential(std::initializer_list<Step> steps);

    Link& append(Step step) { return ChainList::append(std::move(step)); }
    // Appends the steps of another one. Links stay shared.
    void extend(const Sequential& steps);
    // Returns a Sequential of n deep copies of this one, which start with equal values.
    Sequential repeat(std::int64_t n) const;

    // Throws the errors of the steps.
    Variable operator()(const Variable& x) const override;
};

}  // namespace catena
