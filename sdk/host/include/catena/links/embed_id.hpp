// EmbedID: an embedding, which maps each id to a vector.
#pragma once

#include <catena/link.hpp>

namespace catena::links {

// y = the rows of W for the ids in x: x has any shape, int32 or int64, and y has shape x.shape +
// (out_size,). Calls throw ValueError for ids outside 0 .. in_size - 1; unlike in NumPy, negative
// ids do not count from the end.
// Parameter: W (in_size, out_size), drawn from N(0, 1). New links live on the thread's current
// device, in float32. Throws ShapeError for sizes below 1, PluginError if no plugin has
// catena.embed_id.
class EmbedID : public Link {
public:
    EmbedID(std::int64_t in_size, std::int64_t out_size);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
};

}  // namespace catena::links
