/* A load generator for Redis on this machine: one thread, one epoll loop, no work that grows with the
 * number of connections. */
#define _GNU_SOURCE
#include "protocol.h"
#include "isolate.h"
#include "result.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>

#define EVENTS 512
#define RETRY_MS 1          /* after a failure to connect, so that a dead server is not hammered */
#define OPENING_AT_ONCE 128 /* of those that failed: below any backlog */
#define SOURCES 200         /* TCP: connections come from 127.0.0.1 to 127.0.0.200 in turn */

static const char usage[] =
    "usage: generator short|long|hold SOCKET|PORT CONNECTIONS SECONDS REPLIES RATE KEYS COMMAND...\n"
    "       generator isolate PROGRAM [ARGUMENT...]\n"
    "SECONDS, REPLIES and RATE are 0 for no limit. SIGINT ends it early.\n";

static enum { SHORT, LONG, HOLD } mode;
static struct sockaddr_storage target;
static socklen_t target_length;
static uint64_t replies_wanted;

struct connection {
    int fd;
    bool sent;
    double began; /* seconds, as all times */
    struct reply reply;
};

static unsigned connection_count, waiting_count;
static struct connection **waiting; /* to be opened again; with a rate: for the next command */
static double interval, due;        /* with a rate: between commands, and when the next is due */
static int poll_fd, timer_fd;
static uint64_t started;
static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void count_error(enum step step, int error, const char *what) {
    errors[step][error < MAX_ERRNO ? error : 0]++;
    if (mode != HOLD) return;
    fprintf(stderr, "%s: %s\n", steps[step], what); /* all have to be held */
    exit(1);
}

static void try_again(struct connection *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    started--;
    waiting[waiting_count++] = c;
}

static void failed(struct connection *c, enum step step, int error) {
    count_error(step, error, error ? strerror(error) : "by the server");
    try_again(c);
}

/* One address has only some 28,000 ports, each of which stays taken for a minute after its connection
 * was closed. */
static int bind_to_next_source(int fd) {
    static unsigned turn;
    const int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET};
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + turn++ % SOURCES);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return bind(fd, (struct sockaddr *)&source, sizeof source);
}

/* Returns false if the connection failed. A command goes in one piece into an empty socket buffer. */
static bool send_command(struct connection *c) {
    choose_keys();
    ssize_t sent = send(c->fd, payload, payload_length, MSG_NOSIGNAL);
    /* A server that has closed the connection may have sent the reason before: read it. */
    if (sent == (ssize_t)payload_length || (sent < 0 && errno == EPIPE)) {
        c->sent = true;
        c->reply = (struct reply){.pending = 1};
        return true;
    }
    if (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)) return true; /* not connected yet */
    failed(c, SEND, sent < 0 ? errno : EMSGSIZE);
    return false;
}

static void watch(struct connection *c, int operation) {
    struct epoll_event event = {.events = c->sent ? EPOLLIN : EPOLLOUT, .data.ptr = c};
    if (epoll_ctl(poll_fd, operation, c->fd, &event) < 0) failed(c, CONNECT, errno);
}

static void open_connection(struct connection *c) {
    bool tcp = target.ss_family == AF_INET;
    c->fd = socket(target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || (tcp && bind_to_next_source(c->fd))) {
        failed(c, CONNECT, errno);
    } else if (connect(c->fd, (struct sockaddr *)&target, target_length) == 0 || errno == EINPROGRESS) {
        /* On loopback the handshake is done by now, although connect() does not say so. */
        if (send_command(c)) watch(c, EPOLL_CTL_ADD);
    } else if (errno == EAGAIN && !tcp) { /* the backlog of a Unix socket is full */
        try_again(c);
    } else {
        failed(c, CONNECT, errno);
    }
}

static void may_send(struct connection *c) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) failed(c, CONNECT, error);
    else if (send_command(c) && c->sent) watch(c, EPOLL_CTL_MOD);
}

static bool may_start(void) { return !stopped && (!replies_wanted || started < replies_wanted); }

static void begin(struct connection *c, double began) {
    started++;
    c->sent = false;
    c->began = began;
    if (c->fd < 0) open_connection(c);
    else if (send_command(c) && !c->sent) failed(c, SEND, EAGAIN);
}

/* The clock of a command starts when it is due, not when a connection is free for it: otherwise a
 * server that stands still would be asked less often, and look better than it is. */
static void send_due(void) {
    for (double time = now(); waiting_count > 0 && due <= time && may_start(); due += interval)
        begin(waiting[--waiting_count], due);
}

static void tick(void) {
    time_t whole = (time_t)interval;
    struct timespec period = {.tv_sec = whole, .tv_nsec = (long)((interval - (double)whole) * 1e9)};
    struct itimerspec timer = {.it_interval = period, .it_value = period};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    due = now() + interval;
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    timerfd_settime(timer_fd, 0, &timer, NULL);
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer_fd, &event);
}

static void answered(struct connection *c) {
    record(now() - c->began);
    if (mode == HOLD && completed == connection_count) puts("holding");
    if (mode == SHORT) {
        close(c->fd);
        c->fd = -1;
    }
    if (interval > 0) {
        waiting[waiting_count++] = c;
        send_due();
    } else if (mode != HOLD && may_start()) {
        begin(c, now());
    }
}

static void may_receive(struct connection *c) {
    static char buffer[256 * 1024 + 1];
    bool error = false;
    ssize_t length = recv(c->fd, buffer, sizeof buffer - 1, 0);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        failed(c, length < 0 ? RECEIVE : CLOSED, length < 0 ? errno : 0);
        return;
    }
    buffer[length] = '\0';
    read_reply(&c->reply, buffer, (size_t)length, &error);
    if (error) count_error(REPLY, 0, buffer);
    if (c->reply.pending == 0) answered(c);
}

static void open_again(void) {
    unsigned count = waiting_count < OPENING_AT_ONCE ? waiting_count : OPENING_AT_ONCE;
    struct connection **again = waiting + (waiting_count -= count);
    /* Those that fail again overwrite the ones before them. */
    for (unsigned i = 0; i < count && may_start(); i++) begin(again[i], now());
}

static void serve_events(void) {
    static struct epoll_event events[EVENTS];
    bool retries = waiting_count > 0 && interval == 0;
    int count = epoll_wait(poll_fd, events, EVENTS, retries ? RETRY_MS : 100);
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        uint64_t ticks;
        if (c == NULL && read(timer_fd, &ticks, sizeof ticks) > 0) send_due();
        if (c == NULL || c->fd < 0) continue;
        if (c->sent) may_receive(c);
        else may_send(c);
    }
    if (retries) open_again();
}

/* Load goes to this machine and nowhere else: to a Unix socket, or a port of 127.0.0.1. */
static void set_target(const char *text) {
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(text))};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool is_path = strchr(text, '/') && strlen(text) < sizeof local.sun_path;
    if (is_path) strcpy(local.sun_path, text);
    target_length = is_path ? sizeof local : sizeof tcp;
    memcpy(&target, is_path ? (void *)&local : (void *)&tcp, target_length);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "isolate") == 0) return isolate(argv + 2);
    if (argc < 9) {
        fputs(usage, stderr);
        return 2;
    }
    mode = strcmp(argv[1], "short") == 0 ? SHORT : strcmp(argv[1], "long") == 0 ? LONG : HOLD;
    set_target(argv[2]);
    connection_count = (unsigned)atoi(argv[3]);
    double seconds = atof(argv[4]);
    replies_wanted = strtoull(argv[5], NULL, 10);
    double rate = atof(argv[6]);
    key_range = strtoull(argv[7], NULL, 10);
    build_payload(argv + 8, argc - 8);

    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the parent may be killed */
    signal(SIGINT, stop);
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct connection *connections = calloc(connection_count, sizeof *connections);
    waiting = calloc(connection_count, sizeof *waiting);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!connections || !waiting || poll_fd < 0) return 1;

    double demand = read_demand(), began = now();
    if (rate > 0) {
        interval = 1 / rate;
        tick();
    }
    for (unsigned i = 0; i < connection_count; i++) connections[i].fd = -1;
    for (unsigned i = 0; i < connection_count && may_start(); i++) begin(&connections[i], now());
    while (!stopped && (seconds == 0 || now() < began + seconds) &&
           (replies_wanted == 0 || completed < replies_wanted))
        serve_events();
    print_result(now() - began, read_demand() - demand);
    return 0;
}
