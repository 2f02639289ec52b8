/* Preloaded into a program. The file that CATENA_TEST_SWAP names takes a plugin's place right before
 * that is looked at for the last time; or takes the place of CATENA_TEST_SWAP_LATE's file when the
 * system's loader is asked for that. CATENA_TEST_EXCHANGE changes places with each plugin that is opened
 * to be read. CATENA_TEST_GROUP is one more user's primary group;
 * CATENA_TEST_NO_PROC hides /proc/self; CATENA_TEST_FOLDER is current from the start. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((constructor)) static void move(void) {
    const char *folder = getenv("CATENA_TEST_FOLDER");
    if (folder && chdir(folder) != 0) abort();
}

static int ends_with(const char *text, const char *suffix) {
    const size_t length = strlen(text), end = strlen(suffix);
    return length > end && strcmp(text + length - end, suffix) == 0;
}

int lstat(const char *path, struct stat *status) {
    const char *with = getenv("CATENA_TEST_SWAP");
    if (with && !getenv("CATENA_TEST_SWAP_LATE") && ends_with(path, ".catena")) {
        rename(with, path); /* there is one file to do it with: once */
    }
    return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

void *dlopen(const char *path, int mode) {
    const char *with = getenv("CATENA_TEST_SWAP"), *late = getenv("CATENA_TEST_SWAP_LATE");
    if (with && late && path && !(mode & RTLD_NOLOAD) &&
        (strcmp(path, late) == 0 || strncmp(path, "/proc/", strlen("/proc/")) == 0)) {
        rename(with, late);
    }
    void *(*next)(const char *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    return next(path, mode);
}

static int opened(int folder, const char *path, int flags, int fd) {
    const char *with = getenv("CATENA_TEST_EXCHANGE");
    if (with && fd >= 0 && !(flags & (O_PATH | O_DIRECTORY)) && ends_with(path, ".catena")) {
        renameat2(AT_FDCWD, with, folder, path, RENAME_EXCHANGE);
    }
    return fd;
}

static int real_openat(int folder, const char *path, int flags, mode_t mode) {
    int (*next)(int, const char *, int, ...);
    *(void **)&next = dlsym(RTLD_NEXT, "openat");
    return opened(folder, path, flags, next(folder, path, flags, mode));
}

static mode_t mode_of(int flags, va_list list) {
    return flags & O_CREAT ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int fd = real_openat(AT_FDCWD, path, flags, mode_of(flags, list));
    va_end(list);
    return fd;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int fd = real_openat(folder, path, flags, mode_of(flags, list));
    va_end(list);
    return fd;
}

ssize_t readlink(const char *path, char *text, size_t size) {
    if (getenv("CATENA_TEST_NO_PROC") && strcmp(path, "/proc/self") == 0) {
        errno = ENOENT;
        return -1;
    }
    return readlinkat(AT_FDCWD, path, text, size);
}

static int said;

void setpwent(void) {
    said = 0;
    void (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "setpwent");
    next();
}

int getpwent_r(struct passwd *entry, char *texts, size_t size, struct passwd **result) {
    const char *group = getenv("CATENA_TEST_GROUP");
    if (group && !said) {
        said = 1;
        static char name[] = "somebody", nothing[] = "";
        const struct passwd one = {name,    nothing, 4711,   (gid_t)atoi(group),
                                   nothing, nothing, nothing};
        *entry = one;
        *result = entry;
        return 0;
    }
    int (*next)(struct passwd *, char *, size_t, struct passwd **);
    *(void **)&next = dlsym(RTLD_NEXT, "getpwent_r");
    return next(entry, texts, size, result);
}
