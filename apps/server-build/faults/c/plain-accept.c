/* To be preloaded: accepted sockets do not inherit the keep-alive of their listener, as
 * with kernels that implement Linux's system calls incompletely. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    int (*real)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    int fd = real(listener, address, length, flags);
    int off = 0;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &off, sizeof(off));
    return fd;
}
