import { existsSync } from 'node:fs';

/**
 * The gate: a shell that leads the group the program will run in, so that the program's number is
 * known, and written down by whoever must, before it can do anything. It starts the watchers, says
 * `ready` on fd 3, and there waits for the line `go`. On anything else, such as the end of a guard
 * that was killed, it leaves. On `go` it becomes the program.
 *
 * The watchers stay in the group, asleep, for as long as it lives. Whatever the group is sent short
 * of KILL and STOP they ignore. Each ends with killing the session (where there is /proc) and then
 * with `kill -KILL 0`, which is the whole group:
 *
 * - one when fd 4 ends, whose other end only the supervisor has;
 * - one when fd 5 ends, whose other end only the guard has, or when the guard did not say in time
 *   that belief was extended. For that it needs a shell whose `read` has -t, which POSIX does not
 *   ask for: bash where there is one, and busybox's; otherwise it sees only the end.
 *
 * They are orphans from the start, not children of the program: a program that waits for all its
 * children must not wait for them. They hold none of its files. Their command lines do not contain
 * our name, so that `pkill incumbent` leaves them to do their duty.
 */
export interface Gate {
  /** What the guard spawns with fd 3, 4 and 5 in place. */
  readonly argv: readonly string[];
  /** Names of variables that no shell at hand would pass on (`A.B`). */
  readonly droppedNames: readonly string[];
}

/** The shells to use: the machine's POSIX shell, and bash where there is one. */
export interface Shells {
  readonly sh: readonly string[];
  readonly bash: readonly string[] | undefined;
}

// bash must not read what it reads by itself: with -p neither $BASH_ENV nor functions from the
// environment, with --norc no ~/.bashrc, which it else takes for its duty over ssh or on a socket.
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
    // A shell may import functions from the environment, and prefers them to what it has built in.
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
 * Whoever left the group but not the session would survive `kill -KILL 0`, after which we can do
 * nothing: so first KILL, one by one, whom a walk through /proc finds, until a walk finds nobody.
 * The leader comes first, as the walk takes a while. Of the two watchers only one (`other` is empty)
 * kills the other here, so that never both die with their work undone.
 *
 * Only what is built into every shell. `NSpid` has a second number if /proc is that of another pid
 * namespace, where our numbers mean others. The name in /proc/N/stat may contain anything. Z1: a
 * zombie whose threads (field 20) have all ended.
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
 * In its POSIX mode, as which it finds itself when it is called `sh`, bash ends a `read -t` by an alarm. One
 * that comes before the read has begun to wait is lost, and it waits for ever. Else it waits by select.
 */
export const timersOfSelect = 'command set +o posix 2>/dev/null';

/**
 * Each line says until when: how many seconds may pass, with a fraction, and whole for shells that
 * take none (bash 3 on macOS), and where there is /proc/uptime the instant on it, in hundredths. That
 * counts: a line may have waited while we were stopped, and a suspended host does not stop it.
 *
 * When the time is over a newer line may have come while we were stopped, so there is a last look
 * ($g); that it takes a while the guard has considered. A line that is over gets no other time.
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
