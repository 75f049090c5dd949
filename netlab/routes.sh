# Sourced by cases with feeds: compares the router's routes with the kernel's.

routes_of() { # BEGINNING: how many routes of the router begin so
  "$fibula" route show --router="$work/socket" | grep -c "^$1" || true
}

reaches() { # BEGINNING COUNT: so many routes of the router begin so, before long
  local n
  for n in $(seq $((100 * ${SLOW:-1}))); do
    [ "$(routes_of "$1")" = "$2" ] && return
    sleep 0.1
  done
  fail "$(routes_of "$1") routes of $2 in $1: $("$fibula" router feeds --socket "$work/socket"); $(tail -qn 3 "$work"/*.log "$work/log")"
}

kernel_routes() { # of the table main, as tables.py writes them
  { ip -n "$id-r" -j -4 route show; echo; ip -n "$id-r" -j -6 route show; } | ./tables.py kernel
}

router_routes() {
  "$fibula" route show --router="$work/socket" --format json-line |
    ./tables.py router 10.0.1.0/24 10.0.2.0/24 fd00:1::/64 fd00:2::/64
}

same_as_kernel() { # the router has the routes of the kernel, before long
  local n
  sleep 0.3
  for n in $(seq $((60 * ${SLOW:-1}))); do
    kernel_routes >"$work/kernel"
    router_routes >"$work/router"
    cmp -s "$work/kernel" "$work/router" && return
    sleep 0.1
  done
  fail "not the kernel's routes: $(diff "$work/kernel" "$work/router" | head -5); $("$fibula" router feeds --socket "$work/socket"); $(tail -3 "$work/log")"
}

verified() { # RIB, tables and the kernel agree, as the router says itself
  "$fibula" router verify --socket "$work/socket" >"$work/verify" || fail "$(cat "$work/verify")"
}

has_frr() { # or the case is skipped
  PATH=$PATH:/usr/lib/frr
  for name in zebra bgpd vtysh; do have $name; done
  [ -n "$(find /usr/lib -path '*/frr/modules/dplane_fpm_nl.so' 2>/dev/null)" ] || skip "no module dplane_fpm_nl of zebra"
}
