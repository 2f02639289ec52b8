#!/usr/bin/env bash
# Tests the unpacked archive in a root that has only it and the system's C and C++ libraries.
#
# usage: alone.sh PREFIX LIBDIR

set -euo pipefail

prefix=$1 libdir=$2
fail() {
    echo "package: $*" >&2
    exit 1
}

# All needed libraries are in the archive or belong to the system.
own='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
outside=$(find "$prefix/bin" "$prefix/$libdir" -type f -exec sh -c \
    'head -c 4 "$1" | grep -q ELF && env -u LD_LIBRARY_PATH ldd "$1"' - {} \; |
    sed -n 's/^\t\([^ ]*\) => \(.*\)/\1 \2/p' | grep -vF " $prefix/" | grep -vE "$own" | sort -u || true)
[[ -z $outside ]] || fail "needed from outside: $outside"
grep -qE 'glibc 2\.[0-9]+ or newer' "$prefix/README.txt" || fail "README.txt does not say what it needs"
for library in "$prefix/$libdir"/catena/private/*; do
    package=$(sed -n "s/^ *${library##*/} (\(.*\))\$/\1/p" "$prefix/README.txt")
    [[ -s $prefix/share/doc/catena/licenses/$package ]] || fail "$library: no licence"
done

if ((EUID != 0)) || ! unshare -m true 2>/dev/null; then
    echo "package: not root: not tried without the system's libraries"
    exit 0
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{lib64,usr/lib,opt/catena,proc,dev,tmp}
ldd "$prefix/bin/catena" >"$root/tmp/ldd"
for name in libc libm libstdc++ libgcc_s; do
    file=$(awk -v name="$name." 'index($1, name) == 1 { print $3 }' "$root/tmp/ldd")
    cp -L "$file" "$root/usr/lib"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64"
chroot=$(PATH=$PATH:/usr/sbin command -v chroot)
inside() {
    unshare -m sh -c 'mount --bind "$1" "$2/opt/catena" && mount -t tmpfs none "$2/tmp" &&
        mount --rbind /proc "$2/proc" && mount --rbind /dev "$2/dev" && root=$2 chroot=$3 && shift 3 &&
        exec env -i HOME=/tmp PATH=/opt/catena/bin "$chroot" "$root" "$@"' - \
        "$prefix" "$root" "$chroot" "$@"
}
run() { inside "$@" 2>&1 | tee "$root/tmp/out"; }

run catena-train-mnist --epochs 1 | tail -n 1
grep -q 'test accuracy: 0\.[3-9]' "$root/tmp/out" || fail "no net learns there"
grep -i openblas "$root/tmp/out" && fail "OpenBLAS is not found there"
run catena-check --only static /opt/catena/$libdir/catena/plugins/cpu.catena | tail -n 1
run catena-new plugin a --output /tmp/a | sed -n 1p

# With a lock, plugins are loaded from memory, where they have no folder to find libraries from.
plugins=$prefix/$libdir/catena/plugins
run catena plugins lock --plugins "/opt/catena/$libdir/catena/plugins"
run catena plugins | tail -n 1
count=$(find "$plugins" -name '*.catena' | wc -l)
taken=$(sed -n 's/^\([0-9]*\) loaded, 0 refused.* \([0-9]*\) idle$/\1 + \2/p; s/^\([0-9]*\) loaded, 0 refused.* left out$/\1/p' \
    "$root/tmp/out")
((taken == count)) || fail "under a lock: expected all $count plugins, loaded or idle, got ${taken:-none}"
run catena-train-mnist --epochs 1 | tail -n 1
grep -q 'test accuracy: 0\.[3-9]' "$root/tmp/out" || fail "under a lock no net learns"
grep -i openblas "$root/tmp/out" && fail "under a lock OpenBLAS is not found"
rm "$plugins/catena.plugins.lock"

# Tests that a missing OpenBLAS is reported.
mv "$prefix/$libdir/catena/private/libopenblas.so.0" "$root/tmp"
run catena plugins >/dev/null
mv "$root/tmp/libopenblas.so.0" "$prefix/$libdir/catena/private"
grep -q 'expected OpenBLAS' "$root/tmp/out" || fail "without OpenBLAS: expected to be told"
