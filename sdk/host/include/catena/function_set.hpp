// FunctionSet: links by name, assembled at run time.
#pragma once

#include <catena/link.hpp>

#include <map>
#include <typeinfo>

namespace catena {
namespace detail {

[[noreturn]] void throw_wrong_kind(std::string_view set, std::string_view path,
                                   const std::type_info& expected, const Link& got);
template <std::derived_from<Link> L>
L& link_as(std::string_view set, std::string_view path, Link& found) {
    if (auto* link = dynamic_cast<L*>(&found)) return *link;
    throw_wrong_kind(set, path, typeid(L), found);
}

}  // namespace detail

// A set of links, sorted by name. Sets may be nested:
//
//     FunctionSet model{{"l1", links::Linear(784, 100)}, {"l2", links::Linear(100, 10)}};
//     y = model["l2"](F::relu(model["l1"](x)));
//
// As with every link, copies share the parameters; deep_copy() makes new ones.
class FunctionSet final : public Link {
public:
    // A link of any kind, taken by value.
    class Child {
    public:
        template <std::derived_from<Link> L>
        Child(L link)  // NOLINT: any link is a child
            : link_(std::make_unique<L>(std::move(link))), clone_([](const Link& from) {
                  return std::unique_ptr<Link>(new L(static_cast<const L&>(from)));
              }) {}
        Child(const Child& other) : link_(other.clone_(*other.link_)), clone_(other.clone_) {}
        Child(Child&&) noexcept = default;
        Child& operator=(Child other) noexcept {
            link_.swap(other.link_);
            std::swap(clone_, other.clone_);
            return *this;
        }
        ~Child() = default;
        Link& link() const noexcept { return *link_; }

    private:
        std::unique_ptr<Link> link_;
        std::unique_ptr<Link> (*clone_)(const Link&);
    };

    FunctionSet() = default;
    FunctionSet(std::initializer_list<std::pair<std::string_view, Child>> links);

    // Returns the set's link. Throws InvalidError if the name exists, is empty or contains '/'.
    Link& add(std::string_view name, Child child);
    // Returns the link with this name, "gpu0/l1" in a nested set. Throws InvalidError without one.
    Link& operator[](std::string_view path) const;
    // The same with its actual type. Throws InvalidError if it has another type.
    template <std::derived_from<Link> L>
    L& get(std::string_view path) const {
        return detail::link_as<L>("FunctionSet", path, (*this)[path]);
    }
    // Whether operator[] would find the path.
    bool contains(std::string_view path) const;
    std::size_t size() const noexcept { return children_.size(); }

    // The same as for every link, but they return the set, so it can be used inside another one:
    //
    //     FunctionSet model{{"gpu0", FunctionSet{{"l1", links::Linear(784, 1000)}}.to_gpu(0)},
    //                       {"gpu1", FunctionSet{{"l1", links::Linear(784, 1000)}}.to_gpu(1)}};
    FunctionSet& to_gpu(const cuda::DeviceLike& device = {}) &;
    FunctionSet to_gpu(const cuda::DeviceLike& device = {}) &&;
    FunctionSet& to_cpu() &;
    FunctionSet to_cpu() &&;

    void visit(Visitor& visitor) override;

private:
    std::map<std::string, Child, std::less<>> children_;
};

}  // namespace catena
