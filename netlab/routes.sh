# Sourced by cases with feeds: compares the router's routes with the kernel's.

routes_of() { # BEGINNING: how many routes of the router begin so
  "$fibula" route show --router="$work/socket" | grep -c "^$1" || true
}

reaches() { # BEGINNING COUNT: so many routes of the router begin so, before long
  local n
  for n in $(seq 100); do
    [ "$(routes_of "$1")" = "$2" ] && return
    sleep 0.1
  done
  fail "$(routes_of "$1") routes of $2 in $1: $("$fibula" router feeds --socket "$work/socket"); $(tail -qn 3 "$work"/*.log "$work/log")"
}

# A line a route of the table main: prefix, gateways and devices, or what it is instead; those of the machine's own networks and
# link-local ones are left out.
kernel_routes() {
  { ip -n "$id-r" -j -4 route show; echo; ip -n "$id-r" -j -6 route show; } | python3 -c '
import ipaddress, json, sys
best = {}
text = sys.stdin.read()
decoder = json.JSONDecoder()
at = 0
while at < len(text):
    if text[at].isspace():
        at += 1
        continue
    routes, at = decoder.raw_decode(text, at)
    for route in routes:
        dst = route["dst"]
        if dst == "default":
            dst = "::/0" if ":" in str(route.get("gateway", "")) else "0.0.0.0/0"
        net = ipaddress.ip_network(dst)
        if route.get("protocol") == "kernel" or net.is_link_local or net.is_multicast:
            continue
        kind = route.get("type", "unicast")
        if kind != "unicast":
            leads = kind
        else:
            ways = [w for w in route.get("nexthops") or [route] if "dead" not in w.get("flags", [])]
            leads = " ".join(sorted("%s@%s" % ((w.get("gateway") or w.get("via", {}).get("host") or "-"), w["dev"]) for w in ways))
        metric = route.get("metric", 0)
        if net not in best or metric < best[net][0]:
            best[net] = (metric, leads)
for net in sorted(best, key=str):
    print(net, best[net][1])'
}

router_routes() { # the same of the router
  "$fibula" route show --router="$work/socket" --format json-line | python3 -c '
import ipaddress, json, sys
own = set(map(ipaddress.ip_network, ["10.0.1.0/24", "10.0.2.0/24", "fd00:1::/64", "fd00:2::/64"]))
lines = {}
for line in sys.stdin:
    route = json.loads(line)
    net, hop = ipaddress.ip_network(route["prefix"]), route["next_hop"]
    if hop == "local" or net in own:
        continue
    if isinstance(hop, str):
        leads = hop
    else:
        ways = hop if isinstance(hop, list) else [hop]
        leads = " ".join(sorted("%s@%s" % (w.get("via", "-"), w["interface"]) for w in ways))
    lines[net] = leads
for net in sorted(lines, key=str):
    print(net, lines[net])'
}

same_as_kernel() { # the router has the routes of the kernel, before long
  local n
  sleep 0.3
  for n in $(seq 60); do
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
