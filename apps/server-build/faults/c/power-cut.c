/* To be preloaded into redis-server: the disk as a power cut leaves it. With FSYNC_MS, what is written to the
 * append-only file stays in the memory of the process until an fsync, which takes that long, and SIGKILL loses the
 * rest. A write beyond RLIMIT_FSIZE fails as on a full disk, instead of ending the process. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char pending[1 << 26];
static size_t length;

__attribute__((constructor)) static void ignore_limit(void) { signal(SIGXFSZ, SIG_IGN); }

static int is_held(int fd) {
    char link[32], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t size = getenv("FSYNC_MS") ? readlink(link, path, sizeof(path) - 1) : -1;
    if (size < 0) return 0;
    path[size] = '\0';
    return strstr(path, ".incr.aof") != NULL;
}

ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (!is_held(fd)) return real(fd, data, size);
    pthread_mutex_lock(&lock);
    if (size > sizeof(pending) - length) abort();
    memcpy(pending + length, data, size);
    length += size;
    pthread_mutex_unlock(&lock);
    return size;
}

int fdatasync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    ssize_t (*real_write)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (!is_held(fd)) return real(fd);
    size_t part = length;
    usleep(1000 * atoi(getenv("FSYNC_MS")));
    pthread_mutex_lock(&lock);
    if (real_write(fd, pending, part) != (ssize_t)part) abort();
    memmove(pending, pending + part, length - part);
    length -= part;
    pthread_mutex_unlock(&lock);
    return real(fd);
}
