// .safetensors files: a header in JSON, then the arrays' bytes.
#pragma once

#include "npz.hpp"

namespace catena {

// Writes by AtomicFile, in the order of the names. Texts (elements "|S...") go into __metadata__, where
// the format has its texts. The same content gives the same bytes. Throws DataError.
// Format: https://huggingface.co/docs/safetensors, as of its version 0.4.
void write_safetensors(const std::filesystem::path& file, const Npz& arrays);

// What write_safetensors() wrote, or others did: arrays whose names begin with path, and texts.
// Elements of dtypes that catena lacks have descr "". Throws DataError if the file is missing or is
// not as the format wants it: no byte unused, none used twice, each key of the header once. With
// wanted, an array or a text that it refuses comes without bytes.
Npz read_safetensors(const std::filesystem::path& file, std::string_view path = {},
                     const Wanted& wanted = {});

}  // namespace catena
