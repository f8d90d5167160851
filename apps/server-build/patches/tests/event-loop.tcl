# Patches 0003 (maxfd is an upper bound) and 0006 (registered once); see closing.tcl. With TLS, tests with
# thousands of connections are left out: Tcl needs 60 ms for each.

start_server {tags {"external:skip"} overrides {save "" maxclients 1500}} {
    proc open_clients {count} {
        set clients {}
        for {set j 0} {$j < $count} {incr j} {lappend clients [redis_deferring_client]}
        return $clients
    }

    test {more connections than the first event table has slots, closed in either order} {
        foreach order {-increasing -decreasing} {
            set clients [open_clients 1200]
            foreach client $clients {$client ping}
            foreach client $clients {assert_equal PONG [$client read]}
            assert_equal 1201 [s connected_clients]
            if {$order eq {-decreasing}} {set clients [lreverse $clients]}
            foreach client $clients {$client close}
            wait_for_condition 100 50 {[s connected_clients] == 1} else {fail "clients are left"}
        }
    } {} {tls:skip}

    test {CONFIG SET maxclients resizes the event table with holes in it} {
        set clients [open_clients 1000]
        foreach client $clients {$client ping; $client read}
        # Every other one goes, and the highest.
        set kept {}
        foreach {one two} $clients {$one close; lappend kept $two}
        [lindex $kept end] close
        set kept [lrange $kept 0 end-1]
        wait_for_condition 100 50 {[s connected_clients] == 500} else {fail "clients are left"}
        r config set maxclients 2000
        set more [open_clients 1400]
        foreach client [concat $kept $more] {$client ping}
        foreach client [concat $kept $more] {assert_equal PONG [$client read]}
        foreach client [concat $kept $more] {$client close}
    } {} {tls:skip}

    test {a client that has sent its command before it is accepted is served} {
        set connect [expr {$::tls ? "::tls::socket" : "socket"}]
        for {set j 0} {$j < 200} {incr j} {
            set channel [$connect [srv 0 host] [srv 0 port]]
            puts -nonewline $channel "PING\r\nQUIT\r\n"
            flush $channel
            assert_equal {+PONG} [string trim [gets $channel]]
            assert_equal {+OK} [string trim [gets $channel]]
            assert_equal {} [gets $channel]
            assert [eof $channel]
            close $channel
        }
    }

    test {a client that has gone before it is accepted leaves nothing} {
        wait_for_condition 100 50 {[s connected_clients] == 1} else {fail "clients are left"}
        r config set maxclients 2000
        for {set j 0} {$j < 200} {incr j} {
            set channel [socket [srv 0 host] [srv 0 port]]
            if {$j % 2} {puts -nonewline $channel "GET key\r\nGE"}
            close $channel
        }
        wait_for_condition 100 50 {[s connected_clients] == 1} else {fail "clients are left"}
    }
}
