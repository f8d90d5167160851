# What event-loop.tcl does not cover. No test measures time.

# 0004. On a build with the address sanitizer it fails without the patch.
start_server {tags {"limits" "external:skip"} overrides {save "" maxclients 1100}} {
    test {a client is refused with the first descriptor beyond the event table} {
        set clients {}
        # The event table starts with 1,024 slots.
        for {set j [llength [glob /proc/[srv 0 pid]/fd/*]]} {$j < 1024} {incr j} {
            lappend clients [redis_deferring_client]
        }
        foreach client $clients {$client ping}
        foreach client $clients {assert_equal PONG [$client read]}
        r config set maxclients [expr {[llength $clients] + 1}]
        for {set j 0} {$j < 20} {incr j} {
            set refused [socket [srv 0 host] [srv 0 port]]
            assert_match {-ERR max number of clients reached*} [gets $refused]
            close $refused
        }
        foreach client $clients {$client close}
    } {} {tls:skip}
}

# 0007
start_server {tags {"external:skip"} overrides {save "" io-threads 8 hz 500 dynamic-hz no}} {
    test {clients are served while more I/O threads than cores are paused often} {
        set clients {}
        for {set j 0} {$j < 100} {incr j} {lappend clients [redis_deferring_client]}
        for {set round 0} {$round < 50} {incr round} {
            foreach client $clients {$client ping}
            foreach client $clients {assert_equal PONG [$client read]}
        }
        foreach client $clients {$client close}
    } {} {tls:skip}
}

# 0008
start_server {tags {"network" "external:skip"} overrides {save ""}} {
    test {protected mode accepts local clients over IPv4 and IPv6} {
        foreach host {127.0.0.1 127.0.0.2 ::1} {
            # Not every machine has IPv6.
            if {[catch {set client [redis $host [srv 0 port] 0 $::tls]}]} continue
            assert_equal PONG [$client ping]
            $client close
        }
        assert_equal 0 [s rejected_connections]
    }
}
