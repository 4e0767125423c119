// A process of the HTTP tests, which has to end by itself:
//
//   node http-process.mjs <close | leave> <compiled index.js> <memory> <http>
//
// It leads, serves, follows and passes on. With `leave` it closes no more than its servers.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { Agent, request } from 'undici';

const [how, ...paths] = process.argv.slice(2);
const [{ createElection }, { memory }, { carryToken, leaderOnly, requireToken, toLeader }] =
  await Promise.all(paths.map((path) => import(pathToFileURL(path).href)));

const servers = [];
async function listen(handler) {
  const server = createServer(handler);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${server.address().port}`;
}

let term;
const backend = memory();
const required = requireToken({ election: 'billing' });
const resource = await listen((incoming, response) =>
  required(incoming, response, () => response.end('kept')),
);
const observed = createElection({ name: 'billing', backend, lease: '1h' });
const serving = leaderOnly({ election: observed, term: () => term });
const leader = await listen((incoming, response) =>
  serving(incoming, response, async () => {
    const agent = new Agent();
    const dispatcher = agent.compose(carryToken(term));
    const { body } = await request(`http://${resource}/`, { dispatcher });
    response.end(await body.text());
    await agent.close();
  }),
);
const proxying = leaderOnly({ election: observed, term: () => undefined, followers: 'proxy' });
const follower = await listen((incoming, response) => proxying(incoming, response, () => {}));

const election = createElection({
  name: 'billing',
  backend,
  lease: '1h',
  candidate: { addresses: [leader] },
});
const stop = new AbortController();
const leading = election.lead(
  async (given) => {
    term = given;
    await once(given.signal, 'abort');
    term = undefined;
    await serving.drained();
  },
  { signal: stop.signal },
);
leading.catch(() => {});

const interceptor = toLeader(observed, { waitTimeout: '1h' });
const agent = new Agent();
const dispatcher = agent.compose(interceptor);
const seen = [];
for (const answer of [
  await (await request('http://billing/', { dispatcher, method: 'POST', body: 'x' })).body.text(),
  await (await fetch('http://billing/', { dispatcher })).text(),
  await (await fetch(`http://${follower}/`, { method: 'PUT', body: 'x' })).text(),
]) {
  seen.push(answer);
}
stop.abort(new Error('enough'));
await leading.catch(() => {});

// A request still waits for a leader when everything ends.
const abort = new AbortController();
const waiting = request('http://billing/', { dispatcher, signal: abort.signal }).catch(
  (e) => e.message,
);
setImmediate(() => abort.abort(new Error('aborted')));
seen.push(await waiting);

await election.close();
if (how === 'close') {
  interceptor.close();
  serving.close();
  proxying.close();
  await agent.close();
  await observed.close();
}
for (const server of servers) {
  server.close();
  server.closeIdleConnections();
}
console.log(JSON.stringify(seen));
