// Saves and loads state as .npz files, which NumPy and Chainer also read, and as .safetensors.
#pragma once

#include <catena/visitor.hpp>
#include <catena/write_file.hpp>

#include <map>

namespace catena {

// Saves everything that object lists in visit(): "l1/W". Works for links, optimizers, minibatches,
// and for classes that list several of them as parts:
//
//     struct Training : Visitable { ... void visit(Visitor& v) override { v("model", model)... } };
//     save_npz("snapshot.npz", training);
//
// The file is written under a temporary name, flushed and renamed: a crash leaves the old or new
// file, and the next save removes old temporary files. .npz files store bfloat16 as raw two-byte
// values. A value with several names is saved under each. save_snapshot() writes .safetensors if
// the name ends so, else .npz. Throws DataError; InvalidError for duplicate names.
//
// Links and optimizers have the names of Chainer 7, so its serializers.load_npz() reads the files,
// with path="model/" for a part, and load_npz() reads those of Chainer.
void save_npz(const std::filesystem::path& file, const Visitable& object);
void save_safetensors(const std::filesystem::path& file, const Visitable& object);
void save_snapshot(const std::filesystem::path& file, const Visitable& object);

// Loads the state of an object with the same structure. With a path, reads only the names that
// begin with it: load_npz("snapshot.npz", model, "model/"). Throws DataError, and changes nothing,
// if the file is unreadable, if names are missing or unexpected, or if shapes, dtypes or required
// values differ; the message lists all differences. Elements are read only for arrays with an
// expected name, shape and dtype, so others take no memory. If a value of the object has several
// names, the file needs one of them; if it has more, their values must be equal. Values are written
// into the existing arrays: parameters stay the same variables on the same devices.
void load_npz(const std::filesystem::path& file, Visitable& object, std::string_view path = {});
void load_safetensors(const std::filesystem::path& file, Visitable& object,
                      std::string_view path = {});
void load_snapshot(const std::filesystem::path& file, Visitable& object,
                   std::string_view path = {});

// The state of several processes in one file for each, as distributed::Checkpoints write it. Values
// are the same in all processes, and are divided among the files, except parts (Visitor::part), and
// local values, which differ: is_local() is true for their names.
using IsLocal = std::function<bool(std::string_view name)>;
// Saves the part of process `index` of `count`. All processes have the same names. Throws
// InvalidError for a name with '@', which marks parts in the file.
void save_part(const std::filesystem::path& file, const Visitable& object, int index, int count,
               const IsLocal& is_local = {});
// Loads values from the files of all processes, and the local values of process `index`; a process
// without a file keeps its local values. Of parts, reads those that the object has elements of.
// Throws DataError as load_npz() does, also unless parts have each element once.
void load_parts(std::span<const std::filesystem::path> files, int index, Visitable& object,
                const IsLocal& is_local = {});
// save_snapshot() of an object with parts: saves these arrays, by name, in place of their parts.
void save_snapshot(const std::filesystem::path& file, const Visitable& object,
                   const std::map<std::string, Array>& wholes);

// For files with other names or dtypes: of other frameworks, versions of a net, or parts of it.
struct LoadOptions {
    std::string path = {};  // prefix of the names to load, as above
    // Maps a name in the file, without path, to the object's name; "" skips the value. With a
    // rename, texts in the file that the object does not require are ignored. The original names in
    // the file determine whether a value comes from Chainer and is converted, as for
    // links::BinaryHierarchicalSoftmax.
    std::function<std::string(const std::string&)> rename = {};
    // If false, values that the file lacks do not change, and values that the object lacks are
    // ignored. Shapes, dtypes and required values are still checked.
    bool strict = true;
    // If true, floats are converted to the object's floating dtype, rounded to nearest, and
    // integers to its integer dtype if they fit. So float32 parameters can load a bfloat16 file.
    bool convert = false;
};

// The names that were not loaded, sorted. Both lists are empty if everything was loaded.
struct LoadReport {
    std::vector<std::string> missing;     // in the object, not in the file
    std::vector<std::string> unexpected;  // in the file (after renaming), not in the object
};

// As above. Throws InvalidError if two names in the file map to the same one.
LoadReport load_npz(const std::filesystem::path& file, Visitable& object,
                    const LoadOptions& options);
LoadReport load_safetensors(const std::filesystem::path& file, Visitable& object,
                            const LoadOptions& options);
LoadReport load_snapshot(const std::filesystem::path& file, Visitable& object,
                         const LoadOptions& options);

// A rename with a table, such as "fc1.weight" to "l1/W". Other names do not change.
std::function<std::string(const std::string&)> renaming(std::map<std::string, std::string> names);

}  // namespace catena
