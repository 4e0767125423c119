'use strict';
// The guard of a service that `incumbent agent` steers, and did not start. While the service may be
// active, it kills the service's process when the agent's belief is nearly over, or when the agent is
// gone. For the types of the messages see ../src/agent/process-guard.ts.
//
//   node process-guard.cjs KILL_MARGIN_MS
//
// fd 3 is a socket to the agent, with one JSON message a line, both ways.
const { readFileSync } = require('node:fs');
const { Socket } = require('node:net');
const { Countdown } = require('./guard.cjs');

// Clocks are judged at least this often, even when a timer is late.
const judgeEveryMs = 50;
const lookEveryMs = 20;

const killMarginMs = Number(process.argv[2]);

for (const name of ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'ALRM', 'TSTP', 'TTIN', 'TTOU'])
  process.on(`SIG${name}`, () => {});

const belief = new Countdown();
// The service may be active: { file, pid, group: kill the whole group, noted: the process found when
// armed, as { pid, group, startedAt } }.
let armed;
let killing = false;
let leaving = false;
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
  } else if (message.do === 'arm') arm(message);
  else if (message.do === 'disarm') armed = killing ? armed : undefined;
  else if (message.do === 'kill') kill('asked');
}

function arm({ file, pid, group }) {
  if (!(left() > killMarginMs)) return tell({ say: 'refused', reason: 'belief is over' });
  try {
    const noted = find(file, pid);
    if (noted === undefined) {
      const where = file === null ? `process ${pid}` : `the process that ${file} names`;
      return tell({ say: 'refused', reason: `${where} does not run` });
    }
    if (group && noted.group === undefined) {
      return tell({
        say: 'refused',
        reason: 'a process group can only be found where there is /proc',
      });
    }
    // May we kill it?
    process.kill(noted.pid, 0);
    armed = { file, pid, group, noted };
    tell({ say: 'armed', pid: noted.pid });
    judge();
  } catch (error) {
    tell({ say: 'refused', reason: error.message });
  }
}

function judge() {
  clearTimeout(timer);
  const leftMs = left();
  if (armed === undefined || killing) return;
  // `!(a > b)`, so that a number gone wrong (NaN) kills.
  if (!(leftMs > killMarginMs)) return kill('belief-over');
  timer = setTimeout(judge, Math.max(1, Math.min(judgeEveryMs, Math.ceil(leftMs - killMarginMs))));
}

/** Until none of the processes lives. A service manager may have started another one meanwhile. */
function kill(because) {
  if (armed === undefined) return tell({ say: 'gone', because });
  if (killing) return;
  killing = true;
  const { file, pid, group, noted } = armed;
  const targets = new Map([[noted.pid, noted]]);
  const present = attempt(() => find(file, pid));
  if (present !== undefined) targets.set(present.pid, present);
  const round = () => {
    const living = [...targets.values()].filter(isSame);
    for (const target of living) send(group && target.group ? -target.group : target.pid);
    if (living.length > 0) return setTimeout(round, lookEveryMs);
    killing = false;
    armed = undefined;
    tell({ say: 'gone', because });
    if (leaving) process.exit(0);
  };
  round();
}

function leave() {
  leaving = true;
  if (armed === undefined) process.exit(0);
  kill('agent-gone');
}

function send(number) {
  attempt(() => process.kill(number, 'SIGKILL'));
}

/** The process that runs now; undefined: none. @throws when the file cannot be read */
function find(file, number) {
  const pid = file === null ? number : Number(readFileSync(file, 'latin1').trim().split(/\s/)[0]);
  if (!Number.isInteger(pid) || pid < 2) throw new Error(`${file} holds no number of a process`);
  return lookAt(pid);
}

function isSame({ pid, startedAt }) {
  const now = lookAt(pid);
  return now !== undefined && now.startedAt === startedAt;
}

/** Undefined: it is dead. Without /proc a number says all that is known. */
function lookAt(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie whose threads have all ended does nothing any more.
    if (fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) === 1)) return undefined;
    return { pid, group: Number(fields[2]), startedAt: fields[19] };
  } catch {
    if (process.platform === 'linux') return undefined;
  }
  try {
    process.kill(pid, 0);
    return { pid, group: undefined, startedAt: undefined };
  } catch (error) {
    return error.code === 'EPERM' ? { pid, group: undefined, startedAt: undefined } : undefined;
  }
}

function attempt(job) {
  try {
    return job();
  } catch {
    return undefined;
  }
}

/** Milliseconds, by the two-clock law. */
function left() {
  const [seconds, nanoseconds] = process.hrtime();
  return belief.look({ monotonicMs: seconds * 1e3 + nanoseconds / 1e6, wallMs: Date.now() });
}
