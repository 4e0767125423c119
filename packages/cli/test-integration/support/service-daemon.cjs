// A service for the tests of `incumbent agent`: a port, a role, and a log of what it did in it.
//
//   node service-daemon.cjs NAME PORT-FILE PID-FILE LOG
//
// The port is free when PORT-FILE is missing, and is written there. Requests:
//
// - POST /active, with { token }: active from now on. It logs `start`, then `beat` while it is.
// - POST /standby: logs `stop`.
// - GET /ok: 200, or 503 after POST /sick.
// - GET /role
// - POST /hang: no request is answered any more. An active service goes on being active.
// - POST /slow, with { ms }: so long every change of role takes.
//
// Lines of the log are those of run-worker.cjs.
const { createServer } = require('node:http');
const { existsSync, openSync, readFileSync, writeFileSync, writeSync } = require('node:fs');

const [name, portFile, pidFile, log] = process.argv.slice(2);
const fd = openSync(log, 'a');
let token;
let timer;
let isSick = false;
let isHung = false;
let slowMs = 0;

function record(what) {
  const [seconds, nanoseconds] = process.hrtime();
  writeSync(fd, `${token} ${name} ${process.pid} ${seconds * 1e3 + nanoseconds / 1e6} ${what}\n`);
}

function activate(body) {
  token = body.token;
  clearInterval(timer);
  record('start');
  timer = setInterval(() => record('beat'), 10);
}

function standby() {
  if (token === undefined) return;
  clearInterval(timer);
  record('stop');
  token = undefined;
}

// One change of role after the other, in the order of the requests.
let changes = Promise.resolve();
function change(act) {
  changes = changes.then(async () => {
    await new Promise((resolve) => setTimeout(resolve, slowMs));
    act();
  });
  return changes;
}

const server = createServer((request, response) => void serve(request, response));

async function serve(request, response) {
  let text = '';
  for await (const part of request) text += part;
  if (isHung) return;
  const body = text === '' ? {} : JSON.parse(text);
  const answer = (status, words) => {
    response.writeHead(status, { connection: 'close' });
    response.end(words);
  };
  switch (request.url ?? '') {
    case '/active':
      await change(() => activate(body));
      return answer(200, 'active');
    case '/standby':
      await change(standby);
      return answer(200, 'standby');
    case '/ok':
      return answer(isSick ? 503 : 200, isSick ? 'sick' : 'ok');
    case '/role':
      return answer(200, token === undefined ? 'standby' : `active ${token}`);
    case '/sick':
      isSick = true;
      return answer(200, 'sick');
    case '/slow':
      slowMs = body.ms;
      return answer(200, 'slow');
    case '/hang':
      answer(200, 'hangs');
      isHung = true;
      return;
    default:
      return answer(404, 'unknown');
  }
}
writeFileSync(pidFile, `${process.pid}\n`);
server.listen(
  existsSync(portFile) ? Number(readFileSync(portFile, 'utf8')) : 0,
  '127.0.0.1',
  () => {
    writeFileSync(portFile, String(server.address().port));
    console.log('listens');
  },
);
