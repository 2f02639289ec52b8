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
// The file is written under a temporary name, flushed and renamed: a crash leaves the old file or the
// new one, and the next save removes temporary files that are left. In .npz files bfloat16 is saved as
// raw two-byte values. A value with several names is saved under each. save_snapshot() writes
// .safetensors if the name ends so, else .npz. Throws DataError; InvalidError if a name occurs twice.
//
// Links and optimizers have the names of Chainer 7, whose serializers.load_npz() reads the files, with
// path="model/" for a part; and the other way round.
void save_npz(const std::filesystem::path& file, const Visitable& object);
void save_safetensors(const std::filesystem::path& file, const Visitable& object);
void save_snapshot(const std::filesystem::path& file, const Visitable& object);

// Loads the state of an object of the same structure. With a path, reads only the part of the file
// whose names begin with it: load_npz("snapshot.npz", model, "model/"). Throws DataError, and changes
// nothing, if the file is unreadable, if it lacks a name or has one too many, or if shapes, dtypes or
// required values differ; the message names all that is wrong. The elements of an array are read only
// if the object takes that name, shape and dtype, so others take no memory. If a value of the object has
// several names, the file needs one of them; if it has more, their values must be equal. Values are
// written into the existing arrays: parameters stay the same variables on
// the same devices.
void load_npz(const std::filesystem::path& file, Visitable& object, std::string_view path = {});
void load_safetensors(const std::filesystem::path& file, Visitable& object,
                      std::string_view path = {});
void load_snapshot(const std::filesystem::path& file, Visitable& object,
                   std::string_view path = {});

// For files whose names or dtypes differ from the object's: files of other frameworks, of another
// version of a net, or of parts of a net.
struct LoadOptions {
    std::string path = {};  // what the names of the part begin with, as above
    // Returns the object's name for a name of the file without path; "" leaves the value out. With a
    // rename, texts in the file that the object does not require are ignored. Whether a value comes from
    // Chainer and is converted, as of links::BinaryHierarchicalSoftmax, is told by the file's own names.
    std::function<std::string(const std::string&)> rename = {};
    // false: what the file lacks keeps its value, and what the object lacks is ignored. Shapes, dtypes
    // and required values are still checked.
    bool strict = true;
    // true: floats are converted to the object's floating dtype, rounded to nearest, and integers to its
    // integer dtype if they fit. So float32 parameters can be loaded from a bfloat16 file.
    bool convert = false;
};

// The names that were left out, sorted; both lists are empty if everything was loaded.
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
