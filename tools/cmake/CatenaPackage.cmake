# cpack: a Debian package, and an archive that carries the libraries it needs. Run by tools/package.
