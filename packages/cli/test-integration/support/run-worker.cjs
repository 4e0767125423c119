// A program for the tests of `incumbent run`. It logs each of its acts, with its token and the
// monotonic time that all processes share. So the log shows which program worked when.
//
//   node run-worker.cjs LOG ROLES [FLAGS...]
//
// ROLES are leader,child,grandchild: each starts the next one. FLAGS are:
//
// - deaf: goes on after TERM, INT and HUP
// - linger=FILE: after TERM or INT ends (with 7) only when FILE is there
// - stop: stops itself (SIGSTOP) after its first words
// - exit=N: ends after its first words
//
// Lines: `TOKEN ROLE PID MS WHAT`. WHAT is one of:
//
// - `start`, or `start-beside:PID,…` when a process of an older token is still there
// - a signal
// - `ready` when all roles have started
// - else `beat`
const { spawn } = require('node:child_process');
const { existsSync, openSync, readFileSync, writeSync } = require('node:fs');

const [log, roles, ...flags] = process.argv.slice(2);
const [role, ...others] = roles.split(',');
const token = process.env.INCUMBENT_TOKEN;
const exitCode = flags.find((flag) => flag.startsWith('exit='))?.slice('exit='.length);
const lingerFor = flags.find((flag) => flag.startsWith('linger='))?.slice('linger='.length);
const fd = openSync(log, 'a');

function record(what) {
  const [seconds, nanoseconds] = process.hrtime();
  writeSync(fd, `${token} ${role} ${process.pid} ${seconds * 1e3 + nanoseconds / 1e6} ${what}\n`);
}

/** Processes that wrote under an older token and are neither gone nor zombies. */
function elders() {
  const pids = new Set();
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [theirToken, , pid] = line.split(' ');
    if (pid !== undefined && BigInt(theirToken) < BigInt(token)) pids.add(pid);
  }
  return [...pids].filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
    } catch {
      return false;
    }
  });
}

const beside = elders();
record(beside.length === 0 ? 'start' : `start-beside:${beside.join(',')}`);
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']) {
  process.on(name, () => {
    record(name);
    if (name.startsWith('SIGUSR') || flags.includes('deaf')) return;
    if (lingerFor === undefined) process.exit(7);
    setInterval(() => {
      if (existsSync(lingerFor)) process.exit(7);
    }, 10);
  });
}
if (exitCode !== undefined) {
  process.exit(Number(exitCode));
} else if (others.length === 0) {
  record('ready');
} else {
  const args = [__filename, log, others.join(','), ...flags];
  spawn(process.execPath, args, { stdio: 'inherit' });
}
setInterval(() => record('beat'), 10);
if (flags.includes('stop')) process.kill(process.pid, 'SIGSTOP');
