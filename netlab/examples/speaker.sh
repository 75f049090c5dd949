# Sourced by the cases of examples, after routes.sh: a peer in b, BIRD with AS 64502, that announces routes to 10.0.2.1 in r.

speaker_configuration() { # COUNT: so many routes, half of each family: 10.128.0.0/24 and so on, 2001:db8:0::/48 and so on
  python3 - "$1" <<'PYTHON'
import sys
count = int(sys.argv[1]) // 2
print("log stderr { warning, error };\nrouter id 10.0.2.2;\nprotocol device { }")
print("protocol static { ipv4;", *(f"route 10.{128 + (n >> 8)}.{n & 255}.0/24 unreachable;" for n in range(count)), "}")
print("protocol static { ipv6;", *(f"route 2001:db8:{n:x}::/48 unreachable;" for n in range(count)), "}")
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

speaker() { # COUNT: starts it, or has it announce so many routes instead
  speaker_configuration "$1" >"$work/speaker.conf"
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
