'use strict';
// The guard of a service that `incumbent agent` steers, and did not start. While the service may be
// active, it kills the service's process when the agent's belief is nearly over, or when the agent is
// gone. For the types of the messages see ../src/agent/process-guard.ts.
//
//   node process-guard.cjs KILL_MARGIN_MS
//
// fd 3 is a socket to the agent, with one JSON message a line, both ways.
const { readFileSync } = require('node:fs');
const { readFile, stat } = require('node:fs/promises');
const { Socket } = require('node:net');
const { Countdown, groupIsGone, monotonicMs, signalGroup } = require('./guard.cjs');

// Clocks and the process are looked at at least this often, even when a timer is late.
const judgeEveryMs = 50;
const beatEveryMs = 200;
// From one KILL to the next look: at first, and at most.
const firstLookMs = 5;
const longestLookMs = 200;
// A file may be written so long before its process starts, by clocks that are set meanwhile.
const fileSlackMs = 5_000;
// Without an agent nobody waits for a file that cannot be read. Later it may name a service that another
// agent has made active.
const readAtMostMs = 10_000;
// Of /proc/PID/stat: USER_HZ.
const ticksPerSecond = 100;
// The file is older than the process that it names.
const staleCode = 'STALE';

// The earliest that /proc/stat has said.
let earliestBootMs = Infinity;

if (require.main === module) guard(Number(process.argv[2]));

module.exports = { bootMs, isStale, lookAt };

function guard(killMarginMs) {
  bootMs();
  for (const name of ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'ALRM', 'TSTP', 'TTIN', 'TTOU'])
    process.on(`SIG${name}`, () => {});

  const belief = new Countdown();
  // The service may be active: { file, group: kill the whole group, noted: the process that was found
  // then (lookAt), leader: the one that leads its group, hasEnded: and that was told }.
  let armed;
  // The number of the request to arm that counts. A finding for another one is dropped.
  let wanted;
  let killing = false;
  // When the agent was gone.
  let leftAtMs;
  let beatAtMs = 0;
  let timer;

  const agent = new Socket({ fd: 3, readable: true, writable: true });
  agent.setEncoding('utf8');
  agent.on('error', leave);
  agent.on('end', leave);
  agent.on('close', leave);
  let partial = '';
  agent.on('data', (text) => {
    // After a stall the messages are old, so first act on the deadline that has passed.
    judge();
    const lines = (partial + text).split('\n');
    partial = lines.pop();
    for (const line of lines) obey(JSON.parse(line));
  });
  tell({ say: 'up' });

  function tell(message) {
    if (agent.writable) agent.write(`${JSON.stringify(message)}\n`);
  }

  function obey(message) {
    if (message.do === 'belief') {
      if (message.deadline === null) belief.clear();
      else belief.set(message.deadline);
      judge();
    } else if (message.do === 'arm') void arm(message);
    else if (message.do === 'disarm') {
      wanted = undefined;
      if (!killing) armed = undefined;
    } else if (message.do === 'look') void look(message);
    else if (message.do === 'find') void find(message);
    else if (message.do === 'kill') kill('asked', message.present);
  }

  /** Whether it could be armed. Changes nothing, so it may come between the steps of `arm`. */
  async function find({ request, ...service }) {
    const reason = await findService(service).then(
      () => null,
      (error) => error.message,
    );
    tell({ say: 'found', request, reason });
  }

  /** Whether the service is still the process for which it was armed. */
  async function look({ request }) {
    const of = armed;
    let same = false;
    try {
      if (of !== undefined) {
        const number = of.file === null ? of.noted.pid : (await readNumber(of.file)).pid;
        same = isSame(of.noted) && number === of.noted.pid;
      }
    } catch {
      // The file cannot be read.
    }
    tell({ say: 'looked', request, same: same && armed === of });
  }

  async function arm({ request, file, pid, group }) {
    wanted = request;
    const refuse = (reason) => tell({ say: 'refused', request, reason });
    try {
      const noted = await findService({ file, pid, group });
      if (request !== wanted) return;
      // It would be forgotten when the kill is done.
      if (killing) return refuse('the process before it is not dead yet');
      if (!(left() > killMarginMs)) return refuse('belief is over');
      armed = { file, group, noted, leader: group ? lookAt(noted.group) : undefined };
      tell({ say: 'armed', request, pid: noted.pid });
      judge();
    } catch (error) {
      if (request === wanted) refuse(error.message);
    }
  }

  function judge() {
    clearTimeout(timer);
    const leftMs = left();
    if (armed === undefined || killing) return;
    // `!(a > b)`, so that a number gone wrong (NaN) kills.
    if (!(leftMs > killMarginMs)) return kill('belief-over');
    if (!armed.hasEnded && !isSame(armed.noted)) {
      armed.hasEnded = true;
      tell({ say: 'ended', pid: armed.noted.pid });
    }
    beat();
    timer = setTimeout(
      judge,
      Math.max(1, Math.min(judgeEveryMs, Math.ceil(leftMs - killMarginMs))),
    );
  }

  /** An empty line, so that the agent knows we are awake. Never queued. */
  function beat() {
    const nowMs = monotonicMs();
    if (nowMs - beatAtMs < beatEveryMs || !agent.writable || agent.writableLength > 0) return;
    beatAtMs = nowMs;
    agent.write('\n');
  }

  /**
   * Until none of the processes lives.
   * @param killsPresent a service manager may have started another process meanwhile, which may be
   * active too: it dies if the file names it now
   */
  function kill(because, killsPresent = true) {
    if (armed === undefined) return tell({ say: 'gone', because: 'not-armed' });
    if (killing) return;
    killing = true;
    const { file, group, noted } = armed;
    const targets = [group ? groupTarget(armed) : processTarget(noted)];
    // It is known whether the file names another process.
    let isRead = file === null || !killsPresent;
    let isReading = false;
    round(firstLookMs);

    async function lookForOther() {
      isReading = true;
      try {
        const found = await readPid(file);
        const isOther = found !== undefined && !isSame(noted, found);
        // A group that must not be killed is not gone either.
        if (isOther && group && whyNotGroup(found) !== undefined) return;
        if (isOther && group)
          targets.push(groupTarget({ noted: found, leader: lookAt(found.group) }));
        else if (isOther) targets.push(processTarget(found));
        isRead = true;
      } catch (error) {
        // Anything else is no proof, so the file is read again.
        isRead = error.code === 'ENOENT' || error.code === staleCode;
      } finally {
        isReading = false;
      }
    }

    function round(delayMs) {
      beat();
      const living = targets.filter((target) => !target.isGone());
      for (const target of living) target.kill();
      // Not waited for: the file may be on a mount that does not answer.
      if (!isRead && !isReading) void lookForOther();
      if (living.length === 0 && monotonicMs() - leftAtMs > readAtMostMs) process.exit(0);
      if (living.length > 0 || !isRead) {
        setTimeout(() => round(Math.min(2 * delayMs, longestLookMs)), delayMs);
        return;
      }
      killing = false;
      armed = undefined;
      tell({ say: 'gone', because });
      if (leftAtMs !== undefined) process.exit(0);
    }
  }

  function leave() {
    leftAtMs ??= monotonicMs();
    if (armed === undefined) process.exit(0);
    kill('agent-gone');
  }

  /** Milliseconds, by the two-clock law. */
  function left() {
    return belief.look({ monotonicMs: monotonicMs(), wallMs: Date.now() });
  }
}

function processTarget(noted) {
  return {
    isGone: () => !isSame(noted),
    kill: () => isSame(noted) && attempt(() => process.kill(noted.pid, 'SIGKILL')),
  };
}

/** On Linux also the session of that number, as the guard of `run` has it. */
function groupTarget({ noted: { group }, leader }) {
  // No process gets the number of a group that still has a process. So a leader that was not there
  // belongs to another group.
  const isReused = () => {
    const now = lookAt(group);
    if (now === undefined) return false;
    return leader === undefined || !isSame(leader, now);
  };
  return {
    isGone: () => isReused() || groupIsGone(group, true),
    kill: () => isReused() || signalGroup(group, 'SIGKILL'),
  };
}

/** @returns the reason why the group of this process must not be killed */
function whyNotGroup({ group }) {
  if (group === undefined) return 'a process group can only be found where there is /proc';
  // kill(-1) is for every process of the machine, and kill(0) for our own group.
  if (!(group > 1)) return `process group ${group} is not one of a service`;
  const own = lookAt(process.ppid);
  if (own === undefined || own.group === group || own.session === group) {
    return (
      `process group ${group} is that of the agent too, which would die with the service: start the ` +
      'service in a group of its own (setsid)'
    );
  }
  return undefined;
}

/**
 * The process of the service, as it runs now.
 * @throws with the reason and the way out, when there is none, or it must not be killed
 */
async function findService({ file, pid, group }) {
  const noted = file === null ? lookAt(pid) : await readPid(file);
  if (noted === undefined) {
    throw new Error(
      file === null
        ? `process ${pid} does not run: give the number of the service, or a file with it, which may ` +
            'name another process after a restart'
        : `the process that ${file} names does not run: let the service write its number there ` +
            'whenever it starts',
    );
  }
  const reason = group ? whyNotGroup(noted) : undefined;
  if (reason !== undefined) throw new Error(reason);
  try {
    process.kill(noted.pid, 0);
  } catch (error) {
    throw new Error(
      `the agent may not kill process ${noted.pid} (${error.code}): run it as the user of the service`,
    );
  }
  return noted;
}

/**
 * The process that the file names now; undefined: none.
 * @throws when the file cannot be read, or is older than the process
 */
async function readPid(file) {
  const { pid, writtenMs } = await readNumber(file);
  const found = lookAt(pid);
  if (found !== undefined && isStale(found, writtenMs, bootMs())) {
    const message =
      `${file} is older than process ${pid}, so it means another one that has ended: restart the ` +
      `service, so that it writes the file again; or \`touch ${file}\` if that is the service, and the ` +
      'clock was set';
    throw Object.assign(new Error(message), { code: staleCode });
  }
  return found;
}

async function readNumber(file) {
  const [text, { mtimeMs }] = await Promise.all([readFile(file, 'latin1'), stat(file)]).catch(
    (error) => {
      const message =
        `${file} cannot be read (${error.code}): let the service write its number there when it ` +
        'starts, or give the path of the file that it writes';
      throw Object.assign(new Error(message), { code: error.code });
    },
  );
  const pid = Number(text.trim().split(/\s/)[0]);
  if (!Number.isInteger(pid) || pid < 2) {
    throw new Error(
      `${file} holds no number of a process: let the service write its number there when it starts`,
    );
  }
  return { pid, writtenMs: mtimeMs };
}

/**
 * Whether a file of that age can not have meant this process. The number was given again.
 * @param bootMs undefined: unknown, as is then the answer
 */
function isStale({ startedAt }, writtenMs, bootMs) {
  if (startedAt === undefined || bootMs === undefined) return false;
  return writtenMs + fileSlackMs < bootMs + (Number(startedAt) / ticksPerSecond) * 1e3;
}

/**
 * By the wall clock. When that is set, the kernel moves the answer with it, and a file that was written
 * before seems older. So the earliest answer counts.
 */
function bootMs(read = readFileSync) {
  const seconds = attempt(() => /^btime (\d+)$/m.exec(read('/proc/stat', 'latin1'))?.[1]);
  if (seconds !== undefined) earliestBootMs = Math.min(earliestBootMs, Number(seconds) * 1e3);
  return earliestBootMs === Infinity ? undefined : earliestBootMs;
}

/** Whether the process still runs. If that cannot be seen, it does. */
function isSame({ pid, startedAt }, now = lookAt(pid)) {
  if (now === undefined || now.pid !== pid) return false;
  return startedAt === undefined || now.startedAt === undefined || now.startedAt === startedAt;
}

/**
 * { pid, group, session, startedAt } of a process. Undefined: it is certainly dead. A field that
 * cannot be read is undefined, as without /proc: then its number says all that is known.
 */
function lookAt(pid, read = readFileSync) {
  if (isUnknown(pid)) return undefined;
  let text;
  try {
    text = read(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // It has ended just now, or /proc hides it, or too many files are open.
    return isUnknown(pid) ? undefined : { pid };
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  // A zombie whose threads have all ended does nothing any more.
  if (fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) === 1)) return undefined;
  return { pid, group: Number(fields[2]), session: Number(fields[3]), startedAt: fields[19] };
}

/** The kernel knows no process of that number. A question that needs no file. */
function isUnknown(pid) {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

function attempt(job) {
  try {
    return job();
  } catch {
    return undefined;
  }
}
