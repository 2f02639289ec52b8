/* Preloaded into a program: right before a plugin's file is looked at for the last time, the file
 * that CATENA_TEST_SWAP names takes its place. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int lstat(const char *path, struct stat *status) {
    const size_t length = strlen(path), suffix = strlen(".catena");
    const char *with = getenv("CATENA_TEST_SWAP");
    if (with && length > suffix && strcmp(path + length - suffix, ".catena") == 0) {
        rename(with, path); /* there is one file to do it with: once */
    }
    return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
