// AtomicFile: a file that is there whole, or as it was before.
#pragma once

#include <filesystem>

namespace catena {

//     AtomicFile atomic(file);
//     ... write atomic.temporary() ...
//     atomic.commit();
//
// At any moment, power failures included, `file` has its old or its new content. Without commit() the
// temporary file goes.
class AtomicFile {
public:
    explicit AtomicFile(std::filesystem::path file);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    // In the folder of the file. Nothing has made it yet.
    const std::filesystem::path& temporary() const noexcept { return temporary_; }
    // Flushes it to the disk and renames it. Throws DataError.
    void commit();

private:
    std::filesystem::path file_;
    std::filesystem::path temporary_;
};

}  // namespace catena
