# Sourced by the cases of examples, after routes.sh: a peer in b, BIRD with AS 64502, that announces routes to 10.0.2.1 in r.

speaker_configuration() { # V4 [V6]: so many routes of each family, or V4 in all: 10.128.0.0/24 and so on and then 20.0.0.0/24 and so on,
  # 2001:db8:0::/48 and so on and then 2a01::/48 and so on
  python3 - "$@" <<'PYTHON'
import sys
v4, v6 = map(int, sys.argv[1:]) if len(sys.argv) > 2 else (int(sys.argv[1]) // 2,) * 2
def net4(n):
    return f"10.{128 + (n >> 8)}.{n & 255}.0/24" if n < 2000 else f"{20 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.0/24"
def net6(n):
    return f"2001:db8:{n:x}::/48" if n < 2000 else f"2a01:{n >> 16:x}:{n & 0xffff:x}::/48"
print("log stderr { warning, error };\nrouter id 10.0.2.2;\nprotocol device { }")
print("protocol static { ipv4;", *(f"route {net4(n)} unreachable;" for n in range(v4)), "}")
print("protocol static { ipv6;", *(f"route {net6(n)} unreachable;" for n in range(v6)), "}")
PYTHON
  cat <<'END'
protocol bgp {
  local 10.0.2.2 as 64502;
  neighbor 10.0.2.1 as 64500;
  connect retry time 1; connect delay time 1; error wait time 1, 1;
  ipv4 { import none; export all; };
  ipv6 { import none; export all; next hop address fd00:2::2; };
}
END
}

speaker() { # V4 [V6]: starts it, or has it announce so many routes instead
  speaker_configuration "$@" >"$work/speaker.conf"
  if [ -S "$work/speaker.ctl" ]; then
    birdc -s "$work/speaker.ctl" configure >/dev/null
  else
    ip netns exec "$id-b" bird -f -c "$work/speaker.conf" -s "$work/speaker.ctl" -P "$work/speaker.pid" >"$work/speaker.log" 2>&1 </dev/null &
  fi
}

example() { # NAME: the network, and the router with the configuration of that example; b answers for some of the routes
  network
  ip -n "$id-b" address add 10.128.7.1/32 dev lo
  ip -n "$id-b" address add 2001:db8:7::1/128 dev lo nodad
  { echo "socket = \"$work/socket\""; cat "examples/$1/router.toml"; } | start
}

frr_example() { # the example's daemons in r, with the options of zebra ZEBRA
  local daemon n
  folder=/var/run/frr/$id
  install -d -o frr -g frr "$folder"
  for daemon in zebra bgpd; do
    ip netns exec "$id-r" $daemon -N "$id" $([ $daemon != zebra ] || echo -M dplane_fpm_nl ${ZEBRA:-}) >"$work/$daemon.log" 2>&1 </dev/null &
    daemons="${daemons:-} $!"
    for n in $(seq 100); do [ -S "$folder/$daemon.vty" ] && break; sleep 0.1; done
  done
  vtysh --vty_socket "$folder" -f "$(realpath examples/frr/frr.conf)" >"$work/vtysh.log" 2>&1 || fail "$(cat "$work/vtysh.log")"
}

frr_end() { # at the end of a case with them
  set +e
  exec 2>/dev/null
  kill -KILL $daemons
  rm -rf "$folder" "/etc/frr/$id"
  clean
}
