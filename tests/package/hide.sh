#!/usr/bin/env bash
# Runs a command with SOURCE and BUILD empty. With LIBRARIES, also replaces the system's copies of
# that folder's libraries by empty files, and hides headers of packages that catena is built with.
#
# usage: unshare -m hide.sh SOURCE BUILD [LIBRARIES] -- COMMAND...

set -euo pipefail

hidden=("$1" "$2")
shift 2
if [[ $1 != -- ]]; then
    nothing=$(mktemp)
    trap 'rm "$nothing"' EXIT
    for library in "$1"/*; do
        name=${library##*/}
        case $name in libz.* | libcrypto.* | libbz2.* | libnettle.* | libacl.* | libelf.* | libpcre2-8.*) continue ;; esac # compilers, CMake and shells need them
        while read -r file; do
            mount --bind "$nothing" "$file"
        done < <(ldconfig -p | awk -v name="$name" '$1 == name { print $NF }')
    done
    for folder in boost fmt doctest nlohmann oneapi; do
        [[ ! -d /usr/include/$folder ]] || hidden+=("/usr/include/$folder")
    done
    shift
fi
shift
for folder in "${hidden[@]}"; do
    [[ ! -d $folder ]] || mount -t tmpfs none "$folder" # hidden with a previous folder if absent
done
"$@"
