# Sourced by netlab/run and its cases: namespaces a (host), r (router) and b (host), joined by veths; the router in r.
#   a: eth 10.0.1.2/24, fd00:1::2/64     r: left 10.0.1.1, right 10.0.2.1 (fd00:1::1, fd00:2::1)     b: eth 10.0.2.2, fd00:2::2

# So that `... | start` leaves the number of the process here.
shopt -s lastpipe
id=fibula-$$
work=$(mktemp -d)
router=

in_ns() { # NAME COMMAND...
  local name=$1
  shift
  ip netns exec "$id-$name" "$@"
}

fail() { # REASON
  tr '\n' ' ' <<<"reason: $*"
  echo
  exit 1
}

skip() { # REASON
  tr '\n' ' ' <<<"reason: $*"
  echo
  exit 77
}

have() { # COMMAND
  command -v "$1" >/dev/null || skip "no $1"
}

# The program may only talk within namespaces that this case has made.
clean() {
  local name
  # Whatever fails here, the rest is to be cleaned: a job may have ended by itself.
  set +e
  [ -z "$router" ] || { kill -TERM "$router" 2>/dev/null && wait "$router" 2>/dev/null; }
  jobs -p | while read -r job; do kill "$job" 2>/dev/null; done
  for name in $(ip netns list | cut -d' ' -f1 | grep "^$id-"); do
    # The job of `in_ns NAME COMMAND &` is a shell, whose end leaves the command behind, and the namespace with it.
    ip netns pids "$name" | xargs -r kill -KILL 2>/dev/null
    ip netns del "$name"
  done
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

namespace() { # NAME
  ip netns add "$id-$1"
  # Without this the first IPv6 packet waits two seconds for duplicate address detection.
  in_ns "$1" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
  ip -n "$id-$1" link set lo up
}

cable() { # NAMESPACE DEVICE NAMESPACE DEVICE
  ip link add "$2" netns "$id-$1" numtxqueues 2 numrxqueues 2 type veth peer name "$4" netns "$id-$3" numtxqueues 2 numrxqueues 2
  ip -n "$id-$1" link set "$2" up
  ip -n "$id-$3" link set "$4" up
}

address() { # NAMESPACE DEVICE ADDRESS...
  local name=$1 device=$2 address
  shift 2
  for address; do
    case $address in
      *:*) ip -n "$id-$name" address add "$address" dev "$device" nodad ;;
      *) ip -n "$id-$name" address add "$address" dev "$device" ;;
    esac
  done
}

network() { # the usual one, with the kernel of r forwarding too: the router has to keep it from that
  namespace a
  namespace r
  namespace b
  cable a eth r left
  cable b eth r right
  address a eth 10.0.1.2/24 fd00:1::2/64
  address b eth 10.0.2.2/24 fd00:2::2/64
  address r left 10.0.1.1/24 fd00:1::1/64
  address r right 10.0.2.1/24 fd00:2::1/64
  ip -n "$id-a" route add default via 10.0.1.1
  ip -n "$id-a" -6 route add default via fd00:1::1
  ip -n "$id-b" route add default via 10.0.2.1
  ip -n "$id-b" -6 route add default via fd00:2::1
  in_ns r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}

# The configuration of the usual network, with THREADS, lines EXTRA, the back end BACKEND (default: none is named) and, for af-xdp, the
# mode XDP, and FAST if programs are to forward.
two_interfaces() {
  local name
  cat <<END
socket = "$work/socket"
threads = ${THREADS:-1}
${EXTRA:-}
END
  for name in left right; do
    printf '[[interface]]\nname = "%s"\ndevice = "%s"\n' $name $name
    back_end
  done
}

back_end() { # the lines of an interface that say how frames get in and out
  [ "${BACKEND:-}" = default ] || printf 'backend = "%s"\n' "${BACKEND:-af-packet}"
  [ -z "${XDP:-}" ] || printf 'xdp = "%s"\n' "$XDP"
  [ "${BACKEND:-}" != af-xdp ] || [ -z "${FAST:-}" ] || printf 'fast = true\n'
}

start() { # reads the configuration from standard input, and waits until the router runs; START is what starts it
  cat >"$work/router.toml"
  ip netns exec "$id-r" ${START:-} "$fibula" router --config "$work/router.toml" >"$work/log" 2>&1 &
  router=$!
  local n
  for n in $(seq 200); do
    "$fibula" router stats --socket "$work/socket" >/dev/null 2>&1 && return
    kill -0 "$router" 2>/dev/null || break
    sleep 0.05
  done
  fail "the router does not start: $(cat "$work/log")"
}

stop() { # in order
  kill -TERM "$router"
  wait "$router" || fail "the router ended with $?: $(cat "$work/log")"
  router=
}

counter() { # EXPRESSION over `s`, the router's stats, in Python
  "$fibula" router stats --json --socket "$work/socket" | python3 -c "
import json, sys
s = json.load(sys.stdin)
port = {p['name']: p for p in s['ports']}
print($1)"
}

adds_up() { # every frame is in one counter
  local waiting
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    waiting=$(counter "sum(p['waiting'] for p in s['ports'])")
    [ "$waiting" = 0 ] && return
    sleep 0.5
  done
  fail "$waiting frames are in no counter"
}

why() { # what a router says when packets are lost
  local what
  for what in stats drops neigh; do "$fibula" router $what --socket "$work/socket" 2>&1 || true; done
  tail -5 "$work/log"
}
until_log() { # TEXT: the router has logged it, before long
  local n
  for n in $(seq $((100 * ${SLOW:-1}))); do
    grep -q "$1" "$work/log" && return
    sleep 0.1
  done
  fail "${LAB:+$LAB: }no '$1' in the log: $(cat "$work/log")"
}

pings() { # NAMESPACE ADDRESS...: every ping is answered, once
  local name=$1 address said
  shift
  for address; do
    said=$(in_ns "$name" ping -n -c 5 -i 0.2 -W 2 "$address") || fail "no ping from $name to $address: $said; $(why)"
    grep -q 'DUP!' <<<"$said" && fail "answered twice: $said"
    grep -q ' 5 received' <<<"$said" || fail "lost: $said; $(why)"
  done
  return 0
}
