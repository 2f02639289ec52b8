#!/usr/bin/env bash
# Runs a command where folders are empty, and where the system's copies of the libraries in a folder
# are no libraries, nor are there headers of packages that catena is built with.
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
        case $name in libz.* | libcrypto.* | libbz2.* | libnettle.* | libacl.* | libelf.*) continue ;; esac # compilers and CMake need them
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
    [[ ! -d $folder ]] || mount -t tmpfs none "$folder" # it may have been in one before
done
"$@"
