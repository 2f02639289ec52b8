// Saving and loading of state as .npz files, which NumPy and Chainer read too, and as .safetensors.
#pragma once

#include <catena/visitor.hpp>
#include <catena/write_file.hpp>

#include <filesystem>
#include <string_view>

namespace catena {

// Saves everything that object names in visit(): "l1/W". Works for links, optimizers, minibatches,
// and for whatever names several of them as its parts:
//
//     struct Training : Visitable { ... void visit(Visitor& v) override { v("model", model)... } };
//     save_npz("snapshot.npz", training);
//
// The file is written under a temporary name, flushed and renamed: a crash leaves the old or the new
// one, and the next save takes away what was left over. bfloat16 is saved as raw two-byte values in
// .npz. What has several names is saved under each. save_snapshot() makes a .safetensors file where
// the name ends so, an .npz file else. Throws DataError, InvalidError if a name is given twice.
//
// Links and optimizers have the names of Chainer 7, whose serializers.load_npz() reads the files, with
// path="model/" for a part; and the other way round.
void save_npz(const std::filesystem::path& file, const Visitable& object);
void save_safetensors(const std::filesystem::path& file, const Visitable& object);
void save_snapshot(const std::filesystem::path& file, const Visitable& object);

// Loads what was saved of an object of the same structure; with a path, as of the part whose names in
// the file begin with it: load_npz("snapshot.npz", model, "model/"). Nothing else of the file is read
// then. Throws DataError, and changes
// nothing, if the file is unreadable, a name is missing or left over, or shapes, dtypes or required
// values differ; the text names all that is wrong. Of several names of the same values one is enough,
// and more must agree. Values are written into the arrays that are
// there: parameters stay the same variables on the same devices.
void load_npz(const std::filesystem::path& file, Visitable& object, std::string_view path = {});
void load_safetensors(const std::filesystem::path& file, Visitable& object,
                      std::string_view path = {});
void load_snapshot(const std::filesystem::path& file, Visitable& object,
                   std::string_view path = {});

}  // namespace catena
