/* Writes down what a process does to the files under $POWERLOSS_ROOT, in order, into $POWERLOSS_LOG.

   Preloaded (LD_PRELOAD), so that calls of Python, SQLite and others come here first. Each record is a line

       KIND INODE OFFSET LENGTH PATH [PATH]

   with paths relative to the root and percent signs for what is no plain character, followed by LENGTH bytes
   of data and a newline where the kind is W. Kinds: C a new file, W bytes written, T cut to a length, S flushed,
   D a folder flushed, R renamed, U unlinked, K a new folder, X a folder removed, M a mark (the process tried to
   remove "mark:TEXT"), ? something that tests/powerloss.py does not know how to lose.

   What happens is done and written down under one lock, so that processes are in order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(type, name, ...) \
    static type (*really)(__VA_ARGS__); \
    if (!really) really = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static char root[PATH_MAX];
static size_t root_length;
static int book = -1;
static pid_t owner;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static ssize_t plainly(int to, const void *bytes, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    const char *at = bytes;
    for (size_t left = count; left;) {
        ssize_t done = really(to, at, left);
        if (done < 0) abort();
        at += done, left -= done;
    }
    return count;
}

static int begin(void) {  /* 1 if somebody wants to know; each process has a book of its own to lock */
    if (!root_length) {
        const char *given = getenv("POWERLOSS_ROOT");
        if (!given || !realpath(given, root)) return 0;
        root_length = strlen(root);
    }
    pthread_mutex_lock(&one);
    if (owner != getpid()) {
        REAL(int, "open", const char *, int, ...);
        book = really(getenv("POWERLOSS_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        owner = getpid();
        if (book < 0) abort();
    }
    flock(book, LOCK_EX);
    return 1;
}

static void end(void) {
    flock(book, LOCK_UN);
    pthread_mutex_unlock(&one);
}

static int inside(int folder, const char *path, char *found) {  /* the path below the root, if it is there */
    char whole[PATH_MAX * 2], place[64];
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char base[PATH_MAX];
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            snprintf(place, sizeof place, "/proc/self/fd/%d", folder);
            ssize_t length = readlink(place, base, sizeof base - 1);
            if (length < 0) return 0;
            base[length] = 0;
        }
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    if (strncmp(whole, root, root_length) || (whole[root_length] && whole[root_length] != '/')) return 0;
    snprintf(found, PATH_MAX, "%s", whole[root_length] ? whole + root_length + 1 : ".");
    return 1;
}

static int of_handle(int handle, char *found, struct stat *about) {
    char place[64], path[PATH_MAX];
    if (fstat(handle, about)) return 0;
    if (!S_ISREG(about->st_mode) && !S_ISDIR(about->st_mode)) return 0;
    snprintf(place, sizeof place, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(place, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return inside(AT_FDCWD, path, found);
}

static void quoted(char *to, const char *path) {
    for (; *path; path++) {
        if (*path <= ' ' || *path == '%' || *path > '~') to += sprintf(to, "%%%02x", (unsigned char)*path);
        else *to++ = *path;
    }
    *to = 0;
}

static void note(char kind, unsigned long inode, long offset, const void *bytes, size_t count,
                 const char *path, const char *other) {
    char first[PATH_MAX * 3], second[PATH_MAX * 3] = "", line[PATH_MAX * 7];
    quoted(first, path);
    if (other) quoted(second, other);
    int length = snprintf(line, sizeof line, "%c %lu %ld %zu %s %s\n", kind, inode, offset, count, first, second);
    plainly(book, line, length);
    if (bytes) plainly(book, bytes, count), plainly(book, "\n", 1);
}

static int opening(int (*way)(int, const char *, int, mode_t), int folder, const char *path, int flags, mode_t mode) {
    char where[PATH_MAX];
    struct stat before, after;
    if (!(flags & (O_WRONLY | O_RDWR | O_CREAT)) || !begin()) return way(folder, path, flags, mode);
    int ours = inside(folder, path, where);
    int there = !fstatat(folder, path, &before, 0);
    int handle = way(folder, path, flags, mode);
    int error = errno;
    if (ours && handle >= 0 && !fstat(handle, &after) && S_ISREG(after.st_mode)) {
        if (!there) note('C', after.st_ino, 0, NULL, 0, where, NULL);
        else if (flags & O_TRUNC) note('T', after.st_ino, 0, NULL, 0, where, NULL);
    }
    end();
    errno = error;
    return handle;
}

static int as_openat(int folder, const char *path, int flags, mode_t mode) {
    REAL(int, "openat", int, const char *, int, ...);
    return really(folder, path, flags, mode);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) { MODE(flags) return opening(as_openat, AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opening(as_openat, AT_FDCWD, path, flags, mode); }
int openat(int f, const char *path, int flags, ...) { MODE(flags) return opening(as_openat, f, path, flags, mode); }
int openat64(int f, const char *path, int flags, ...) { MODE(flags) return opening(as_openat, f, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opening(as_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

static ssize_t writing(int handle, const void *bytes, ssize_t done, off_t at, int ours, struct stat *about, const char *where) {
    int error = errno;
    if (ours && done > 0) note('W', about->st_ino, at, bytes, done, where, NULL);
    end();
    errno = error;
    (void)handle;
    return done;
}

ssize_t write(int handle, const void *bytes, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    char where[PATH_MAX];
    struct stat about;
    if (handle <= 2 || fstat(handle, &about) || !S_ISREG(about.st_mode) || !begin()) return really(handle, bytes, count);
    int ours = of_handle(handle, where, &about), appends = fcntl(handle, F_GETFL) & O_APPEND;
    off_t at = appends ? about.st_size : lseek(handle, 0, SEEK_CUR);
    return writing(handle, bytes, really(handle, bytes, count), at, ours, &about, where);
}

static ssize_t placed(int handle, const void *bytes, size_t count, off_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    char where[PATH_MAX];
    struct stat about;
    if (!begin()) return really(handle, bytes, count, at);
    int ours = of_handle(handle, where, &about);
    return writing(handle, bytes, really(handle, bytes, count, at), at, ours, &about, where);
}

ssize_t pwrite(int handle, const void *bytes, size_t count, off_t at) { return placed(handle, bytes, count, at); }
ssize_t pwrite64(int handle, const void *bytes, size_t count, off_t at) { return placed(handle, bytes, count, at); }

static int cutting(int handle, off_t length) {
    REAL(int, "ftruncate64", int, off_t);
    char where[PATH_MAX];
    struct stat about;
    if (!begin()) return really(handle, length);
    int ours = of_handle(handle, where, &about), done = really(handle, length), error = errno;
    if (ours && !done) note('T', about.st_ino, length, NULL, 0, where, NULL);
    end();
    errno = error;
    return done;
}

int ftruncate(int handle, off_t length) { return cutting(handle, length); }
int ftruncate64(int handle, off_t length) { return cutting(handle, length); }

static int flushing(int (*really)(int), int handle) {
    char where[PATH_MAX];
    struct stat about;
    if (!begin()) return really(handle);
    /* tests wait for no disk: that it would be there is written down */
    int ours = of_handle(handle, where, &about), done = ours ? 0 : really(handle), error = errno;
    if (ours) note(S_ISDIR(about.st_mode) ? 'D' : 'S', about.st_ino, 0, NULL, 0, where, NULL);
    end();
    errno = error;
    return done;
}

int fsync(int handle) { REAL(int, "fsync", int); return flushing(really, handle); }
int fdatasync(int handle) { REAL(int, "fdatasync", int); return flushing(really, handle); }

static int renaming(int f, const char *from, int t, const char *to, unsigned int how) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned int);
    char first[PATH_MAX], second[PATH_MAX];
    if (!begin()) return really(f, from, t, to, how);
    int one_in = inside(f, from, first), two_in = inside(t, to, second);
    int done = really(f, from, t, to, how), error = errno;
    if (!done && (one_in || two_in)) {
        if (one_in && two_in && !(how & RENAME_EXCHANGE)) note('R', 0, 0, NULL, 0, first, second);
        else note('?', 0, 0, NULL, 0, "rename", NULL);
    }
    end();
    errno = error;
    return done;
}

int rename(const char *from, const char *to) { return renaming(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int f, const char *from, int t, const char *to) { return renaming(f, from, t, to, 0); }
int renameat2(int f, const char *from, int t, const char *to, unsigned int how) { return renaming(f, from, t, to, how); }

static int removing(int folder, const char *path, int how) {
    REAL(int, "unlinkat", int, const char *, int);
    char where[PATH_MAX];
    if (!begin()) return really(folder, path, how);
    int ours = inside(folder, path, where), done = really(folder, path, how), error = errno;
    const char *mark = strstr(path, "mark:");
    if (ours && mark) note('M', 0, 0, NULL, 0, mark + 5, NULL);
    else if (ours && !done) note(how & AT_REMOVEDIR ? 'X' : 'U', 0, 0, NULL, 0, where, NULL);
    end();
    errno = error;
    return done;
}

int unlink(const char *path) { return removing(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int how) { return removing(folder, path, how); }
int rmdir(const char *path) { return removing(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    struct stat about;
    return removing(AT_FDCWD, path, !lstat(path, &about) && S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0);
}

static int founding(int folder, const char *path, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    char where[PATH_MAX];
    if (!begin()) return really(folder, path, mode);
    int ours = inside(folder, path, where), done = really(folder, path, mode), error = errno;
    if (ours && !done) note('K', 0, 0, NULL, 0, where, NULL);
    end();
    errno = error;
    return done;
}

int mkdir(const char *path, mode_t mode) { return founding(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return founding(folder, path, mode); }

static void unknown(int handle, const char *what) {
    char where[PATH_MAX];
    struct stat about;
    if (!begin()) return;
    if (of_handle(handle, where, &about)) note('?', 0, 0, NULL, 0, what, where);
    end();
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    unknown(handle, "writev");
    return really(handle, parts, count);
}

ssize_t sendfile(int to, int from, off_t *at, size_t count) {
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    unknown(to, "sendfile");
    return really(to, from, at, count);
}

ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t count, unsigned int how) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned int);
    unknown(to, "copy_file_range");
    return really(from, a, to, b, count, how);
}

int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    char where[PATH_MAX];
    if (begin()) {
        if (inside(AT_FDCWD, to, where)) note('?', 0, 0, NULL, 0, "link", where);
        end();
    }
    return really(from, to);
}
