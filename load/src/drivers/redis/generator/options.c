#include "generator.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static const char usage[] =
    "usage: generator --mode short|long|hold (--unix PATH | --port N [--host 127.x.x.x])\n"
    "                 [--connections N] [--seconds S | --total N] [--rate N] [--sources N]\n"
    "                 [--keys N] [-- COMMAND [ARGUMENT...]]\n"
    "       generator isolate PROGRAM [ARGUMENT...]\n";

static void refuse(const char *what, const char *value) {
    fprintf(stderr, "generator: %s: %s\n%s", what, value, usage);
    exit(2);
}

static double number(const char *name, const char *text, double least, double most) {
    char *end;
    double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(value >= least && value <= most)) refuse(name, text);
    return value;
}

/* Load goes to this machine and nowhere else. */
static void set_tcp_target(struct options *options, const char *host, unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || ntohl(address.sin_addr.s_addr) >> 24 != 127)
        refuse("not an address of 127.0.0.0/8", host);
    memcpy(&options->target, &address, sizeof address);
    options->target_length = sizeof address;
}

static void set_unix_target(struct options *options, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) refuse("too long for a Unix socket", path);
    strcpy(address.sun_path, path);
    memcpy(&options->target, &address, sizeof address);
    options->target_length = sizeof address;
    options->unix_socket = true;
}

static enum mode mode_named(const char *name) {
    if (strcmp(name, "short") == 0) return MODE_SHORT;
    if (strcmp(name, "long") == 0) return MODE_LONG;
    if (strcmp(name, "hold") == 0) return MODE_HOLD;
    refuse("no such mode", name);
    return MODE_SHORT;
}

struct options parse_options(int argc, char **argv) {
    static const struct option names[] = {
        {"mode", required_argument, NULL, 'm'},        {"unix", required_argument, NULL, 'u'},
        {"host", required_argument, NULL, 'h'},        {"port", required_argument, NULL, 'p'},
        {"connections", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
        {"rate", required_argument, NULL, 'r'},
        {"total", required_argument, NULL, 'n'},       {"sources", required_argument, NULL, 'a'},
        {"keys", required_argument, NULL, 'k'},        {NULL, 0, NULL, 0},
    };
    static char *ping[] = {"PING"};
    struct options options = {.sources = 1, .connections = 50, .keys = 1};
    const char *path = NULL, *host = "127.0.0.1";
    unsigned port = 0;
    int name;
    while ((name = getopt_long(argc, argv, "+", names, NULL)) != -1) {
        switch (name) {
        case 'm': options.mode = mode_named(optarg); break;
        case 'u': path = optarg; break;
        case 'h': host = optarg; break;
        case 'p': port = (unsigned)number("--port", optarg, 1, 65535); break;
        case 'c': options.connections = (unsigned)number("--connections", optarg, 1, 1e6); break;
        case 's': options.seconds = number("--seconds", optarg, 0.01, 1e6); break;
        case 'n': options.total = (uint64_t)number("--total", optarg, 1, 1e12); break;
        case 'a': options.sources = (unsigned)number("--sources", optarg, 1, 250); break;
        case 'r': options.rate = number("--rate", optarg, 0.1, 1e6); break;
        case 'k': options.keys = (uint64_t)number("--keys", optarg, 1, 1e12); break;
        default: fputs(usage, stderr); exit(2);
        }
    }
    if ((path == NULL) == (port == 0)) refuse("give one target", "--unix or --port");
    if (path) set_unix_target(&options, path);
    else set_tcp_target(&options, host, port);
    if (options.mode != MODE_HOLD && (options.seconds == 0) == (options.total == 0))
        refuse("give one end", "--seconds or --total");
    options.command_length = optind < argc ? argc - optind : 1;
    options.command = optind < argc ? argv + optind : ping;
    return options;
}
