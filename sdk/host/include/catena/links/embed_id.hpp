// EmbedID: a vector for each id.
#pragma once

#include <catena/link.hpp>

namespace catena::links {

// y = the rows of W that the ids in x name: x of any shape, int32 or int64, y of shape
// x.shape + (out_size,). Calls throw ValueError for ids outside 0 .. in_size - 1: unlike in
// NumPy, negative ids do not count from the end.
// Parameter: W (in_size, out_size), drawn from N(0, 1). New links live on the thread's current
// device, in float32. Throws ShapeError for sizes below 1, PluginError if no plugin has
// catena.embed_id.
class EmbedID : public Link {
public:
    EmbedID(std::int64_t in_size, std::int64_t out_size);

    Variable operator()(const Variable& x) override;
    void visit(Visitor& visitor) override { visitor("W", W); }

    Variable W;
};

}  // namespace catena::links
