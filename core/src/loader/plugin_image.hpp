// One plugin on its way into the process, a step at a time: open and check, snapshot, map.
#pragma once

#include "loader/trusted_file.hpp"

#include <boost/dll/shared_library.hpp>

#include <elf_file.hpp>

#include <string>

namespace catena {

class PluginImage {
public:
    enum class Bytes { of_the_file, sealed };

    // From here on the bytes are fixed (sealed), or watched (of the file). Throws PluginError with the
    // bare reason, as all here do.
    PluginImage(const TrustedFile& file, Bytes bytes);

    const ElfFile& elf() const { return elf_; }
    std::string sha256() const;
    // Maps the bytes that elf() reads and sha256() counts, after the libraries that they need;
    // refuses a file that is another by now. What is mapped stays until the process ends.
    boost::dll::shared_library& map() const;

private:
    int fd() const { return copy_ ? copy_.get() : file_.fd(); }

    const TrustedFile& file_;
    Descriptor copy_;
    ElfFile elf_;
};

}  // namespace catena
