// Saving and loading of state as .npz files, which NumPy reads too.
#pragma once

#include <catena/visitor.hpp>

#include <filesystem>

namespace catena {

// Saves everything that object names in visit(): "l1/W". Works for links, optimizers, minibatches,
// and for whatever names several of them as its parts:
//
//     struct Training : Visitable { ... void visit(Visitor& v) override { v("model", model)... } };
//     save_npz("snapshot.npz", training);
//
// The file is written under a temporary name, flushed and renamed: a crash leaves the old or the new
// one. bfloat16 is saved as raw two-byte values. What has several names is saved under each. Throws
// DataError, InvalidError if a name is given twice.
void save_npz(const std::filesystem::path& file, const Visitable& object);

// Throws DataError if save_npz() could not write this file: to ask before long work, not after it.
void require_writable(const std::filesystem::path& file);

// Loads what save_npz() saved of an object of the same structure. Throws DataError, and changes
// nothing, if the file is unreadable, a name is missing or left over, or shapes, dtypes or required
// values differ; the text names all that is wrong. Of several names of the same values one is enough,
// and more must agree. Values are written into the arrays that are
// there: parameters stay the same variables on the same devices.
void load_npz(const std::filesystem::path& file, Visitable& object);

}  // namespace catena
