/* A module that deletes an event and forks while it is loaded, before Redis has started
 * its background threads. Declares the functions of redismodule.h that it uses, because
 * that file is part of Redis's source. */

#define API_VERSION 1
#define READABLE 1
#define FIRST_DESCRIPTOR_WITHOUT_A_SLOT 1024

int RedisModule_OnLoad(void *ctx) {
    int (*get_api)(const char *name, void *function) = ((void **)ctx)[0];
    void (*set_attributes)(void *ctx, const char *name, int version, int api_version);
    int (*fork_child)(void *on_done, void *data);
    int (*exit_from_child)(int code);
    int (*delete_event)(int fd, int mask);
    get_api("RedisModule_SetModuleAttribs", &set_attributes);
    get_api("RedisModule_Fork", &fork_child);
    get_api("RedisModule_ExitFromChild", &exit_from_child);
    get_api("RedisModule_EventLoopDel", &delete_event);

    set_attributes(ctx, "limits", 1, API_VERSION);
    delete_event(FIRST_DESCRIPTOR_WITHOUT_A_SLOT, READABLE);
    int child = fork_child(0, 0);
    if (child == 0) exit_from_child(0);
    return child > 0 ? 0 : 1;
}
