/* A load generator for Redis on this machine. It has one thread and one epoll loop, and its work per event does not
 * depend on the number of connections. */
#define _GNU_SOURCE
#include "protocol.h"
#include "isolate.h"
#include "result.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>

#define EVENTS 512
#define RETRY_MS 1          /* pause after a failed connection */
#define OPENING_AT_ONCE 128 /* retries per pause: fewer than any backlog */
#define SOURCES 200         /* TCP connections use the 200 addresses after the server's in turn */
#define DISCARDED 4096      /* bytes: to discard a shorter reply costs as much as to read it */
#define SETTLE_SECONDS 1    /* wait for missing replies at the end */

static const char usage[] =
    "usage: generator short|spread|long|discard|hold SOCKET|ADDRESS:PORT CONNECTIONS SECONDS REPLIES RATE\n"
    "                 KEYS PIPELINE COMMAND... [';' COMMAND...]...\n"
    "       generator isolate PROGRAM [ARGUMENT...]\n"
    "0 for SECONDS, REPLIES or RATE means no limit. SIGINT ends the run early. discard is like long, but works\n"
    "over TCP only: it does not read large replies, only counts their bytes. They must all have the same length.\n"
    "spread is like short, but with a rate, only the first connections are opened at the same time.\n";

static enum { SHORT, LONG, HOLD } mode;
static bool discards;
static struct sockaddr_storage target;
static socklen_t target_length;
static uint32_t target_address; /* IPv4 */
static uint64_t replies_wanted;

struct connection {
    int fd;
    struct request *request;
    size_t sent;       /* bytes of the request */
    uint64_t received; /* bytes of the replies */
    double began;      /* in seconds, like all times */
    struct reply reply;
};

static unsigned connection_count, waiting_count;
static struct connection **waiting; /* for another attempt to connect; with a rate, for the next request */
static double interval, due;        /* with a rate: time between requests, and when the next one is due */
static unsigned at_once = 1;        /* with a rate: requests that are due at the same time */
static int poll_fd, timer_fd;
static uint64_t started; /* requests */
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
    fprintf(stderr, "%s: %s\n", steps[step], what); /* in this mode, every connection must succeed */
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

/* An address has only about 28,000 ports, and a closed connection holds its port for a minute. */
static int bind_to_next_source(int fd) {
    static unsigned turn;
    const int on = 1;
    struct sockaddr_in source = {.sin_family = AF_INET};
    source.sin_addr.s_addr = htonl(target_address + 1 + turn++ % SOURCES);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return bind(fd, (struct sockaddr *)&source, sizeof source);
}

static bool is_sent(const struct connection *c) { return c->sent == c->request->length; }

/* Sends as much as fits into the socket's buffer. Sends nothing before the socket is connected. Returns false if
 * the connection failed. */
static bool send_rest(struct connection *c) {
    size_t rest = c->request->length - c->sent;
    ssize_t sent = send(c->fd, c->request->bytes + c->sent, rest, MSG_NOSIGNAL);
    if (sent >= 0) c->sent += (size_t)sent;
    /* Before it closed the connection, the server may have sent the reason: read it. */
    else if (errno == EPIPE) c->sent = c->request->length;
    else if (errno != EAGAIN && errno != ENOTCONN) {
        failed(c, SEND, errno);
        return false;
    }
    return true;
}

static void watch(struct connection *c, int operation) {
    struct epoll_event event = {.events = is_sent(c) ? EPOLLIN : EPOLLOUT, .data.ptr = c};
    if (epoll_ctl(poll_fd, operation, c->fd, &event) < 0) failed(c, CONNECT, errno);
}

static void open_connection(struct connection *c) {
    const int on = 1;
    bool tcp = target.ss_family == AF_INET;
    c->fd = socket(target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Without TCP_NODELAY, the end of a long request would wait for the acknowledgement of its beginning. */
    if (tcp && mode == LONG) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (c->fd < 0 || (tcp && bind_to_next_source(c->fd))) {
        failed(c, CONNECT, errno);
    } else if (connect(c->fd, (struct sockaddr *)&target, target_length) == 0 || errno == EINPROGRESS) {
        /* On loopback the handshake is already complete, although connect() returns EINPROGRESS. */
        if (send_rest(c)) watch(c, EPOLL_CTL_ADD);
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
    else if (send_rest(c) && is_sent(c)) watch(c, EPOLL_CTL_MOD);
}

static bool may_start(void) {
    return !stopped && (!replies_wanted || started * pipeline < replies_wanted);
}

static void begin(struct connection *c, double began) {
    c->request = &requests[started++ % request_count];
    c->sent = c->received = 0;
    c->reply = (struct reply){.pending = pipeline};
    c->began = began;
    if (c->fd < 0) open_connection(c);
    else if (send_rest(c) && !is_sent(c)) watch(c, EPOLL_CTL_MOD);
}

/* Latency is measured from when a command is due, not from when a connection is free. Otherwise a stalled server
 * would receive fewer commands, and the stall would hardly show (coordinated omission). */
static void send_due(void) {
    for (double time = now(); waiting_count > 0 && due <= time && may_start(); due += interval)
        for (unsigned i = 0; i < at_once && waiting_count > 0; i++)
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
    record(c->began, now(), pipeline);
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
    uint64_t known = *c->request->reply_length;
    bool discarded = discards && known >= DISCARDED;
    if (discarded && c->received == known) return; /* check_lengths counts further bytes as an error */
    /* With MSG_TRUNC, the kernel discards the bytes of a TCP connection without copying them. */
    ssize_t length = discarded ? recv(c->fd, NULL, known - c->received, MSG_TRUNC)
                               : recv(c->fd, buffer, sizeof buffer - 1, 0);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        failed(c, length < 0 ? RECEIVE : CLOSED, length < 0 ? errno : 0);
        return;
    }
    c->received += (uint64_t)length;
    if (discarded) {
        if (c->received == known) answered(c);
        return;
    }
    uint32_t errors_before = c->reply.errors;
    buffer[length] = '\0';
    read_reply(&c->reply, buffer, (size_t)length);
    for (uint32_t i = errors_before; i < c->reply.errors; i++) count_error(REPLY, 0, buffer);
    if (c->reply.pending > 0) return;
    if (c->reply.errors == 0) *c->request->reply_length = c->received;
    answered(c);
}

static void open_again(void) {
    unsigned count = waiting_count < OPENING_AT_ONCE ? waiting_count : OPENING_AT_ONCE;
    struct connection **again = waiting + (waiting_count -= count);
    /* Connections that fail again overwrite entries that have been read already. */
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
        if (is_sent(c)) may_receive(c);
        else may_send(c);
    }
    if (retries) open_again();
}

/* Only the number of bytes of discarded replies is known. A reply that was too long leaves bytes behind, and one that
 * was too short never completes. */
static void check_lengths(const struct connection *connections) {
    char byte;
    stopped = 1;
    for (double end = now() + SETTLE_SECONDS; completed < started * pipeline && now() < end;)
        serve_events();
    if (completed < started * pipeline) errors[LENGTH][0] += started - completed / pipeline;
    for (unsigned i = 0; i < connection_count; i++)
        if (recv(connections[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) errors[LENGTH][0]++;
}

/* The target is always on this machine: the path of a Unix socket, or an IPv4 address and a port. Returns false if the
 * text is neither. */
static bool set_target(char *text) {
    struct sockaddr_in tcp = {.sin_family = AF_INET};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    if (strchr(text, '/')) {
        if (strlen(text) >= sizeof local.sun_path) return false;
        strcpy(local.sun_path, text);
        memcpy(&target, &local, target_length = sizeof local);
        return true;
    }
    char *colon = strchr(text, ':');
    if (!colon) return false;
    *colon = '\0';
    tcp.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, text, &tcp.sin_addr) != 1) return false;
    target_address = ntohl(tcp.sin_addr.s_addr);
    memcpy(&target, &tcp, target_length = sizeof tcp);
    return true;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "isolate") == 0) return isolate(argv + 2);
    discards = argc > 1 && strcmp(argv[1], "discard") == 0;
    if (argc < 10 || !set_target(argv[2]) || (discards && target.ss_family != AF_INET)) {
        fputs(usage, stderr);
        return 2;
    }
    bool spreads = strcmp(argv[1], "spread") == 0;
    mode = spreads || strcmp(argv[1], "short") == 0 ? SHORT : strcmp(argv[1], "hold") == 0 ? HOLD : LONG;
    connection_count = (unsigned)atoi(argv[3]);
    double seconds = atof(argv[4]);
    replies_wanted = strtoull(argv[5], NULL, 10);
    double rate = atof(argv[6]);
    key_range = strtoull(argv[7], NULL, 10);
    pipeline = (unsigned)atoi(argv[8]);
    prepare_requests(argv + 9, argc - 9);

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
    window_began = began;
    if (rate > 0) {
        if (mode == SHORT && !spreads) at_once = connection_count;
        interval = at_once * pipeline / rate;
        tick();
    }
    for (unsigned i = 0; i < connection_count; i++) connections[i].fd = -1;
    for (unsigned i = 0; i < connection_count && may_start(); i++) begin(&connections[i], now());
    while (!stopped && (seconds == 0 || now() < began + seconds) &&
           (replies_wanted == 0 || completed < replies_wanted))
        serve_events();
    if (discards) check_lengths(connections);
    print_result(began, now(), read_demand() - demand);
    return 0;
}
