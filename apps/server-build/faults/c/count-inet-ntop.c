/* To be preloaded: appends one byte to the file $INET_NTOP_CALLS for each address that a program formats. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

const char *inet_ntop(int family, const void *address, char *text, socklen_t size) {
    const char *(*next)(int, const void *, char *, socklen_t) = dlsym(RTLD_NEXT, "inet_ntop");
    const char *path = getenv("INET_NTOP_CALLS");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file >= 0 && write(file, ".", 1) == 1) close(file);
    return next(family, address, text, size);
}
