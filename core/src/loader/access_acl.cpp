// Reads a file's access list as Linux keeps it: a version, then an entry of eight bytes each.
#include "loader/access_acl.hpp"

#include "loader/trusted_file.hpp"

#include <fmt/format.h>

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace catena {

std::string listed_writer(int fd, std::span<const uid_t> trusted) {
    // fgetxattr() refuses descriptors of O_PATH, which is all that folders are opened for.
    const std::string file = fmt::format("/proc/self/fd/{}", fd);
    std::array<char, 8192> list;
    const ssize_t size =
        getxattr(file.c_str(), "system.posix_acl_access", list.data(), list.size());
    if (size < 0 && (errno == ENODATA || errno == ENOTSUP)) return "";
    posix_acl_xattr_header header{};
    if (size >= static_cast<ssize_t>(sizeof(header))) {
        std::memcpy(&header, list.data(), sizeof(header));
    }
    if (size < 0 || header.a_version != POSIX_ACL_XATTR_VERSION) {
        return fmt::format("a list that cannot be read ({})",
                           size < 0 ? system_error() : "of another version");
    }
    posix_acl_xattr_entry entry{};
    for (std::size_t at = sizeof(header); at + sizeof(entry) <= static_cast<std::size_t>(size);
         at += sizeof(entry)) {
        std::memcpy(&entry, &list[at], sizeof(entry));
        if (!(entry.e_perm & ACL_WRITE)) continue;
        const bool known = std::ranges::count(trusted, entry.e_id) > 0;
        if (entry.e_tag == ACL_USER && !known) return fmt::format("user {}", entry.e_id);
        if (entry.e_tag == ACL_GROUP) return fmt::format("group {}", entry.e_id);
    }
    return "";
}

}  // namespace catena
