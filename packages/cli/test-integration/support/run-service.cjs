// A program for the tests of --ready-when: a service that must prepare before it can serve.
//
//   node run-service.cjs PORT LEAST_MS MOST_MS
//
// GET /ok answers 503 until it has prepared, for a time between the two, and then 200. Every other
// path is a request of a client: `ready` or, before it has prepared, `early`.
const { createServer } = require('node:http');

const [port, leastMs, mostMs] = process.argv.slice(2).map(Number);
let isPrepared = false;
setTimeout(
  () => {
    isPrepared = true;
  },
  leastMs + Math.random() * (mostMs - leastMs),
);

createServer((request, response) => {
  if (request.url === '/ok') response.writeHead(isPrepared ? 200 : 503).end();
  else response.end(isPrepared ? 'ready' : 'early');
}).listen(port, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
