// Package main runs a Go client like load/clients/support/run.ts runs those for Node.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

type plan struct {
	URL      string
	Sessions []struct{ ID, User string }
	Items    []string
	WarmUp   float64
	Seconds  float64
}

// view records a page view and returns the user of the session.
type view func(id, item string) (string, error)

var clients = map[string]func(address string) view{
	"rueidis":       rueidisDoMulti,
	"go-redis":      goRedisPipelined,
	"go-redis-auto": goRedisAuto,
}

func main() {
	input := json.NewDecoder(os.Stdin)
	var p plan
	must(input.Decode(&p))
	address, err := url.Parse(p.URL)
	must(err)
	view := clients[os.Args[1]](address.Host)
	wait := func() {
		var line any
		must(input.Decode(&line))
	}

	fmt.Printf("{\"views\":%d}\n", len(callFor(view, p, p.WarmUp)))
	wait()
	latencies := callFor(view, p, p.Seconds)
	fmt.Printf("{\"views\":%d}\n", len(latencies))
	wait()
	slices.Sort(latencies)
	milliseconds := func(share float64) float64 {
		return latencies[int(float64(len(latencies)-1)*share)].Seconds() * 1000
	}
	fmt.Printf("{\"p50\":%f,\"p99\":%f}\n", milliseconds(0.5), milliseconds(0.99))
	wait()
}

// callFor returns the latencies of all calls. Each caller is a goroutine.
func callFor(view view, p plan, seconds float64) []time.Duration {
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	own := make([][]time.Duration, len(p.Sessions))
	var callers sync.WaitGroup
	for index, session := range p.Sessions {
		callers.Go(func() {
			at := index * len(p.Items) / len(p.Sessions)
			begun := time.Now()
			for again := true; again; at++ {
				user, err := view(session.ID, p.Items[at%len(p.Items)])
				must(err)
				if user != session.User {
					log.Fatalf("the user of the session is %q", user)
				}
				end := time.Now()
				own[index] = append(own[index], end.Sub(begun))
				begun, again = end, end.Before(until)
			}
		})
	}
	callers.Wait()
	return slices.Concat(own...)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func now() float64 { return float64(time.Now().UnixMilli()) / 1000 }
