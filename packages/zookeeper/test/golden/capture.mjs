// Records the answers of a real ZooKeeper 3.8 to every message, byte for byte, in the JSON files
// beside this one:
//
//     node packages/zookeeper/test/golden/capture.mjs && npm run format
//
// It needs Debian's `zookeeper`, `libslf4j-java` and a JRE. Each exchange names what it must show,
// and fails if the server answers otherwise. In every capture zxids, times, session ids, ports and
// nonces differ, so the tests take them from the files.
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { captureConnects, captureReadOnly } from './capture-connects.mjs';
import { captureMulti } from './capture-multi.mjs';
import { captureNodes } from './capture-nodes.mjs';
import { captureWatches } from './capture-watches.mjs';
import { freePort, startServer } from './server.mjs';
import { Session } from './session.mjs';
import { bytes, long } from './wire.mjs';

await recordStandalone();
await recordReconfig();
await recordSasl();
await recordReadOnly();

async function recordStandalone() {
  const port = await freePort();
  const lines = clientAddress(port, ['extendedTypesEnabled=true']);
  const server = await startServer(lines, { port });
  await record('connects', server, (exchanges) => captureConnects(port, exchanges));
  await record('nodes', server, (exchanges) => captureNodes(port, exchanges));
  await record('multi', server, (exchanges) => captureMulti(port, exchanges));
  await record('watches', server, (exchanges) => captureWatches(port, exchanges));
  await server.stop();
}

/** A quorum of one with a dynamic configuration: the smallest server that can be reconfigured. */
async function recordReconfig() {
  const [port, quorum, election] = [await freePort(), await freePort(), await freePort()];
  const lines = [
    ...['reconfigEnabled=true', 'standaloneEnabled=false', 'skipACL=yes'],
    ...['initLimit=10', 'syncLimit=5', 'dynamicConfigFile={directory}/dynamic.cfg'],
  ];
  const server = await startServer(lines, {
    port,
    mode: 'leader',
    files: {
      'data/myid': '1',
      'dynamic.cfg': `server.1=127.0.0.1:${quorum}:${election}:participant;127.0.0.1:${port}\n`,
    },
  });
  await record('reconfig', server, async (exchanges) => {
    const session = await Session.open(port, exchanges);
    await session.attach('a session of a server with a dynamic configuration');
    await session.call('getConfig', 'getData', { path: '/zookeeper/config', watch: true });
    const nothing = { joiningServers: null, leavingServers: null, newMembers: null };
    const observer = '127.0.0.1:1:2:observer;127.0.0.1:3';
    await session.call('reconfig adds an observer', 'reconfig', {
      ...nothing,
      joiningServers: `server.2=${observer}`,
      curConfigId: long(-1),
    });
    await session.event('the configuration has changed', { type: 3, path: '/zookeeper/config' });
    await session.call('reconfig removes a server', 'reconfig', {
      ...nothing,
      leavingServers: '2',
      curConfigId: long(-1),
    });
    await session.call(
      'reconfig of a configuration that is not in force',
      'reconfig',
      { ...nothing, leavingServers: '2', curConfigId: long(4) },
      { error: -103 },
    );
    await session.call('reconfig with nothing to do', 'reconfig', {
      ...nothing,
      curConfigId: long(-1),
    });
    await session.call(
      'reconfig to new members, malformed',
      'reconfig',
      { ...nothing, newMembers: 'nonsense', curConfigId: long(-1) },
      { error: -8 },
    );
    await session.call('closeSession', 'closeSession');
    await session.closed();
  });
  await server.stop();
}

async function recordSasl() {
  const port = await freePort();
  const provider = 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider';
  const server = await startServer(clientAddress(port, [`authProvider.1=${provider}`]), {
    port,
    jvm: ['-Djava.security.auth.login.config={directory}/jaas'],
    files: {
      jaas: `Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_alice="secret";
};
`,
    },
  });
  await record('sasl', server, async (exchanges) => {
    const good = await Session.open(port, exchanges);
    await good.attach('a session that authenticates');
    const first = await good.call('sasl, the first token', 'sasl', { token: bytes('') });
    await good.call('sasl, the answer', 'sasl', { token: digestMd5(first.token, 'secret') });
    await good.call('whoAmI after sasl', 'whoAmI');
    await good.call('closeSession', 'closeSession');
    await good.closed();

    const bad = await Session.open(port, exchanges);
    await bad.attach('a session with a wrong password');
    const second = await bad.call('sasl, the first token again', 'sasl', { token: bytes('') });
    await bad.call(
      'sasl refused',
      'sasl',
      { token: digestMd5(second.token, 'wrong') },
      { error: -115 },
    );
    await bad.closed();
  });
  await server.stop();
}

/** RFC 2831, as much as one exchange needs. */
function digestMd5(challenge, password) {
  const text = Buffer.from(challenge.$hex, 'hex').toString();
  const [, realm] = /realm="([^"]*)"/.exec(text);
  const [, nonce] = /nonce="([^"]*)"/.exec(text);
  const cnonce = randomBytes(12).toString('base64');
  const uri = `zookeeper/${realm}`;
  const md5 = (...parts) =>
    createHash('md5').update(Buffer.concat(parts.map((p) => Buffer.from(p))));
  const secret = md5(`alice:${realm}:${password}`).digest();
  const a1 = md5(secret, `:${nonce}:${cnonce}`).digest('hex');
  const a2 = md5(`AUTHENTICATE:${uri}`).digest('hex');
  const response = md5(`${a1}:${nonce}:00000001:${cnonce}:auth:${a2}`).digest('hex');
  return bytes(
    `charset=utf-8,username="alice",realm="${realm}",nonce="${nonce}",nc=00000001,` +
      `cnonce="${cnonce}",digest-uri="${uri}",maxbuf=65536,response=${response},qop=auth`,
  );
}

/** One server of two: it has no quorum, so it serves read-only. With local sessions and without. */
async function recordReadOnly() {
  const exchanges = [];
  let version = '';
  for (const localSessions of [true, false]) {
    const [port, ...ports] = await Promise.all([1, 2, 3, 4, 5].map(() => freePort()));
    const lines = clientAddress(port, [
      ...['initLimit=10', 'syncLimit=5', `localSessionsEnabled=${localSessions}`],
      `server.1=127.0.0.1:${ports[0]}:${ports[1]}`,
      `server.2=127.0.0.1:${ports[2]}:${ports[3]}`,
    ]);
    const server = await startServer(lines, {
      port,
      mode: 'read-only',
      jvm: ['-Dreadonlymode.enabled=true'],
      files: { 'data/myid': '1' },
    });
    version = server.version;
    await captureReadOnly(port, exchanges, localSessions);
    await server.stop();
  }
  await save('read-only', version, exchanges);
}

function clientAddress(port, lines) {
  return [`clientPort=${port}`, 'clientPortAddress=127.0.0.1', ...lines];
}

async function record(file, server, capture) {
  const exchanges = [];
  await capture(exchanges);
  await save(file, server.version, exchanges);
}

async function save(file, version, exchanges) {
  const content = {
    server: `Apache ZooKeeper ${version}`,
    capturedWith: 'node packages/zookeeper/test/golden/capture.mjs',
    exchanges,
  };
  const json = `${JSON.stringify(content, null, 2)}\n`;
  await writeFile(new URL(`${file}.json`, import.meta.url), json);
  console.log(`${file}.json: ${exchanges.length} exchanges of ${content.server}`);
}
