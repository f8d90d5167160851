/* A module for tests. Declares the functions of redismodule.h that it uses, because that file is part of Redis's
 * source. While it is loaded, before Redis has started its background threads, it deletes an event and forks.
 * Commands: `module.left` returns how many clients have left, and could still be looked up in the event;
 * `module.fork` forks from a thread, as soon as the main thread lets it. */

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#define API_VERSION 1
#define READABLE 1
#define FIRST_DESCRIPTOR_WITHOUT_A_SLOT 1024
#define CLIENT_CHANGE 4
#define DISCONNECTED 1

typedef struct { uint64_t id, version; } event;
typedef struct { uint64_t version, flags, id; } client_info;

static void *(*get_client_name)(void *ctx, uint64_t id);
static void (*free_string)(void *ctx, void *string);
static int (*reply_with_number)(void *ctx, long long number);
static int (*fork_child)(void *on_done, void *data);
static void *(*create_context)(void *blocked_client);
static void (*lock)(void *ctx);
static void (*unlock)(void *ctx);
static long long left;

static void on_client(void *ctx, event which, uint64_t what, void *data) {
    (void)which;
    if (what != DISCONNECTED) return;
    void *name = get_client_name(ctx, ((client_info *)data)->id);
    if (name) left++;
    if (name) free_string(ctx, name);
}

static int reply_left(void *ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    return reply_with_number(ctx, left);
}

static void *fork_in_thread(void *unused) {
    (void)unused;
    void *ctx = create_context(0);
    lock(ctx);
    if (fork_child(0, 0) == 0) for (;;) pause(); /* until Redis ends */
    unlock(ctx);
    return 0;
}

static int start_thread(void *ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    pthread_t thread;
    return reply_with_number(ctx, pthread_create(&thread, 0, fork_in_thread, 0));
}

int RedisModule_OnLoad(void *ctx) {
    int (*get_api)(const char *name, void *function) = ((void **)ctx)[0];
    void (*set_attributes)(void *ctx, const char *name, int version, int api_version);
    int (*create_command)(void *ctx, const char *name, void *run, const char *flags, int first, int last, int step);
    int (*subscribe)(void *ctx, event which, void *on_event);
    int (*exit_from_child)(int code);
    int (*delete_event)(int fd, int mask);
    get_api("RedisModule_SetModuleAttribs", &set_attributes);
    get_api("RedisModule_CreateCommand", &create_command);
    get_api("RedisModule_SubscribeToServerEvent", &subscribe);
    get_api("RedisModule_GetClientNameById", &get_client_name);
    get_api("RedisModule_FreeString", &free_string);
    get_api("RedisModule_ReplyWithLongLong", &reply_with_number);
    get_api("RedisModule_GetThreadSafeContext", &create_context);
    get_api("RedisModule_ThreadSafeContextLock", &lock);
    get_api("RedisModule_ThreadSafeContextUnlock", &unlock);
    get_api("RedisModule_Fork", &fork_child);
    get_api("RedisModule_ExitFromChild", &exit_from_child);
    get_api("RedisModule_EventLoopDel", &delete_event);

    set_attributes(ctx, "limits", 1, API_VERSION);
    create_command(ctx, "module.left", reply_left, "readonly", 0, 0, 0);
    create_command(ctx, "module.fork", start_thread, "readonly", 0, 0, 0);
    event clients = {CLIENT_CHANGE, 1};
    subscribe(ctx, clients, on_client);
    delete_event(FIRST_DESCRIPTOR_WITHOUT_A_SLOT, READABLE);
    int child = fork_child(0, 0);
    if (child == 0) exit_from_child(0);
    return child > 0 ? 0 : 1;
}
