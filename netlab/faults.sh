# Sourced by cases with faults and by netlab/soak, after lib.sh: two halves of one network, each with 1,000 routes and a VRF of its own.
#   half 0, FRR:  BIRD in b tells bgpd in r, zebra tells the router by FPM, and the kernel's table main. VRF default.
#   half 1, BIRD: BIRD in b tells BIRD in r, which writes the kernel's table 100, and the router follows that. VRF bird.
# In each, H being its number: a aH 10.H.1.2 - r leftH 10.H.1.1; r rightH 10.H.2.1 - b bH 10.H.2.2; r otherH 10.H.3.1 - b otherH
# 10.H.3.2; fd0H:1::, fd0H:2:: and fd0H:3:: are the same of IPv6. Routes that stay, by rightH: 10.6H.0-49.0/24 and fd6H:0-49::/48;
# those that change, by rightH or otherH: 700 of 30.H*4.0.0/14 and 2001:db8:H000-H199::/48.
. ./routes.sh
have python3
have bird
halves=${halves:-0 1}
[[ $halves != *0* ]] || has_frr
folder=/var/run/frr/$id
declare -A pid=() # of each daemon
declare -A told=() # of each half: FIRST LAST SPLIT of what its speaker announces
at_end() {
  set +e
  # The shell would tell of each that is killed.
  exec 2>/dev/null
  kill -KILL "${pid[@]}" 2>/dev/null
  rm -rf "$folder" "/etc/frr/$id"
  clean
}
trap at_end EXIT

half_network() { # HALF
  local h=$1
  cable a "a$h" r "left$h"
  cable b "b$h" r "right$h"
  cable b "other$h" r "other$h"
  address a "a$h" "10.$h.1.2/24" "fd0$h:1::2/64"
  address b "b$h" "10.$h.2.2/24" "fd0$h:2::2/64"
  address b "other$h" "10.$h.3.2/24" "fd0$h:3::2/64"
  address r "left$h" "10.$h.1.1/24" "fd0$h:1::1/64"
  address r "right$h" "10.$h.2.1/24" "fd0$h:2::1/64"
  address r "other$h" "10.$h.3.1/24" "fd0$h:3::1/64"
  ip -n "$id-a" route add "10.6$h.0.0/16" via "10.$h.1.1"
  ip -n "$id-a" -6 route add "fd6$h::/16" via "fd0$h:1::1"
  ip -n "$id-b" route add "10.$h.1.0/24" via "10.$h.2.1"
  ip -n "$id-b" -6 route add "fd0$h:1::/64" via "fd0$h:2::1"
  ip -n "$id-b" route add local "10.6$h.0.0/16" dev lo
  ip -n "$id-b" -6 route add local "fd6$h::/16" dev lo
}

faults_configuration() {
  local h name
  echo "socket = \"$work/socket\""
  printf '[[vrf]]\nname = "bird"\n'
  for h in $halves; do
    for name in left right other; do
      printf '[[interface]]\nname = "%s"\ndevice = "%s"\nvrf = "%s"\n' "$name$h" "$name$h" "$(vrf_of "$h")"
    done
  done
  [[ $halves != *0* ]] || printf '[[feed]]\nname = "zebra"\nkind = "fpm"\nkeep = 60\nsweep = 25\n'
  [[ $halves != *1* ]] || printf '[[feed]]\nname = "kernel"\nkind = "kernel"\ntables = [{ table = 100, vrf = "bird" }]\n'
}

vrf_of() { # HALF
  [ "$1" = 0 ] && echo default || echo bird
}

# The speaker in b announces the changing routes FIRST to LAST, those below SPLIT by rightH, the others by otherH.
speaker_routes() { # HALF FIRST LAST SPLIT
  local h=$1
  told[$h]="$2 $3 $4"
  python3 - "$@" >"$work/speaker$h.conf" <<'PYTHON'
import sys
h, first, last, split = map(int, sys.argv[1:])
print("log stderr { warning, error };")
print(f"router id 10.{h}.2.2;\nprotocol device {{ }}\ngraceful restart wait 10;")
def static(name, version, nets):
    print(f"protocol static {name}{version} {{ ipv{version}; ")
    for net in nets:
        print(f"  route {net} unreachable;")
    print("}")
def v4(numbers):
    return [f"30.{h * 4 + (n >> 8)}.{n & 255}.0/24" for n in numbers if n < 700]
def v6(numbers):
    return [f"2001:db8:{h}{n - 700:03d}::/48" for n in numbers if n >= 700]
near, far = range(first, min(last + 1, split)), range(max(first, split), last + 1)
static("stays", 4, [f"10.6{h}.{n}.0/24" for n in range(50)])
static("stays", 6, [f"fd6{h}:{n}::/48" for n in range(50)])
for name, numbers in ("near", near), ("far", far):
    static(name, 4, v4(numbers))
    static(name, 6, v6(numbers))
for link, net, other in ("right", 2, "far"), ("other", 3, "near"):
    # What stays is told by both, over a longer path by the other.
    prepend = "bgp_path.prepend(64502); " if link == "other" else ""
    channel = lambda v, more: f"""  ipv{v} {{ import none; {more} export filter {{ if proto = "{other}{v}" then reject; if proto = "stays{v}" then {{ {prepend}accept; }} accept; }}; }};"""
    print(f"""protocol bgp by_{link} {{
  local 10.{h}.{net}.2 as 64502; neighbor 10.{h}.{net}.1 as 64500; strict bind yes;
  connect retry time 1; connect delay time 1; error wait time 1, 1; graceful restart yes; graceful restart time 60;
{channel(4, "")}
{channel(6, f"next hop address fd0{h}:{net}::2;")}
}}""")
PYTHON
}

bird_start() { # NAMESPACE NAME OPTIONS...
  local space=$1 name=$2
  shift 2
  ip netns exec "$id-$space" bird -f -c "$work/$name.conf" -s "$work/$name.ctl" -P "$work/$name.pid" "$@" >>"$work/$name.log" 2>&1 </dev/null &
  pid[$name]=$!
}

frr_start() { # DAEMON OPTIONS...
  # Its output is redirected, or it would hold the case's open.
  ip netns exec "$id-r" "$@" -N "$id" -f "$work/$1.conf" >>"$work/$1.log" 2>&1 </dev/null &
  pid[$1]=$!
}

frr_configuration() {
  install -d -o frr -g frr "$folder"
  chmod 755 "$work"
  echo 'fpm address 127.0.0.1 port 2621' >"$work/zebra.conf"
  cat >"$work/bgpd.conf" <<'CONFIG'
router bgp 64500
 bgp router-id 10.0.2.1
 no bgp ebgp-requires-policy
 no bgp network import-check
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 bgp graceful-restart stalepath-time 60
 neighbor 10.0.2.2 remote-as 64502
 neighbor 10.0.2.2 timers connect 1
 neighbor 10.0.3.2 remote-as 64502
 neighbor 10.0.3.2 timers connect 1
 address-family ipv6 unicast
  neighbor 10.0.2.2 activate
  neighbor 10.0.3.2 activate
 exit-address-family
CONFIG
}

zebra_start() {
  local n
  # Routes of a zebra before this one stay for a while, for bgpd to tell them again: it looks for zebra every ten seconds.
  frr_start zebra -s 90000000 -K 20 -M dplane_fpm_nl
  for n in $(seq 100); do [ -S "$folder/zserv.api" ] && return; sleep 0.1; done
  fail "no zebra: $(tail -3 "$work/zebra.log")"
}

bgpd_start() {
  frr_start bgpd -p 179 -l 10.0.2.1 -l 10.0.3.1
}

bird_configuration() {
  cat >"$work/bird1.conf" <<'CONFIG'
log stderr { warning, error };
router id 10.1.2.1;
graceful restart wait 10;
protocol device { scan time 2; }
protocol direct { ipv4; ipv6; interface "right1", "other1"; }
protocol kernel { kernel table 100; persist; scan time 2; graceful restart yes; ipv4 { export where source = RTS_BGP; }; }
protocol kernel { kernel table 100; persist; scan time 2; graceful restart yes; ipv6 { export where source = RTS_BGP; }; }
CONFIG
  local net
  for net in 2 3; do
    cat >>"$work/bird1.conf" <<CONFIG
protocol bgp b$net {
  local 10.1.$net.1 as 64500; neighbor 10.1.$net.2 as 64502; strict bind yes;
  connect retry time 1; connect delay time 1; error wait time 1, 1; graceful restart yes; graceful restart time 60;
  ipv4 { import all; export none; };
  ipv6 { import all; export none; };
}
CONFIG
  done
}

faults_start() { # everything, with all routes, and traffic to what stays: RATE packets a second
  local h n
  for h in a r b; do namespace $h; done
  # Or a link that goes down loses its IPv6 addresses for ever.
  in_ns r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.all.keep_addr_on_down=1
  for h in $halves; do half_network "$h"; done
  : >"$work/monitor"
  faults_configuration | start
  for h in $halves; do
    speaker_routes "$h" 0 899 500
    bird_start b "speaker$h"
    case $h in
      0)
        ip netns exec "$id-r" ./cuts.py 2621 2620 "${SEED:-1}" 0 "$work/monitor" >"$work/cuts.log" 2>&1 </dev/null &
        pid[cuts]=$!
        frr_configuration
        zebra_start
        bgpd_start
        ;;
      1) bird_configuration; bird_start r bird1 ;;
    esac
  done
  for h in $halves; do settles "$h"; done
  # Until its feeds have told all, the kernel forwards, which has no routes of table 100.
  for n in $(seq 300); do grep -q '^note: forwarding with' "$work/log" && break; sleep 0.1; done
  grep -q '^note: forwarding with' "$work/log" || fail "the router does not forward: $(tail -3 "$work/log")"
  # What daemons tell of what stays, beside the router: they may take it out themselves for a moment, as bgpd of FRR 8.4 does when it
  # restarts. Of BIRD, the kernel's table shows it; of FRR, cuts.py writes it.
  { TZ=UTC exec ip -n "$id-r" -ts monitor route 2>/dev/null; } > >(grep -aE --line-buffered ' (10\.61\.|fd61:)' >>"$work/monitor") &
  pid[monitor]=$!
  stays=()
  for h in $halves; do stays+=("10.6$h.0.1" "10.6$h.49.1" "fd6$h::1" "fd6$h:49::1"); done
  ip netns exec "$id-b" ./traffic.py receive "$work/received" 2>"$work/receive.log" &
  receiver=$!
  sleep 1
  ip netns exec "$id-a" ./traffic.py send "${RATE:-2000}" "${stays[@]}" >"$work/sent" 2>"$work/send.log" &
  sender=$!
}

traffic_ends() { # nothing that was sent is missing, but what a daemon took out of the kernel too, and what the rings lost
  local rings
  kill -TERM $sender && wait $sender || fail "the sender: $(cat "$work/send.log")"
  sleep 2
  kill -TERM $receiver && wait $receiver || fail "the receiver: $(cat "$work/receive.log")"
  rings=$(counter "sum(p['ring_lost'] for p in s['ports'])")
  ./traffic.py judge "$work/sent" "$work/received" "$work/monitor" "$rings" "${stays[@]}" >"$work/judged" 2>&1 ||
    fail "$(cat "$work/judged") $("$fibula" router drops --socket "$work/socket" | head -20)"
}

# Waits until the daemon has both sessions with its peer: without them, the next fault could leave it without routes.
sessions_stand() { # HALF
  local n
  for n in $(seq 300); do
    case $1 in
      0) vtysh --vty_socket "$folder" -d bgpd -c 'show bgp summary json' 2>/dev/null | grep -c '"state":"Established"' ;;
      1) birdc -s "$work/bird1.ctl" show protocols 2>/dev/null | grep -c Established ;;
    esac >"$work/standing" || true
    # FRR has a line a session and family.
    [ "$(cat "$work/standing")" -lt $((4 - 2 * $1)) ] || return 0
    sleep 0.1
  done
  fail "half $1: $(cat "$work/standing") sessions"
}

# Faults. After each, `settles` says whether the table is the daemon's again.

again() { # DAEMON: is killed
  kill -KILL "${pid[$1]}"
  wait "${pid[$1]}" 2>/dev/null || true
  sleep 1
}

fault_changes() { # HALF FIRST LAST SPLIT: the speaker announces other routes
  speaker_routes "$@"
  birdc -s "$work/speaker$1.ctl" configure >/dev/null
}

fault_peer() { # HALF FIRST LAST SPLIT: the speaker is gone for a second, and announces other routes then
  again "speaker$1"
  speaker_routes "$@"
  bird_start b "speaker$1"
  sessions_stand "$1"
}

fault_daemon() { # HALF: the daemon that tells the router restarts gracefully
  case $1 in
    0) again bgpd; bgpd_start ;;
    1) again bird1; bird_start r bird1 -R ;;
  esac
  sessions_stand "$1"
}

fault_zebra() { # half 0 alone: zebra, and bgpd with it, as watchfrr does it: bgpd would not tell a new zebra its routes
  again zebra
  again bgpd
  zebra_start
  bgpd_start
  # Until zebra has swept what it found in the kernel.
  sleep 22
  sessions_stand 0
}

fault_cut() { # half 0 alone: the session of FPM is cut at some byte, while routes change
  kill -USR1 "${pid[cuts]}"
  fault_changes "$@"
}

fault_link() { # HALF
  local n
  # A daemon that has just restarted may still lead there what stays, until it has heard both of its peers.
  for n in $(seq 300); do
    router_says "$1" | grep -qE "^(10[.]6$1[.]|fd6$1:).*@other$1" || break
    sleep 0.1
  done
  for n in 1 2 3; do
    ip -n "$id-r" link set "other$1" down
    sleep 0.3
    ip -n "$id-r" link set "other$1" up
    sleep 0.3
  done
  sessions_stand "$1"
}

fault_flush() { # HALF: somebody takes the changing routes of IPv4 out of the kernel
  local table=main
  [ "$1" = 0 ] || table=100
  # One by one: the kernel cannot flush routes that lead to next-hop objects at once.
  ip -n "$id-r" -4 route show table "$table" | awk -v table="$table" '/^30[.]/ { print "route del", $1, "table", table }' |
    ip -n "$id-r" -4 -force -batch - 2>/dev/null || true
}

fault_objects() { # half 0 alone: somebody removes all next-hop objects, and with them the kernel's routes go without a word
  local n
  for n in $(ip -n "$id-r" nexthop | awk '/proto (zebra|11) / { print $2 }'); do
    ip -n "$id-r" nexthop del id "$n" 2>/dev/null || true
  done
}

fault_garbage() { # what is no message, to both sockets
  in_ns r ./garbage.py 127.0.0.1:2620 "$work/socket" "${SEED:-1}"
}

fault_reload() {
  kill -HUP "$router"
}

daemon_says() { # HALF: what the daemon of this half has, as lines
  case $1 in
    0) vtysh --vty_socket "$folder" -d zebra -c 'show ip route json' -c 'show ipv6 route json' 2>/dev/null | ./tables.py zebra ;;
    1) { birdc -s "$work/bird1.ctl" show route primary where source = RTS_BGP; } | ./tables.py bird ;;
  esac
}

router_says() { # HALF
  "$fibula" route show --router="$work/socket" --vrf "$(vrf_of "$1")" --format json-line | ./tables.py router $(own_nets)
}

kernel_says() {
  { ip -n "$id-r" -j -4 route show table 100; echo; ip -n "$id-r" -j -6 route show table 100; } | ./tables.py kernel
}

# The router has the routes of the daemon of this half, one by one, before long; of BIRD, the kernel has the same.
settles() { # HALF
  local h=$1 n first last wanted
  read -r first last _ <<<"${told[$h]}"
  wanted=$((last - first + 1 + 100))
  for n in $(seq 200); do
    daemon_says "$h" >"$work/daemon" || true
    router_says "$h" >"$work/routes"
    if [ "$wanted" = "$(wc -l <"$work/daemon")" ] && cmp -s "$work/daemon" "$work/routes"; then
      [ "$h" = 0 ] || kernel_says | cmp -s - "$work/routes" || { sleep 0.2; continue; }
      return 0
    fi
    sleep 0.2
  done
  fail "half $h: $(wc -l <"$work/daemon") routes of the daemon, $(wc -l <"$work/routes") of the router, $wanted announced:" \
    "$(diff "$work/daemon" "$work/routes" | head -5); $("$fibula" router feeds --socket "$work/socket"); $(tail -qn 2 "$work"/*.log "$work/log")"
}

own_nets() {
  local h
  for h in 0 1; do
    echo "10.$h.1.0/24 10.$h.2.0/24 10.$h.3.0/24 fd0$h:1::/64 fd0$h:2::/64 fd0$h:3::/64"
  done
}
