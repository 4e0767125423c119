'use strict';
// The guard of `incumbent run` starts the program, and judges by both clocks how long it may run. It
// kills the whole session when that time is over or when the supervisor is gone. For the reasons see
// ../src/guard/README.md; for the types of the messages ../src/guard/protocol.ts.
//
// Plain CommonJS and three modules: a guard runs beside every program, so it must stay small.
//
// When the supervisor has died, and its program as well, a process that the supervisor has named
// gives the seat back. The guard only starts it.
//
//   node guard.cjs SUPERVISOR_PID
//
// - fd 0-2: the program's, passed on and never touched
// - fd 3: a socket to the supervisor, with one JSON message a line, both ways
// - fd 4: a socket whose other end only the supervisor has, passed on to the watchers
const { spawn } = require('node:child_process');
const { closeSync, openSync, readdirSync, readFileSync, readSync } = require('node:fs');
const { Socket } = require('node:net');

// Clocks are judged at least this often, even when a timer is late.
const judgeEveryMs = 100;
const beatEveryMs = 200;
// A process that still lives so long after KILL is reported.
const lingeringMs = 5_000;
// The end of its pipe comes shortly before the end of a process.
const deathWithinMs = 5_000;
// Of the two-clock law.
const roundingMs = 5;
const longestMs = 3_600_000;

/** The two-clock law of `incumbent` (docs/design/time.md has its proof), without imports. */
class Countdown {
  #isSet = false;
  #endMs = 0;
  #wallEndMs = Infinity;
  #sentAt;
  #lostMs = 0;
  #lookedMs = -Infinity;
  #losses = [];

  set({ monotonicMs, wallMs, sentAt, lostMs }) {
    const sentMs = sentAt.monotonicMs;
    let gapMs = sentAt.wallMs - sentMs;
    let seenMs = 0;
    this.#losses = this.#losses.filter(({ atMs }) => atMs >= sentMs);
    for (const { beforeMs, fromMs, toMs } of this.#losses) {
      if (beforeMs > sentMs) gapMs = Math.min(gapMs, fromMs);
      seenMs += Math.max(0, toMs - gapMs);
      gapMs = toMs;
    }
    const narrowestMs = this.#wallEndMs - this.#endMs;
    const keepsGap = this.#losses.length > 0 || narrowestMs < wallMs - monotonicMs;
    const moreMs = Math.max(0, seenMs - lostMs);
    this.#isSet = true;
    this.#endMs = monotonicMs - moreMs;
    this.#wallEndMs =
      this.#lookedMs >= sentMs && keepsGap ? this.#endMs + narrowestMs : wallMs - moreMs;
    this.#lostMs = lostMs + moreMs;
    this.#sentAt = sentAt;
  }

  clear() {
    this.#isSet = false;
  }

  look({ monotonicMs: nowMs, wallMs }) {
    const leftMs = this.#endMs - nowMs;
    const wallLeftMs = this.#wallEndMs - wallMs;
    const widerMs = leftMs - wallLeftMs;
    if (widerMs < 0) {
      this.#wallEndMs = wallMs + leftMs;
    } else if (widerMs > roundingMs) {
      const toMs = wallMs - nowMs;
      this.#losses = this.#losses.filter(({ atMs }) => atMs > nowMs - longestMs);
      this.#losses.push({ beforeMs: this.#lookedMs, atMs: nowMs, fromMs: toMs - widerMs, toMs });
      this.#endMs = nowMs + wallLeftMs;
      this.#lostMs += widerMs;
    }
    this.#lookedMs = nowMs;
    return this.#isSet ? Math.min(leftMs, wallLeftMs) : -Infinity;
  }

  get deadline() {
    if (!this.#isSet) return undefined;
    return {
      monotonicMs: this.#endMs,
      wallMs: this.#wallEndMs,
      sentAt: this.#sentAt,
      lostMs: this.#lostMs,
    };
  }
}

if (require.main === module) guard(Number(process.argv[2]));

module.exports = { Countdown, groupIsGone, monotonicMs, parseStat, signalGroup };

function guard(supervisorPid) {
  // Signals meant for the program or for the supervisor are not for us: we outlive both. A no-op
  // handler and not SIG_IGN, which Node cannot set. It also keeps USR1 from opening the inspector.
  for (const name of ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'ALRM', 'TSTP', 'TTIN', 'TTOU'])
    process.on(`SIG${name}`, () => {});

  // The program's output must stay as blocking as it is. Often fd 2 is one file with fd 1, and with
  // the terminal or pipe that others write to. Node makes it non-blocking when process.stderr is
  // first looked at, which its sockets do when they are destroyed.
  Object.defineProperty(process, 'stderr', { value: undefined });

  const firstParent = process.ppid;

  // Until they are told, every comparison with them says that the program may not run.
  let stopMarginMs = NaN;
  let killMarginMs = NaN;
  // Until when the program may run. Only the supervisor extends it.
  const belief = new Countdown();
  // One at a time, from the spawning of its gate until its session is gone. Its fields:
  //
  //     { id, child, group, open, exited, complained, armedUntilMs,
  //       stopping: { because, killAtMs, end: Countdown | undefined } | undefined,
  //       killedAtMs: the first KILL | undefined }
  let program;
  // The supervisor is gone, or wants us to go: leave as soon as no program is left.
  let leaving = false;
  // The process that gives the seat back, and the seat. Undefined: it runs out.
  let heir;
  let seat;
  // The group of the last program.
  let buried;
  let judgeTimer;
  let beatAtMs = 0;

  const supervisor = new Socket({ fd: 3, readable: true, writable: true });
  supervisor.setEncoding('utf8');
  supervisor.on('error', () => leave('supervisor-gone'));
  supervisor.on('end', () => leave('supervisor-gone'));
  supervisor.on('close', () => leave('supervisor-gone'));
  let partial = '';
  supervisor.on('data', (text) => {
    // After a stall the messages are old, so first act on the deadlines that have passed.
    judge();
    partial += text;
    if (!text.includes('\n')) return;
    const lines = partial.split('\n');
    partial = lines.pop();
    for (const line of lines) obey(JSON.parse(line));
  });
  tell({ say: 'up' });

  function tell(message) {
    if (supervisor.writable) supervisor.write(`${JSON.stringify(message)}\n`);
  }

  function obey(message) {
    if (message.do === 'margins') ({ stopMarginMs, killMarginMs } = message);
    else if (message.do === 'belief') {
      if (message.deadline === null) belief.clear();
      else belief.set(message.deadline);
      judge();
    } else if (message.do === 'prepare') prepare(message);
    else if (message.do === 'heir') heir = message.heir;
    else if (message.do === 'seat') seat = message.seat ?? undefined;
    else if (message.do === 'leave') {
      // In order, or a program that does not die: the seat is not ours to give.
      seat = undefined;
      leave('stopped');
    } else if (message.id !== program?.id || program.exited) return;
    else if (message.do === 'go') go();
    else if (message.do === 'stop') {
      stop('stopped', message.killAtMs);
      judge();
    } else if (message.do === 'signal') signal(message.name);
  }

  /** Spawns the gate (../src/guard/gate.ts): a shell that leads the program's group and waits. */
  function prepare({ id, argv, env, cwd }) {
    if (leaving || program !== undefined || !(left(belief) > stopMarginMs)) {
      tell({
        say: 'failed',
        id,
        reason: program ? 'another program is not gone' : 'belief is over',
      });
      return;
    }
    let child;
    try {
      const stdio = ['inherit', 'inherit', 'inherit', 'pipe', 4, 'pipe'];
      child = spawn(argv[0], argv.slice(1), { cwd, env, stdio, detached: true });
    } catch (error) {
      tell({ say: 'failed', id, reason: error.message });
      return;
    }
    if (child.pid === undefined) {
      child.on('error', (error) => tell({ say: 'failed', id, reason: error.message }));
      return;
    }
    program = { id, child, group: child.pid, armedUntilMs: -Infinity };
    // Broken pipes of a dead shell: its exit is what counts.
    for (const fd of [3, 5]) child.stdio[fd].on('error', () => {});
    child.stdio[3].once('data', () => tell({ say: 'prepared', id, pid: child.pid }));
    child.once('exit', (code, signalName) => {
      program.exited = true;
      program.killedAtMs ??= monotonicMs();
      // The processes that the program left behind end with it.
      signalGroup(program.group, 'SIGKILL');
      // Seen so late it was the watcher in the group, not the program.
      const isOverForWatcher = signalName === 'SIGKILL' && !(program.armedUntilMs > monotonicMs());
      const inTime = left(belief) > killMarginMs && !isOverForWatcher;
      const because = program.stopping?.because ?? (inTime ? 'itself' : 'belief-over');
      tell({ say: 'exited', id, code, signal: signalName, because });
      bury(1);
    });
    judge();
  }

  function go() {
    judge();
    if (!(left(belief) > stopMarginMs) || program.stopping !== undefined) {
      tell({ say: 'refused', id: program.id, because: program.stopping?.because ?? 'belief-over' });
      kill('belief-over');
    } else if (!program.open) {
      program.open = true;
      program.child.stdio[3].write('go\n');
      tell({ say: 'opened', id: program.id });
    }
  }

  /**
   * TERM now, KILL when the monotonic clock is at `killAtMs` or `end` has come. A second call can
   * only bring that forward.
   */
  function stop(because, killAtMs, end) {
    const isFirst = program.stopping === undefined;
    program.stopping ??= { because, killAtMs, end };
    const { stopping } = program;
    stopping.killAtMs = Math.min(stopping.killAtMs, killAtMs);
    stopping.end ??= end;
    if (isFirst && graceLeft(stopping) > 0) terminate();
  }

  function graceLeft({ killAtMs, end }) {
    return Math.min(killAtMs - monotonicMs(), end === undefined ? Infinity : left(end));
  }

  function terminate() {
    signalGroup(program.group, 'SIGTERM');
    // A stopped program could not react.
    signalGroup(program.group, 'SIGCONT');
  }

  function kill(because) {
    program.stopping ??= { because, killAtMs: Infinity, end: undefined };
    program.killedAtMs ??= monotonicMs();
    signalGroup(program.group, 'SIGKILL');
    complain();
  }

  /** No process can refuse KILL, but it may be stuck in the kernel, or belong to another user. */
  function complain() {
    if (program.complained || monotonicMs() - program.killedAtMs < lingeringMs) return;
    program.complained = true;
    tell({ say: 'lingering', id: program.id });
  }

  function signal(name) {
    if (name === 'SIGTERM') terminate();
    // Ctrl-C in a terminal reaches the whole group too.
    else if (name === 'SIGINT') signalGroup(program.group, name);
    // "Reload" and the like are for the main process; its helpers would die of them.
    else signalOne(program.group, name);
  }

  /**
   * Acts on the deadlines that have passed: TERM at belief - G, KILL at belief - K or at the end of
   * the grace.
   */
  function judge() {
    clearTimeout(judgeTimer);
    const leftMs = left(belief);
    if (program === undefined || program.exited) return;
    // `!(a > b)`, so that a number gone wrong (NaN) kills.
    if (!(leftMs > killMarginMs)) kill('belief-over');
    else if (program.stopping && !(graceLeft(program.stopping) > 0)) kill('stopped');
    // The deadline is fixed here: belief that comes back later belongs to another term.
    else if (!(leftMs > stopMarginMs)) stop('belief-over', Infinity, killEnd());

    let nextMs = judgeEveryMs;
    if (program.killedAtMs === undefined) {
      nextMs = Math.min(nextMs, leftMs - (leftMs > stopMarginMs ? stopMarginMs : killMarginMs));
      if (program.stopping) nextMs = Math.min(nextMs, graceLeft(program.stopping));
    }
    // Rounded up, so that the timer finds the instant passed.
    judgeTimer = setTimeout(judge, Math.max(1, Math.ceil(nextMs)));
    arm();
    beat();
  }

  /** Belief - K as it is now. */
  function killEnd() {
    const { monotonicMs: endMs, wallMs, ...counted } = belief.deadline;
    const end = new Countdown();
    end.set({ ...counted, monotonicMs: endMs - killMarginMs, wallMs: wallMs - killMarginMs });
    return end;
  }

  /** An empty line, so that the supervisor knows we are awake. Never queued. */
  function beat() {
    const nowMs = monotonicMs();
    if (nowMs - beatAtMs < beatEveryMs || !supervisor.writable || supervisor.writableLength) return;
    beatAtMs = nowMs;
    supervisor.write('\n');
  }

  /**
   * Tells the watcher inside the group how long it may go without hearing from us. Its deadline
   * lies half a margin behind ours, so it acts only if we do not. It is told whenever belief moves:
   * after the last renewal, an older and earlier deadline would make it act long before us.
   */
  function arm() {
    if (program === undefined || program.exited) return;
    // Before it acts, it looks for a tenth of a second whether a newer line has come.
    const lookMs = Math.min(100, killMarginMs / 4);
    const seconds = (left(belief) - killMarginMs / 2 - lookMs) / 1000;
    const armedSeconds = (program.armedUntilMs - monotonicMs()) / 1000;
    // The clocks differ by a millisecond or two from one look to the next.
    if (!(seconds > 0) || Math.abs(armedSeconds - seconds) < 0.01) return;
    const pipe = program.child.stdio[5];
    // The watcher is stopped, with all of its group, and reads nothing.
    if (pipe.writableLength > 0) return;
    program.armedUntilMs = monotonicMs() + seconds * 1000;
    // A shell that knows only whole seconds looks for a whole one.
    const whole = Math.max(1, Math.floor(seconds - 1));
    pipe.write(`${seconds.toFixed(2)} ${whole} ${untilUptime(seconds)}\n`);
  }

  /** Waits until every process of the session is dead, and reports it. */
  function bury(delayMs) {
    const { id, group, child } = program;
    const nowMs = monotonicMs();
    // Looking for zombies means a walk through /proc: first give process 1 a moment to reap.
    if (groupIsGone(group, delayMs > 2)) {
      for (const fd of [3, 5]) child.stdio[fd].destroy();
      buried = group;
      program = undefined;
      tell({ say: 'gone', id });
      if (leaving) end();
      return;
    }
    complain();
    setTimeout(() => {
      // Once more, for a fork that was under way. Not after a stall: by then the group may have
      // ended, and another group may have its number.
      if (monotonicMs() - nowMs < delayMs + 1_000) signalGroup(group, 'SIGKILL');
      beat();
      bury(Math.min(2 * delayMs, beatEveryMs));
    }, delayMs);
  }

  function leave(because) {
    if (leaving && program === undefined) return;
    leaving = true;
    if (program === undefined) end();
    else if (!program.exited) kill(because);
  }

  /** No program is left. */
  function end() {
    if (heir === undefined || seat === undefined) process.exit(0);
    const untilMs = monotonicMs() + deathWithinMs;
    // A pipe may end without its process. The kernel gives us another parent when no thread of ours
    // is left, and then only.
    const look = () => {
      if (supervisorPid !== firstParent) process.exit(0);
      const isDead = process.ppid !== supervisorPid;
      if (isDead && (buried === undefined || isSurelyGone(buried))) bequeath();
      else if (monotonicMs() < untilMs) setTimeout(look, 5);
      else process.exit(0);
    };
    look();
  }

  /** Starts the process that gives the seat back, and leaves it alone. */
  function bequeath() {
    const { argv, cwd, env, input } = heir;
    const stdio = ['pipe', 'ignore', 'inherit'];
    const child = spawn(process.execPath, argv, { cwd, env, stdio, detached: true });
    child.on('error', () => process.exit(0));
    child.stdin.on('error', () => process.exit(0));
    child.stdin.end(JSON.stringify({ ...input, seat }), () => process.exit(0));
  }
}

/** Milliseconds, by the two-clock law. */
function left(countdown) {
  return countdown.look({ monotonicMs: monotonicMs(), wallMs: Date.now() });
}

/** hrtime and not performance.now(): its origin is common to all processes of the machine. */
function monotonicMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/**
 * Signals the group. On Linux also the processes that have left the group (`timeout` does) but not
 * the session, which has the same number. It is no error when there is no such process, or none
 * that we may signal.
 */
function signalGroup(group, name) {
  signalOne(-group, name);
  if (name === 'SIGKILL') {
    killSession(group);
    return;
  }
  for (const member of living(group) ?? []) {
    if (member.group !== group) signalOne(member.pid, name);
  }
}

/**
 * Walks until a walk finds no new process: a process that was sent KILL forks no more. bury() comes
 * back for the rest.
 */
function killSession(session) {
  const sent = new Set();
  for (let walks = 0; walks < 20; walks += 1) {
    const before = sent.size;
    for (const { pid } of living(session) ?? []) {
      if (sent.has(pid)) continue;
      sent.add(pid);
      signalOne(pid, 'SIGKILL');
    }
    if (sent.size === before) return;
  }
}

function signalOne(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH' && error.code !== 'EPERM') throw error;
  }
}

/**
 * Whether no process of the group, or on Linux of the session of that number, can act any more. To
 * be asked only after they were sent KILL.
 */
function groupIsGone(group, lookForZombies) {
  let isListed = true;
  try {
    process.kill(-group, 0);
  } catch (error) {
    // EPERM: the group has a process that we may not signal.
    if (error.code !== 'ESRCH') return false;
    isListed = false;
  }
  if (isListed && !lookForZombies) return false;
  if (!procIsOurs()) return !isListed;
  if (onlyZombiesLeft(group, isListed)) return true;
  // The last of the dead may have been reaped while we looked for them.
  return isListed && groupIsUnknown(group) && onlyZombiesLeft(group, false);
}

/**
 * As `groupIsGone`, where any doubt is a no: a successor may lead at once, and not after the lease. So
 * only where all processes can be seen, and in a walk during which no process was forked.
 */
function isSurelyGone(group) {
  if (!procIsOurs() || !groupIsGone(group, true)) return false;
  try {
    // Not readable: hidepid hides the processes of other users from us.
    readProc('1/stat', Buffer.alloc(1024));
  } catch {
    return false;
  }
  const forks = forksSoFar();
  const found = living(group);
  return found?.length === 0 && forks !== undefined && forksSoFar() === forks;
}

function groupIsUnknown(group) {
  try {
    process.kill(-group, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

/**
 * Process 1 reaps orphans. In a container without an init it does not, so the dead stay listed for
 * ever. If the kernel lists the group, any doubt is a no.
 *
 * A process that forks and ends all the time may stay out of sight. So we wait for a walk during
 * which no process was forked, but not for ever: other programs may fork all the time.
 */
function onlyZombiesLeft(group, isListed) {
  for (let walks = 0; walks < 3; walks += 1) {
    const forks = forksSoFar();
    const found = living(group, isListed);
    if (found === undefined || found.length > 0) return false;
    if (forksSoFar() === forks) return true;
  }
  return true;
}

/**
 * The processes of a session that can still act, as { pid, group }; undefined if that cannot be
 * seen. `strictly` is for a group that the kernel lists: a walk that may have missed one of its
 * processes gives undefined.
 */
function living(session, strictly = false) {
  if (!procIsOurs()) return undefined;
  const found = [];
  try {
    const buffer = Buffer.alloc(1024);
    // Not readable: hidepid hides the processes of other users from us.
    if (strictly) readProc('1/stat', buffer);
    let members = 0;
    for (const pid of readdirSync('/proc')) {
      if (!/^\d+$/.test(pid)) continue;
      let stat;
      try {
        stat = parseStat(readProc(`${pid}/stat`, buffer));
      } catch (error) {
        if (!strictly || error.code === 'ENOENT' || error.code === 'ESRCH') continue;
        return undefined;
      }
      if (stat.group === session) members += 1;
      else if (stat.session !== session) continue;
      if (!stat.isSpent) found.push({ pid: Number(pid), group: stat.group });
    }
    return strictly && members === 0 ? undefined : found;
  } catch {
    return undefined;
  }
}

/**
 * The instant that lies so many seconds ahead, in hundredths of /proc/uptime, which counts
 * suspension; '' where there is none.
 */
function untilUptime(seconds) {
  try {
    const [, whole, hundredths] = /^(\d+)\.(\d\d) /.exec(readProc('uptime', Buffer.alloc(64)));
    return Number(whole) * 100 + Number(hundredths) + Math.floor(seconds * 100);
  } catch {
    return '';
  }
}

let isProcOurs;

/** On Linux, with a /proc of our own pid namespace: in another one our numbers mean other processes. */
function procIsOurs() {
  if (isProcOurs !== undefined) return isProcOurs;
  try {
    const status = readProc('self/status', Buffer.alloc(16_384));
    isProcOurs = /^NSpid:\t(.*)$/m.exec(status)?.[1] === String(process.pid);
  } catch (error) {
    // For want of descriptors or memory nothing is seen: then nothing counts as gone either.
    if (!['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(error.code)) return true;
    isProcOurs = false;
  }
  return isProcOurs;
}

/** Processes and threads that this machine has made since it booted. */
function forksSoFar() {
  try {
    return /^processes (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

/**
 * pid (name) state ppid pgrp session ...: proc(5). The name may contain anything. A zombie without
 * threads has closed its files and will do nothing; num_threads is field 20. A leader may be a
 * zombie while its threads live on, and 0 means that they could not be counted.
 */
function parseStat(stat) {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    group: Number(fields[2]),
    session: Number(fields[3]),
    isSpent: fields[0] === 'Z' && Number(fields[17]) === 1,
  };
}

/** Not readFileSync, which takes 64 KiB of memory for each file whose size it does not know. */
function readProc(name, buffer) {
  const fd = openSync(`/proc/${name}`, 'r');
  try {
    return buffer.toString('latin1', 0, readSync(fd, buffer));
  } finally {
    closeSync(fd);
  }
}
