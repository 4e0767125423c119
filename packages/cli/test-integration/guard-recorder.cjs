// A program for the tests: writes down that it runs, and every signal it gets, with the monotonic
// time that all processes share.
//
//   node guard-recorder.cjs FILE leader,child,grandchild [exit-on-term]
const { spawn } = require('node:child_process');
const { openSync, writeSync } = require('node:fs');

const [file, roles, mode] = process.argv.slice(2);
const [role, ...others] = roles.split(',');
const fd = openSync(file, 'a');

function record(what) {
  const [seconds, nanoseconds] = process.hrtime();
  writeSync(fd, `${role} ${what} ${seconds * 1e3 + nanoseconds / 1e6}\n`);
}

for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2']) {
  process.on(name, () => {
    record(name);
    if (name === 'SIGTERM' && mode === 'exit-on-term') process.exit(7);
  });
}
if (others.length > 0) {
  spawn(process.execPath, [__filename, file, others.join(','), mode ?? ''], { stdio: 'inherit' });
}
record('start');
setInterval(() => record('beat'), 5);
