// The events of the ZooKeeper client when its connection is cut, and when its server goes silent.
//
//   npm run demo:zookeeper
import { connect } from '@incumbent/zookeeper';
import {
  FakeZooKeeper,
  serverAvailable,
  startProxy,
  startServer,
} from '@incumbent/zookeeper-testing';

const missing = serverAvailable();
const server = missing === undefined ? await startServer() : undefined;
const fake = server === undefined ? await FakeZooKeeper.start({ realTime: true }) : undefined;
const { port } = server ?? fake;
console.log(
  server === undefined
    ? gray(`  no Java server here (${missing}), so a fake one`)
    : gray('  a real ZooKeeper server behind a proxy that loses things; session timeout 2 s'),
);

const proxy = await startProxy({ host: '127.0.0.1', port });
const other = await connect(`zk://127.0.0.1:${port}?timeout=4s`);
await other.create('/config', 'v1');

const startMs = performance.now();
const client = await connect(`${proxy.connectionString}?timeout=2s`);
const sessions = [client.session.id];
let brokenMs = 0;
client.onState(({ state, session }) => {
  const share = ((performance.now() - brokenMs) / 2000) * 100;
  if (state === 'suspended') say(yellow(state), `${share.toFixed(0)} % of the timeout later`);
  if (state === 'expired') {
    say(red(state), `${share.toFixed(0)} %: by our own clock, for there is nobody to ask`);
  }
  if (state === 'connected') {
    const same = session.id === sessions.at(-1);
    if (!same) sessions.push(session.id);
    say(green(state), same ? 'the same session' : 'a new session, by itself');
  }
});
say(green('connected'), `session timeout ${client.session.timeoutMs / 1000} s`);

const watch = await client.watch('/config');
say('watch', `/config is ${watch.value.text}`);

await pause(400);
event('the connection is cut for 0.3 s; meanwhile /config becomes v2');
brokenMs = performance.now();
proxy.cut();
await other.set('/config', 'v2');
await pause(300);
await proxy.pass();
const change = await watch.changed;
say('watch', `told: ${change.type} ${change.path}; it is ${(await client.get('/config')).text}`);

await pause(900);
event('the network swallows everything');
brokenMs = performance.now();
proxy.silence();
const write = client.create('/mine', null, { ephemeral: true, timeoutMs: 60_000 });
const late = nextState('suspended').then(() => client.create('/late', null, { timeoutMs: 60_000 }));
await Promise.all([
  write.catch(({ code, maybeApplied }) =>
    say('create /mine', `${code}: it was sent, so maybeApplied is ${maybeApplied}`),
  ),
  late.catch(({ code }) => say('create /late', `${code}: it waited, and was never sent`)),
]);

await pause(300);
event('the network is back');
const back = client.connected();
await proxy.pass();
await back;
say('get /config', (await client.get('/config')).text);
say('exists /late', String(await client.exists('/late')));
console.log(
  gray(`\n  ${client.counters.requests} calls, ${client.counters.outstanding} outstanding`),
);

await Promise.all([client.close(), other.close()]);
await proxy.close();
await (server ?? fake).close();

function say(what, text) {
  const width = 14 + (what.length - plainLength(what));
  console.log(`${gray(seconds())}  ${what.padEnd(width)} ${text}`);
}

function event(text) {
  console.log(`\n${gray(seconds())}  ${cyan(`✂ ${text}`)}`);
}

function seconds() {
  return `${((performance.now() - startMs) / 1000).toFixed(2).padStart(6)} s`;
}

function nextState(wanted) {
  return new Promise((resolve) => {
    const stop = client.onState(({ state }) => {
      if (state !== wanted) return;
      stop();
      resolve();
    });
  });
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function plainLength(text) {
  return text.startsWith('\u001b') ? text.length - 9 : text.length;
}

function colored(code, text) {
  return process.stdout.isTTY && !process.env.NO_COLOR ? `\u001b[${code}m${text}\u001b[0m` : text;
}
function red(text) {
  return colored(31, text);
}
function green(text) {
  return colored(32, text);
}
function yellow(text) {
  return colored(33, text);
}
function cyan(text) {
  return colored(36, text);
}
function gray(text) {
  return colored(90, text);
}
