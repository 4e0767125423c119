'use strict';
// The companion of a process that campaigns with `releaseOnCrash`. It knows the seats of that process. When the
// process is dead, it starts the heir (heir.mjs), which gives these seats back. For the rules see
// docs/design/hand-over.md, "A death that is seen".
//
// Plain CommonJS and two modules: it runs beside every such process, so it must stay small.
//
//   node companion.cjs PID_OF_OUR_PARENT
//
// fd 3 is a pipe from the parent, with one JSON message a line. For the messages see src/core/companion.ts.
const { spawn } = require('node:child_process');
const { Socket } = require('node:net');
const { join } = require('node:path');

// The end of its pipe comes shortly before the end of a process.
const deathWithinMs = 5_000;
const lookEveryMs = 5;
// A manager of services sends TERM to all that is left of a dead service. It may meet the heir before its first line.
const mostHeirs = 3;

const parent = Number(process.argv[2]);
// Another one already: the parent has died, or it is a wrapper, which may outlive the process that spoke to us.
const isChildOfParent = process.ppid === parent;
// We outlive the parent, and end by the end of the pipe. A no-op handler also keeps USR1 from opening the inspector.
for (const name of ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'ALRM', 'TSTP', 'TTIN', 'TTOU'])
  process.on(`SIG${name}`, () => {});

// How to start the heir.
let heir;
// The seats, and all that the heir needs for each, by campaign.
const bequests = new Map();
let isOver = false;

const pipe = new Socket({ fd: 3, readable: true, writable: false });
pipe.setEncoding('utf8');
for (const event of ['error', 'end', 'close']) pipe.on(event, end);
let partial = '';
pipe.on('data', (text) => {
  const lines = (partial + text).split('\n');
  partial = lines.pop();
  for (const line of lines) {
    const { heir: told, key, bequest } = JSON.parse(line);
    if (told !== undefined) heir = told;
    else if (bequest === null) bequests.delete(key);
    else bequests.set(key, bequest);
  }
});

/** A pipe may end without its process. The kernel gives us another parent when no thread of ours is left. */
function end() {
  if (isOver) return;
  isOver = true;
  if (bequests.size === 0 || heir === undefined || !isChildOfParent) process.exit();
  const untilMs = performance.now() + deathWithinMs;
  const look = () => {
    if (process.ppid !== parent) bequeath(mostHeirs);
    else if (performance.now() < untilMs) setTimeout(look, lookEveryMs);
    else process.exit();
  };
  look();
}

function bequeath(tries) {
  const { execArgv, env } = heir;
  const child = spawn(process.execPath, [...execArgv, join(__dirname, 'heir.mjs')], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'ignore', 'ignore'],
    // It bounds itself, but the user's loaders come before its first line.
    timeout: 2 * deathWithinMs,
    killSignal: 'SIGKILL',
  });
  child.on('error', () => process.exit());
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify([...bequests.values()]));
  child.on('exit', (_, signal) => {
    if (tries > 1 && ['SIGHUP', 'SIGINT', 'SIGTERM'].includes(signal)) bequeath(tries - 1);
    else process.exit();
  });
}
