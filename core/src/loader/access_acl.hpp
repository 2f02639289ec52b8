// POSIX access lists: who else may write to a file than its mode tells.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

namespace catena {

// "user 1234" or "group 1234", the first that the file's access list lets write and that is none of
// `trusted`; words if the list cannot be read; "" if there is nobody. The descriptor may be of O_PATH.
std::string listed_writer(int fd, std::span<const uid_t> trusted);

}  // namespace catena
