package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// send sends or queues the commands of a view.
func send(to redis.Cmdable, id, item string) (user *redis.StringCmd, all []redis.Cmder) {
	ctx, now := context.Background(), now()
	all = []redis.Cmder{
		to.ZAddXX(ctx, "recent:", redis.Z{Score: now, Member: id}),
		to.ZAdd(ctx, "viewed:"+id, redis.Z{Score: now, Member: item}),
		to.ZRemRangeByRank(ctx, "viewed:"+id, 0, -26),
		to.ZIncrBy(ctx, "viewed:", -1, item),
	}
	user = to.HGet(ctx, "login:", id)
	return user, append(all, user)
}

func goRedisPipelined(address string) view {
	client := redis.NewClient(&redis.Options{Addr: address})
	return func(id, item string) (string, error) {
		var user *redis.StringCmd
		_, err := client.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
			user, _ = send(pipe, id, item)
			return nil
		})
		if err != nil {
			return "", err
		}
		return user.Val(), nil
	}
}

func goRedisAuto(address string) view {
	client, err := redis.NewClient(&redis.Options{Addr: address}).AsyncAutoPipeline()
	must(err)
	return func(id, item string) (string, error) {
		user, all := send(client, id, item)
		for _, reply := range all {
			if err := reply.Err(); err != nil {
				return "", err
			}
		}
		return user.Val(), nil
	}
}
