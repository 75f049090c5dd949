# Sourced by cases of `fibula bpf`: the usual network, maps of both families, and a follower in r.

have python3
have nsenter
network
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf 2>/dev/null || skip "no file system of BPF"
pins=/sys/fs/bpf/$id
mkdir "$pins"
follower= daemons= folder=
at_end() {
  set +e
  kill -KILL $follower $daemons 2>/dev/null
  rm -rf "$pins"
  [ -z "$folder" ] || rm -rf "$folder" "/etc/frr/$id"
  clean
}
trap at_end EXIT
echo '20.0.0.0/8 77' >"$work/first.txt"
echo '2001:db8::/32 77' >"$work/first6.txt"
said=$("$fibula" bpf load --table "$work/first.txt" --pin "$pins/v4" 2>&1) || skip "no BPF: $said"
"$fibula" bpf load --table "$work/first6.txt" --pin "$pins/v6" >/dev/null

in_net() { # COMMAND...: with this machine's mounts, which hold the pins
  nsenter --net="/run/netns/$id-r" "$@"
}
get() { # ADDRESS: the number that programs get
  local of=v4
  case $1 in *:*) of=v6 ;; esac
  "$fibula" bpf get --pin "$pins/$of" "$1" | cut -d' ' -f2- || true
}
gives() { # ADDRESS NUMBER: before long
  local n
  for n in $(seq $((150 * ${SLOW:-1}))); do
    [ "$(get "$1")" = "$2" ] && return
    sleep 0.1
  done
  fail "$1 is $(get "$1"), not $2: $(tail -5 "$work/follow")"
}
follow() { # reads the file of feeds from standard input; OPTIONS...
  cat >"$work/feeds.toml"
  nsenter --net="/run/netns/$id-r" "$fibula" bpf follow --feeds "$work/feeds.toml" --pin "$pins/v4" --pin "$pins/v6" "$@" >"$work/follow" 2>&1 </dev/null &
  follower=$!
}
told() { # TEXT: the follower says it, before long
  local n
  for n in $(seq $((150 * ${SLOW:-1}))); do
    grep -q "$1" "$work/follow" && return
    kill -0 "$follower" 2>/dev/null || break
    sleep 0.1
  done
  fail "does not say '$1': $(tail -5 "$work/follow")"
}
ends() { # SIGNAL
  kill "-$1" "$follower"
  wait "$follower" 2>/dev/null || [ "$1" = KILL ] || fail "ended with $?: $(tail -5 "$work/follow")"
  follower=
}
numbers() {
  cat <<'END'
[numbers]
"10.0.2.2" = 2
"fd00:2::2" = 62
left = 1
blackhole = 9
END
}
fpm() { # KEEP SWEEP
  numbers
  printf '[[feed]]\nname = "zebra"\nkind = "fpm"\nkeep = %s\nsweep = %s\n' "$1" "$2"
}
