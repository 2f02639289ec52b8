// Parameter: a link that is a single trainable array.
#pragma once

#include <catena/link.hpp>

namespace catena::links {

// Called without arguments, it returns its variable. Parameter: W, which shares the array's memory.
// Throws DtypeError unless the array is floating.
class Parameter : public Link {
public:
    explicit Parameter(const Array& array) : W(array) {}

    using Link::operator();
    Variable operator()() const { return W; }
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
};

}  // namespace catena::links
