#include "generator.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static const char usage[] =
    "usage: generator short|long|hold SOCKET|PORT CONNECTIONS SECONDS REPLIES RATE KEYS\n"
    "                 COMMAND [ARGUMENT...]\n"
    "       generator isolate PROGRAM [ARGUMENT...]\n"
    "SECONDS, REPLIES and RATE are 0 for no limit.\n";

/* Load goes to this machine and nowhere else: to a Unix socket, or a port of 127.0.0.1. */
static void set_target(struct options *options, const char *target) {
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(target))};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool is_path = strchr(target, '/') && strlen(target) < sizeof local.sun_path;
    if (is_path) strcpy(local.sun_path, target);
    options->target_length = is_path ? sizeof local : sizeof tcp;
    memcpy(&options->target, is_path ? (void *)&local : (void *)&tcp, options->target_length);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "isolate") == 0) return isolate(argv + 2);
    if (argc < 9) {
        fputs(usage, stderr);
        return 2;
    }
    struct options options = {
        .mode = MODE_HOLD,
        .connections = (unsigned)atoi(argv[3]),
        .seconds = atof(argv[4]),
        .total = strtoull(argv[5], NULL, 10),
        .rate = atof(argv[6]),
        .keys = strtoull(argv[7], NULL, 10),
        .command_length = argc - 8,
        .command = argv + 8,
    };
    if (strcmp(argv[1], "short") == 0) options.mode = MODE_SHORT;
    if (strcmp(argv[1], "long") == 0) options.mode = MODE_LONG;
    set_target(&options, argv[2]);
    build_payload(&options);
    return run_load(&options);
}
