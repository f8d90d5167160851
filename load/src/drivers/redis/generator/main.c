#include "generator.h"

#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static void refuse(void) {
    fputs("usage: generator --mode short|long|hold (--unix PATH | --port N) [--connections N]\n"
          "                 [--seconds S | --total N] [--rate N] [--keys N] [-- COMMAND [ARGUMENT...]]\n"
          "       generator isolate PROGRAM [ARGUMENT...]\n",
          stderr);
    exit(2);
}

static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(value > 0)) refuse();
    return value;
}

static enum mode mode_named(const char *name) {
    if (strcmp(name, "long") == 0) return MODE_LONG;
    if (strcmp(name, "hold") == 0) return MODE_HOLD;
    if (strcmp(name, "short") != 0) refuse();
    return MODE_SHORT;
}

/* Load goes to this machine and nowhere else. */
static void set_port(struct options *options, unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&options->target, &address, sizeof address);
    options->target_length = sizeof address;
}

static void set_socket(struct options *options, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) refuse();
    strcpy(address.sun_path, path);
    memcpy(&options->target, &address, sizeof address);
    options->target_length = sizeof address;
}

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"mode", required_argument, NULL, 'm'},        {"unix", required_argument, NULL, 'u'},
        {"port", required_argument, NULL, 'p'},        {"keys", required_argument, NULL, 'k'},
        {"connections", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
        {"total", required_argument, NULL, 'n'},       {"rate", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    static char *ping[] = {"PING"};
    struct options options = {.connections = 50, .keys = 1};
    if (argc > 2 && strcmp(argv[1], "isolate") == 0) return isolate(argv + 2);
    for (int name; (name = getopt_long(argc, argv, "+", names, NULL)) != -1;) {
        switch (name) {
        case 'm': options.mode = mode_named(optarg); break;
        case 'u': set_socket(&options, optarg); break;
        case 'p': set_port(&options, (unsigned)number(optarg)); break;
        case 'k': options.keys = (uint64_t)number(optarg); break;
        case 'c': options.connections = (unsigned)number(optarg); break;
        case 's': options.seconds = number(optarg); break;
        case 'n': options.total = (uint64_t)number(optarg); break;
        case 'r': options.rate = number(optarg); break;
        default: refuse();
        }
    }
    bool ends = options.seconds > 0 || options.total > 0;
    if (options.target_length == 0 || (options.mode != MODE_HOLD && !ends)) refuse();
    options.command_length = optind < argc ? argc - optind : 1;
    options.command = optind < argc ? argv + optind : ping;
    build_payload(&options);
    return run_load(&options);
}
