import { existsSync } from 'node:fs';

/**
 * The gate: a shell that leads the group the program will run in. So the program's number is known,
 * and written down where the next leader looks, before the program can do anything. The gate starts
 * the watchers, says `ready` on fd 3, and waits there for the line `go`. On `go` it becomes the
 * program. On anything else, such as the end of a guard that was killed, it leaves.
 *
 * The watchers stay in the group, asleep, for as long as it lives. They ignore all signals to the
 * group but KILL and STOP. Each ends with killing the session (where there is /proc) and then with
 * `kill -KILL 0`, which is the whole group:
 *
 * - one when fd 4 ends, whose other end only the supervisor has;
 * - one when fd 5 ends, whose other end only the guard has, or when the guard did not say in time
 *   that belief was extended.
 *
 * The second one needs a shell whose `read` has -t, which POSIX does not ask for: bash where there
 * is one, and busybox's. In another shell it sees only the end of fd 5.
 *
 * Watchers are orphans from the start, not children of the program: a program that waits for all
 * its children must not wait for them. They hold none of its files. Their command lines do not
 * contain our name, so that `pkill incumbent` does not kill them.
 */
export interface Gate {
  /** The command that the guard spawns with fd 3, 4 and 5 in place. */
  readonly argv: readonly string[];
  /** Names of variables that no shell at hand would pass on (`A.B`). */
  readonly droppedNames: readonly string[];
}

/** The shells to use: the machine's POSIX shell, and bash where there is one. */
export interface Shells {
  readonly sh: readonly string[];
  readonly bash: readonly string[] | undefined;
}

// bash must read no file and no function unasked. With -p it takes neither $BASH_ENV nor functions
// from the environment. With --norc it takes no ~/.bashrc, which it otherwise reads over ssh or on
// a socket.
export const shells: Shells = {
  sh: ['/bin/sh'],
  bash: existsSync('/bin/bash') ? ['/bin/bash', '--norc', '-p'] : undefined,
};

export function gate(
  programPath: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { sh, bash }: Shells = shells,
): Gate {
  // dash and busybox drop variables whose names are not identifiers; bash keeps them.
  const odd = Object.keys(env).filter((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  const shell = bash !== undefined && odd.length > 0 ? [...bash, '-o', 'posix'] : sh;
  return {
    argv: [...shell, '-c', script(bash ?? sh, env), 'gate', programPath, ...args],
    droppedNames: bash === undefined ? odd : [],
  };
}

function script(watchGuard: readonly string[], env: Readonly<Record<string, string>>): string {
  // Shells set these unasked.
  const extra = ['PWD', 'OLDPWD'].filter((name) => env[name] === undefined);
  return [
    // A shell may import functions from the environment, and prefers them to its builtins.
    'unset -f read kill echo',
    // Ignored from before the watchers are forked, and passed on by exec.
    "(trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2 TSTP TTIN TTOU || exit",
    'exec 3>&- >/dev/null 2>&1',
    `exec ${watchGuard.join(' ')} -c '${deadMan}' watch <&5 4<&- 5<&- &`,
    'other=$!',
    `{ read -r x; ${killSession}`,
    'kill -KILL 0; } <&4 4<&- 5<&- &',
    ') || exit 125',
    'echo ready >&3',
    // The one name that cannot collide with a variable of the program's.
    'read -r INCUMBENT_GATE <&3',
    'case $INCUMBENT_GATE in go) ;; *) exit 125 ;; esac',
    `unset INCUMBENT_GATE ${extra.join(' ')}`,
    'exec 3>&- 4<&- 5<&-',
    'exec "$@"',
  ].join('\n');
}

/**
 * A process that left the group but not the session would survive `kill -KILL 0`, after which we
 * can do nothing. So first we KILL, one by one, the processes that a walk through /proc finds,
 * until a walk finds none. The leader comes first, as the walk takes a while. Only one of the two
 * watchers (its `other` is empty) kills the other here, so that they never both die with their work
 * undone.
 *
 * Uses only builtins of every shell. `NSpid` has a second number if /proc is that of another pid
 * namespace, where our numbers mean other processes. The name in /proc/N/stat may contain anything.
 * Z1: a zombie whose threads (field 20) have all ended.
 */
const killSession: string = `LC_ALL=C own= n=0
while read -r k v w; do case $k$w in NSpid:) own=$v ;; esac; done </proc/self/status
if read -r s </proc/self/stat; then set -- \${s##*) }; sid=$4; else own=; fi
case $own in ?*) kill -KILL $sid ;; esac
while case $own/$n in /*|*/100) false ;; esac; do
  n=$((n + 1)) found=
  for f in /proc/[0-9]*/stat; do
    read -r s <$f || continue
    set -- \${s##*) }
    case $4 in $sid) ;; *) continue ;; esac
    case $1\${18} in Z1) continue ;; esac
    p=\${f#/proc/} p=\${p%/stat}
    case $p in $own|$other) continue ;; esac
    kill -KILL $p
    found=1
  done
  case $found in "") break ;; esac
done`;

/**
 * In its POSIX mode, which the name `sh` turns on, bash ends a `read -t` by an alarm. An alarm that
 * comes before the read has begun to wait is lost, and the read waits for ever. In its other mode
 * bash waits by select.
 */
export const timersOfSelect = 'command set +o posix 2>/dev/null';

/**
 * Each line gives the end three times. First it says how many seconds may pass, with a fraction.
 * Then whole seconds, for shells that take no fraction (bash 3 on macOS). Where there is
 * /proc/uptime, the third is the instant on it, in hundredths. The instant counts: a line may have
 * waited while we were stopped, and a suspended host does not stop /proc/uptime.
 *
 * When the time is over, a newer line may have come while we were stopped. So there is a last look
 * ($g), whose length the guard has considered. A line that is over gets no other time.
 */
const deadMan: string = `${timersOfSelect}
if echo | read -r -t 9.9 x; then g=0.1; elif echo | read -r -t 9 x; then g=1; else g=; fi
read -r t i d && while
  case $g in 1) t=$i ;; esac
  case $d in ?*) if read -r u x </proc/uptime; then
    # As one number without leading zeros, which would make it an octal one.
    u=\${u%.*}\${u#*.} u=\${u#"\${u%%[!0]*}"}
    n=$((d - \${u:-0})) f=$((n % 100))
    case $f in ?) f=0$f ;; esac
    case $g/$n in */0|*/-*) t=$g ;; 1/*) t=$((n / 100 - 1)) ;; *) t=$((n / 100)).$f ;; esac
    case $t in 0|-*) t=1 ;; esac
  fi ;; esac
  case $g in
  "") read -r t i d ;;
  *) read -r -t "$t" t i d || read -r -t $g t i d ;;
  esac
do :; done
other=
${killSession}
kill -KILL 0`;
