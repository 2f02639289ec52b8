// Saving and loading of state as .npz files, which NumPy and Chainer read too, and as .safetensors.
#pragma once

#include <catena/visitor.hpp>
#include <catena/write_file.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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
// the file begin with it: load_npz("snapshot.npz", model, "model/") reads that part alone. Throws
// DataError, and changes nothing, if the file is unreadable, a name is missing or left over, or shapes,
// dtypes or required values differ; the text names all that is wrong. If several names stand for the
// same values, the file needs one of them; if it has more, they must agree. Values are written into the
// arrays that are there: parameters stay the same variables on the same devices.
void load_npz(const std::filesystem::path& file, Visitable& object, std::string_view path = {});
void load_safetensors(const std::filesystem::path& file, Visitable& object,
                      std::string_view path = {});
void load_snapshot(const std::filesystem::path& file, Visitable& object,
                   std::string_view path = {});

// For files whose names or dtypes differ from the object's: of other frameworks, of another version of
// a net, of parts of it.
struct LoadOptions {
    std::string path = {};  // what the names of the part begin with, as above
    // The object's name for a name of the file, after path is cut off; "" leaves it out. Texts that the
    // object does not ask for are ignored then.
    std::function<std::string(const std::string&)> rename = {};
    // false: what the file lacks keeps its value, and what the object lacks is ignored. Shapes, dtypes
    // and required values are still checked.
    bool strict = true;
    // Floats are converted to the floating dtype that is there, rounded to nearest, and integers to the
    // integer dtype if they fit into it. float32 parameters are loaded from a bfloat16 file so.
    bool convert = false;
};

// What was left out; both are empty if all was loaded. In the order of the names.
struct LoadReport {
    std::vector<std::string> missing;     // of the object, not in the file
    std::vector<std::string> unexpected;  // of the file (renamed, if so), not in the object
};

// As above. Throws InvalidError if two names of the file become one.
LoadReport load_npz(const std::filesystem::path& file, Visitable& object,
                    const LoadOptions& options);
LoadReport load_safetensors(const std::filesystem::path& file, Visitable& object,
                            const LoadOptions& options);
LoadReport load_snapshot(const std::filesystem::path& file, Visitable& object,
                         const LoadOptions& options);

// A rename by a table of names, "fc1.weight" to "l1/W"; a name that is not in it stays.
std::function<std::string(const std::string&)> renaming(std::map<std::string, std::string> names);

}  // namespace catena
