/**
 * For a POSIX shell on the machine of the target, with the port as `$1`. It kills each process that
 * holds a socket which listens there. It ends with 0 when none of them holds it any more. It ends
 * with 0 also when nothing listens: the service does not run.
 *
 * `$2` is the digest of the machine that the leader told (machine.ts), or empty. On another machine
 * nothing is killed, and nothing that listens there or does not proves anything (6).
 *
 * It needs /proc (Linux) or lsof. /proc/net shows the sockets of all users, but /proc/PID/fd only
 * those of the own user. So a listener whose process stays hidden is a failure (3), never a success.
 * A service manager may start another process on the port at once, which is not ours to kill.
 *
 * It has no single quote in it, because it travels between two of them.
 */
export const killListenerScript: string = String.raw`port=$1 hex=$(printf %04X "$1")
if [ -n "$2" ] && [ -s /etc/machine-id ] && command -v sha256sum >/dev/null; then
  here=$(printf "%s incumbent" "$(cat /etc/machine-id)" | sha256sum | cut -c1-32)
  if [ "$here" != "$2" ]; then
    echo "this is another machine than the one of the leader, by /etc/machine-id; an agent in a container" \
      "needs that file of its host" >&2
    exit 6
  fi
fi
sockets() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v p=":$hex" "\$4 == \"0A\" && substr(\$2, length(\$2) - 4) == p { print \$10 }"
}
holders() {
  ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v all="$*" "
    BEGIN { n = split(all, one, \" \"); for (i = 1; i <= n; i++) want[\"socket:[\" one[i] \"]\"] = 1 }
    /^\/proc\// { split(\$0, part, \"/\"); pid = part[3] }
    (\$NF in want) && !(pid in told) { told[pid] = 1; print pid }"
}
look() {
  if [ -r /proc/net/tcp ]; then
    open=$(sockets) pids=
    if [ -n "$open" ]; then pids=$(holders $open); fi
  elif command -v lsof >/dev/null; then
    pids=$(lsof -nP -t -iTCP:"$port" -sTCP:LISTEN) open=$pids
  else
    echo "neither /proc/net/tcp nor lsof is here" >&2
    exit 4
  fi
}
look
if [ -z "$open" ]; then echo "nothing listens at port $port"; exit 0; fi
if [ -z "$pids" ]; then
  echo "the process that listens at port $port belongs to another user" >&2
  exit 3
fi
killed=$pids before=$open
kill -KILL $killed || exit 3
tries=0
while :; do
  look
  left=
  for old in $before; do for now in $open; do
    if [ "$now" = "$old" ]; then left=$old; fi
  done; done
  if [ -z "$left" ]; then echo "killed" $killed; exit 0; fi
  tries=$((tries + 1))
  if [ $tries -ge 100 ]; then echo "a process that was killed still listens at port $port" >&2; exit 5; fi
  sleep 0.1 2>/dev/null || sleep 1
done`;
