# Patch 0005 (freeing clients in slices), with the helpers of upstream's own suite: runs as
# tests/unit/onetrip-closing.tcl, without I/O threads and with them (--config io-threads 2), and with TLS.

# The far side of a client sees the end of its connection, and soon: well before a child that saves
# for a minute ends.
proc assert_ended {client} {
    set channel [$client channel]
    fconfigure $channel -blocking 0
    # With TLS, reading from a connection that has ended may be an error.
    wait_for_condition 100 20 {
        [catch {read $channel} rest] || ($rest eq {} && [eof $channel])
    } else {
        fail "the connection is still open"
    }
    $client close
}

proc client_with_id {idvar} {
    upvar $idvar id
    set client [redis_deferring_client]
    $client client id
    set id [$client read]
    return $client
}

proc write_at_once {commands} {
    set connect [expr {$::tls ? "::tls::socket" : "socket"}]
    set channel [$connect [srv 0 host] [srv 0 port]]
    fconfigure $channel -translation binary
    puts -nonewline $channel $commands
    flush $channel
    return $channel
}

# A child that saves or rewrites for as long as it is not killed.
proc with_child {kind body} {
    r set key value
    r config set rdb-key-save-delay 60000000
    set failed [catch {
        uplevel 1 $body
        wait_for_condition 50 20 {[s $kind] == 1} else {fail "there is no child"}
    } message options]
    r config set rdb-key-save-delay 0
    catch {exec kill -9 [get_child_pid 0]}
    wait_for_condition 100 50 {[s $kind] == 0} else {fail "the child has not ended"}
    if {$failed} {return -options $options $message}
}

start_server {tags {"external:skip"} overrides {save "" appendonly no maxclients 100}} {
    test {a client that is killed sees its end, and is gone from CLIENT LIST and INFO at once} {
        for {set j 0} {$j < 50} {incr j} {
            set clients($j) [client_with_id ids($j)]
        }
        assert_equal 51 [s connected_clients]
        for {set j 0} {$j < 50} {incr j} {
            assert_equal 1 [r client kill id $ids($j)]
            assert_equal [expr {50 - $j}] [s connected_clients]
            assert_no_match "*id=$ids($j) *" [r client list]
        }
        for {set j 0} {$j < 50} {incr j} {assert_ended $clients($j)}
    }

    test {many clients that are killed by one command see their end, and are gone at once} {
        for {set j 0} {$j < 90} {incr j} {
            set clients($j) [client_with_id ids($j)]
        }
        r multi
        r client kill type normal
        r client kill type normal
        r client kill id $ids(89)
        r client list
        set replies [r exec]
        assert_equal {90 0 0} [lrange $replies 0 2]
        assert_equal 1 [llength [regexp -all -inline { cmd=} [lindex $replies 3]]]
        for {set j 0} {$j < 90} {incr j} {assert_ended $clients($j)}
    }

    test {all replies come before the end that QUIT asked for} {
        for {set round 0} {$round < 20} {incr round} {
            set client [redis_deferring_client]
            for {set j 0} {$j < 100} {incr j} {$client echo $j}
            $client quit
            for {set j 0} {$j < 100} {incr j} {assert_equal $j [$client read]}
            assert_equal OK [$client read]
            assert_ended $client
        }
    }

    test {a reply of some megabytes comes whole before the end that QUIT asked for} {
        r set big [string repeat x 4000000]
        set client [redis_deferring_client]
        $client get big
        $client quit
        assert_equal 4000000 [string length [$client read]]
        assert_equal OK [$client read]
        assert_ended $client
        r del big
    }

    test {a client that has only stopped sending gets its reply and sees its end} {
        for {set j 0} {$j < 100} {incr j} {
            set channel [socket [srv 0 host] [srv 0 port]]
            fconfigure $channel -translation binary
            puts -nonewline $channel "PING\r\n"
            close $channel write
            assert_equal "+PONG\r\n" [read $channel]
            close $channel
        }
    } {} {tls:skip}

    test {maxclients is exact while clients come and go} {
        wait_for_condition 50 20 {[s connected_clients] == 1} else {fail "clients are left"}
        set rejected [s rejected_connections]
        for {set round 0} {$round < 5} {incr round} {
            for {set j 0} {$j < 99} {incr j} {set clients($j) [client_with_id ids($j)]}
            assert_equal 100 [s connected_clients]
            set refused [socket [srv 0 host] [srv 0 port]]
            # With TLS there was no handshake, so nothing can be said.
            set reason [expr {$::tls ? {} : {-ERR max number of clients reached*}}]
            assert_match $reason [gets $refused]
            close $refused
            # As many as are killed fit in again, at once.
            for {set j 0} {$j < 30} {incr j} {r client kill id $ids($j)}
            for {set j 100} {$j < 130} {incr j} {set clients($j) [client_with_id ids($j)]}
            assert_equal 100 [s connected_clients]
            foreach j [array names clients] {$clients($j) close}
            array unset clients
            wait_for_condition 100 20 {[s connected_clients] == 1} else {fail "clients are left"}
            assert_equal [incr rejected] [s rejected_connections]
        }
    }

    foreach {command kind} {bgsave rdb_bgsave_in_progress bgrewriteaof aof_rewrite_in_progress} {
        test "clients that are there when $command forks see their end while the child lives" {
            for {set j 0} {$j < 20} {incr j} {set clients($j) [client_with_id ids($j)]}
            with_child $kind {
                r $command
                wait_for_condition 50 20 {[s $kind] == 1} else {fail "there is no child"}
                for {set j 0} {$j < 10} {incr j} {r client kill id $ids($j)}
                for {set j 10} {$j < 20} {incr j} {$clients($j) quit; $clients($j) read}
                for {set j 0} {$j < 20} {incr j} {assert_ended $clients($j)}
            }
        }

        test "clients that are killed right before $command forks see their end while the child lives" {
            for {set j 0} {$j < 90} {incr j} {set clients($j) [client_with_id ids($j)]}
            with_child $kind {
                # One write, so one turn of the event loop: most have left and are not freed when Redis forks.
                set kills {}
                for {set j 0} {$j < 90} {incr j} {append kills "CLIENT KILL ID $ids($j)\r\n"}
                set killer [write_at_once "$kills$command\r\n"]
                for {set j 0} {$j < 90} {incr j} {assert_ended $clients($j)}
                close $killer
            }
        }

        test "clients that come and go while $command runs see their end, and nothing spins" {
            with_child $kind {
                r $command
                wait_for_condition 50 20 {[s $kind] == 1} else {fail "there is no child"}
                for {set j 0} {$j < 50} {incr j} {
                    set client [redis_deferring_client]
                    $client quit
                    assert_equal OK [$client read]
                    assert_ended $client
                }
                wait_for_condition 100 20 {[s connected_clients] == 1} else {fail "clients are left"}
                # A descriptor that was left in epoll would fire without end.
                set turns [s eventloop_cycles]
                after 300
                assert_lessthan [expr {[s eventloop_cycles] - $turns}] 1000
            }
        }
    }

    test {clients that are killed before a slow command of the same turn see their end after it} {
        for {set j 0} {$j < 90} {incr j} {set clients($j) [client_with_id ids($j)]}
        r multi
        r client kill type normal
        r debug sleep 0.2
        r exec
        for {set j 0} {$j < 90} {incr j} {assert_ended $clients($j)}
    }
}

start_server {tags {"external:skip"} overrides {save ""}} {
    test {clients that are gone see their end before a slow shutdown is over} {
        r set key value
        r config set rdb-key-save-delay 60000000
        for {set j 0} {$j < 90} {incr j} {set clients($j) [client_with_id id]}
        set killer [write_at_once "CLIENT KILL TYPE normal\r\nSHUTDOWN SAVE\r\n"]
        for {set j 0} {$j < 90} {incr j} {assert_ended $clients($j)}
        close $killer
        assert [process_is_alive [srv 0 pid]]
        exec kill -9 [srv 0 pid]
    }
}
