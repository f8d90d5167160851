package main

import (
	"context"

	"github.com/redis/rueidis"
)

func rueidisDoMulti(address string) view {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	must(err)
	ctx := context.Background()
	return func(id, item string) (string, error) {
		now := now()
		replies := client.DoMulti(ctx,
			client.B().Zadd().Key("recent:").Xx().ScoreMember().ScoreMember(now, id).Build(),
			client.B().Zadd().Key("viewed:"+id).ScoreMember().ScoreMember(now, item).Build(),
			client.B().Zremrangebyrank().Key("viewed:"+id).Start(0).Stop(-26).Build(),
			client.B().Zincrby().Key("viewed:").Increment(-1).Member(item).Build(),
			client.B().Hget().Key("login:").Field(id).Build(),
		)
		for _, reply := range replies {
			if err := reply.Error(); err != nil {
				return "", err
			}
		}
		return replies[4].ToString()
	}
}
