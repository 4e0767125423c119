// Every command on a real ZooKeeper server: its output, and its messages when the server, the
// credentials or the URL are wrong. A password is in every URL.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { startEnsemble, startProxy, startServer } from '@incumbent/zookeeper-testing';
import { expect, onTestFinished, test } from 'vitest';
import { acl, connect } from '../../zookeeper/src/index.ts';
import { jsonLines, scratch, start } from './support/bin.ts';
import type { OnElection } from './support/zookeeper.ts';
import { needServers, onElection, password, sharedServer } from './support/zookeeper.ts';

needServers();
const users = { joe: password };
const server = sharedServer({ sasl: { users } });

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const token = expect.stringMatching(/^\d+$/);
let elections = 0;

/** An election that no other test has. */
function fresh(parameters = ''): OnElection & { readonly name: string; readonly shown: string } {
  elections += 1;
  const name = `e${elections}`;
  const given = `${server().connectionString}?auth=digest:joe:${password}`;
  return {
    name,
    shown: `${server().connectionString}?auth=digest:***${parameters}`,
    ...onElection(`${given}${parameters}`, name),
  };
}

/**
 * The sessions that the server keeps: one that its client has not closed stays until it expires.
 */
async function sessions(): Promise<readonly string[]> {
  const answer = await server().fourLetterWord('dump');
  return answer.slice(0, answer.indexOf('ephemeral')).match(/0x[0-9a-f]+/g) ?? [];
}

test('a leader can be seen in every way, and an operator can make it go', async () => {
  const x = fresh();
  const { run, name, shown } = x;
  const absent = await run(['status']);
  expect(absent).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`the node /incumbent/${name} does not exist (yet)`),
  });
  expect(absent.stdout).toBe(
    `election  ${name}\nstore     ${shown}\nstate     vacant (no leader is on record)\nwaiting   nobody\n`,
  );
  const watch = x.start(['watch']);
  await watch.printed(/vacant +no leader is on record\n/);
  const a = await x.candidate('a', 'leading');
  await watch.printed(/led +a +token \d+ +at a\.example:80\n/);
  const b = await x.candidate('b', 'waiting');

  const status = await run(['status']);
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(status.stdout).toMatch(
    /^state +led\nleader +a\naddress +a\.example:80\ntoken +\d+\nsince .*\nlease +10s\n$/m,
  );
  expect(jsonLines((await run(['status', '--json'])).stdout)).toEqual([
    {
      election: name,
      store: shown,
      state: 'led',
      leader: {
        id: 'a',
        incarnation: expect.any(String),
        addresses: ['a.example:80'],
        metadata: {},
      },
      ready: true,
      token,
      since: iso,
      leaseMs: 10_000,
      holderGone: false,
      reservedUntil: null,
      reservedFor: null,
      settlingUntil: null,
      waiting: null,
      drains: [],
      unfenced: [],
      request: null,
    },
  ]);
  expect(await run(['leader'])).toEqual({ code: 0, stdout: 'a.example:80\n', stderr: '' });
  expect((await run(['candidates'])).stdout).toMatch(/^leading +a +a\.example:80.*\nwaiting +b /m);
  expect(jsonLines((await run(['candidates', '--json'])).stdout)).toMatchObject([
    { role: 'leading', id: 'a' },
    { role: 'waiting', id: 'b', drainedUntil: null },
  ]);

  expect(await run(['transfer', '--to', 'nobody'])).toMatchObject({ code: 1, stdout: '' });
  expect(await run(['transfer', '--to', 'b'])).toMatchObject({ code: 0 });
  await watch.printed(/led +b +token \d+ +at b\.example:80\n/);
  await b.said(/: started sleep/);
  expect(await run(['drain', '--id', 'b', '--until', '1h'])).toMatchObject({ code: 0 });
  await watch.printed(/led +b [\s\S]*led +a /);
  expect((await run(['status'])).stdout).toMatch(/^drained +b until \S+ \S+ \(.* more\)$/m);
  expect(await run(['drain', '--id', 'b', '--lift'])).toMatchObject({ code: 0 });
  expect(await run(['vacate'])).toMatchObject({ code: 0 });
  await watch.printed(/led +b [\s\S]*led +a [\s\S]*led +b /);

  const history = jsonLines((await run(['history', '--json'])).stdout);
  expect(history).toMatchObject([
    { token, id: 'a', from: iso, to: iso, why: 'handed-over' },
    { id: 'b', why: 'vacated' },
    { id: 'a', why: 'vacated' },
    { id: 'b', to: null, why: null },
  ]);
  const tokens = history.map((term) => BigInt(String(term['token'])));
  expect(tokens).toEqual([...tokens].sort((one, other) => (one < other ? -1 : 1)));

  expect(await run(['end'])).toMatchObject({ code: 0 });
  await watch.printed(/ended +last token \d+\n/);
  for (const program of [a, b]) {
    const { code, stderr } = await program.result;
    expect(code).toBe(1);
    expect(stderr).toContain('was ended for everybody');
    expect(stderr).not.toContain(password);
    expect(stderr).toContain(`election ${name} on ${shown}\n`);
  }
  expect(await run(['leader'])).toMatchObject({ code: 1, stdout: '' });
  expect(await run(['init', '--reopen'])).toMatchObject({
    code: 0,
    stdout: `election "${name}" is open again\n`,
  });
  watch.child.kill('SIGINT');
  expect(await watch.result).toMatchObject({
    code: 130,
    stderr: expect.not.stringContaining(password),
  });
});

test('init makes what is needed, also the chroot, which nobody else does', async () => {
  const chroot = `${server().connectionString}/apps/mine`;
  const x = onElection(chroot, 'x');
  const error = {
    code: 69,
    stdout: '',
    stderr: expect.stringContaining(
      'the chroot /apps/mine of --store does not exist on 127.0.0.1:',
    ),
  };
  const refused = [['status'], ['leader'], ['vacate'], ['run', '--', 'true']];
  for (const result of await Promise.all(refused.map((command) => x.run(command)))) {
    expect(result).toMatchObject(error);
  }
  expect((await x.run(['doctor', '--watch-loop', '10ms'])).stdout).toMatch(
    /^broken +store +the chroot \/apps\/mine of --store does not exist/m,
  );
  expect(await x.run(['init'])).toMatchObject({
    code: 0,
    stdout: `made the chroot /apps/mine and the node /incumbent: election "x" is ready on ${chroot}\n`,
  });
  expect(await x.run(['status'])).toMatchObject({ code: 0, stderr: '' });
  // `create=true` asks for the chroot to be made.
  const other = onElection(`${server().connectionString}/apps/other?create=true`, 'x');
  expect(await other.run(['run', '--', 'true'])).toMatchObject({ code: 0 });
});

test('end --remove deletes the election of the layout golea, and no other', async () => {
  const { run, name } = fresh('&layout=golea&root=/&create=true');
  await using client = await connect(server().connectionString);
  expect(await run(['run', '--', 'true'])).toMatchObject({ code: 0 });
  expect(await run(['end', '--remove'])).toMatchObject({
    code: 0,
    stdout: `election "${name}" is ended for everybody, and removed\n`,
  });
  expect(await client.exists(`/${name}`)).toBe(false);
  expect(await run(['init', '--reopen'])).toMatchObject({ code: 0 });
  expect(await client.exists(`/${name}`)).toBe(true);

  const other = fresh();
  expect(await other.run(['run', '--', 'true'])).toMatchObject({ code: 0 });
  expect(await other.run(['end', '--remove'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('Only the layout "golea" of ZooKeeper removes it'),
  });
  expect((await other.run(['status'])).stdout).toContain('vacant');
});

test('elections of every layout, and what each of them refuses', async () => {
  const at = (parameters: string, name = parameters) =>
    onElection(`${server().connectionString}?${parameters}`, `layouts-${name.replace(/\W/g, '-')}`);
  const layouts = ['curator-latch', 'curator-selector', 'kazoo', 'recipe'];
  const all = [
    ...layouts,
    'golea&create=true',
    'hadoop&poll=100ms&active-data=me',
    'node&poll=50ms',
  ];
  const lead = async (layout: string) => {
    const { run, store } = at(`layout=${layout}&delay-after-win=1ms&recheck=1s&root=/of/others`);
    expect(await run(['run', '--', 'true'])).toMatchObject({ code: 0 });
    expect(await run(['status'])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining(`store       ${store}\nstate       vacant\nlast token  `),
    });
  };
  const refuse = async ([parameters, code, words]: readonly [string, number, string]) => {
    const result = await at(parameters, 'refused').run(['run', '--', 'true']);
    expect(result.stderr).toContain(words);
    expect(result).toMatchObject({ code, stdout: '' });
  };
  await Promise.all([
    ...all.map(lead),
    refuse([
      'layout=golea',
      69,
      '/layouts-refused does not exist, and whoever owns the election makes it',
    ]),
    refuse(['layout=kazoo&poll=1s', 64, 'for the layouts "hadoop" and "node" only']),
    refuse(['root=/a/../b', 64, 'root: "/a/../b" is no path of ZooKeeper']),
    refuse([
      'layout=kazoo&timeout=3s',
      69,
      'is too short for the layout kazoo and a tickTime of 2s',
    ]),
  ]);
});

test('INCUMBENT_STORE takes the same URL', async () => {
  const { connectionString } = server();
  const place = { env: { INCUMBENT_STORE: connectionString } };
  const { stdout } = await start(['init', '-e', 'from-variable'], place).result;
  expect(stdout).toContain(`election "from-variable" is ready on ${connectionString}\n`);
});

// --- credentials ---

test('credentials come from a variable, the environment or a file, and are asked for', async () => {
  const { connectionString } = server();
  const closed = '?acl=creator&auth=';
  const directory = scratch();
  const file = join(directory, 'auth');
  writeFileSync(file, `digest:joe:${password}\n`);
  const at = (parameters: string) => onElection(`${connectionString}${parameters}`, 'closed');
  const ready = { code: 0, stderr: '' };
  expect(await at(`${closed}file:${file}`).run(['init'])).toMatchObject(ready);
  const given = { env: { ZK: `digest:joe:${password}` } };
  expect(await at(`${closed}env:ZK`).run(['status'], given)).toMatchObject({ code: 0 });
  const standard = { env: { INCUMBENT_ZK_AUTH: `digest:joe:${password}` } };
  expect(await at('?acl=creator').run(['run', '--', 'true'], standard)).toMatchObject({ code: 0 });

  // A digest is never verified at login: only what it may not do tells.
  for (const wrong of ['', `?auth=digest:joe:${password}x`]) {
    const commands = [['status'], ['vacate'], ['run', '--', 'true']];
    for (const result of await Promise.all(commands.map((each) => at(wrong).run(each)))) {
      expect(result.stderr).toMatch(
        /ZooKeeper does not let this client do what an election needs at \/incumbent\/closed/,
      );
      expect(result).toMatchObject({ code: 69, stdout: '' });
    }
  }
  for (const [parameters, words] of [
    ['?auth=env:NOWHERE', 'the variable NOWHERE (auth of --store) is not set'],
    [`?auth=file:${directory}/none`, `the file ${directory}/none (auth of --store) cannot be read`],
    ['?auth=env:HOME', 'the variable HOME is not SCHEME:CREDENTIALS'],
    ['?sasl=env:HOME', 'the variable HOME is not USER:PASSWORD'],
  ] as const) {
    const result = await at(parameters).run(['status']);
    expect(result.stderr).toContain(words);
    expect(result).toMatchObject({ code: 64, stdout: '' });
  }
});

test('SASL, and a wrong password for it', async () => {
  const { run } = onElection(`${server().connectionString}?acl=sasl:joe:rwcda`, 'sasl');
  const as = (secret: string) => ({ env: { INCUMBENT_ZK_SASL: `joe:${secret}` } });
  expect(await run(['init'], as(password))).toMatchObject({ code: 0, stderr: '' });
  expect(await run(['status'], as(password))).toMatchObject({ code: 0 });
  const refused = await run(['status'], as('another'));
  expect(refused.stderr).toMatch(
    /^incumbent: the ZooKeeper servers 127\.0\.0\.1:\d+ do not take our credentials/,
  );
  expect(refused).toMatchObject({ code: 69, stdout: '' });
});

test('TLS: an authority, a certificate of ours, and what is said when one is wrong', async () => {
  const secure = await startServer({ tls: { clientAuth: 'want' } });
  onTestFinished(() => secure.close());
  const { securePort, certificates } = secure;
  const { ca, client } = certificates!;
  const at = (parameters: string) =>
    onElection(`zks://localhost:${securePort}?${parameters}`, 'tls');
  const both = `tls-ca=${ca.path}&tls-cert=${client.certificate.path}&tls-key=${client.key.path}`;
  expect(await at(both).run(['init'])).toMatchObject({ code: 0, stderr: '' });
  expect((await at(both).run(['doctor', '--samples', '1', '--watch-loop', '10ms'])).stdout).toMatch(
    /^ok +server +localhost:\d+ standalone, version 3/m,
  );
  const cases = [
    ['', /unable to verify the first certificate|self.signed|unable to get/, 69],
    [`${both}&tls-servername=other.example`, /does not match certificate's altnames/, 69],
    [`tls-ca=${client.key.path}`, /no session with ZooKeeper|cannot be used/, undefined],
    [
      'tls-ca=/nowhere/ca.pem',
      /the file \/nowhere\/ca\.pem \(tls-ca of --store\) cannot be read/,
      64,
    ],
    [
      `tls-ca=${ca.path}&tls-cert=${ca.path}&tls-key=${ca.path}`,
      /--store: tls: .* cannot be used/,
      64,
    ],
  ] as const;
  const check = async ([parameters, words, code]: (typeof cases)[number]) => {
    const result = await at(parameters).run(['status', '--timeout', '8s']);
    expect(result.stderr).toMatch(words);
    if (code !== undefined) expect(result.code).toBe(code);
    expect(result.stdout).toBe('');
  };
  await Promise.all(cases.map(check));
  const plain = onElection(`zk://localhost:${securePort}`, 'tls');
  expect((await plain.run(['status', '--timeout', '1s'])).stderr).toContain(
    'a server that speaks TLS there wants zks://',
  );
});

// --- servers that are not what they should be ---

test('nobody listens, or somebody else does', async () => {
  const silent = createServer((socket) => socket.on('error', () => {}).resume());
  const other = createServer((socket) =>
    socket.on('error', () => {}).end('HTTP/1.1 400 Bad\r\n\r\n'),
  );
  const port = async (listener: typeof silent) => {
    onTestFinished(() => void listener.close());
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    return (listener.address() as { port: number }).port;
  };
  const [silentPort, otherPort] = [await port(silent), await port(other)];
  const cases = [
    ['zk://127.0.0.1:1,127.0.0.1:2', 'ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.1:2'],
    ['zk://no-such-host.invalid', 'no-such-host.invalid:2181: getaddrinfo'],
    [`zk://127.0.0.1:${silentPort}`, `127.0.0.1:${silentPort}: no answer within`],
    [`zk://127.0.0.1:${otherPort}`, `127.0.0.1:${otherPort}: HTTP/1.1 400 Bad`],
    [`zks://127.0.0.1:${server().port}`, `127.0.0.1:${server().port}: `],
  ] as const;
  const check = async ([store, words]: readonly [string, string]) => {
    const result = await onElection(store, 'x').run(['status', '--timeout', '1s']);
    expect(result.stderr).toMatch(
      /^incumbent: no session with ZooKeeper within 1s \(--timeout\): .*\n$/,
    );
    expect(result.stderr).toContain(words);
    expect(result).toMatchObject({ code: 69, stdout: '' });
  };
  await Promise.all(cases.map(check));
  const asJson = await onElection('zk://127.0.0.1:1', 'x').run([
    'leader',
    '--json',
    '--timeout',
    '1s',
  ]);
  expect(jsonLines(asJson.stderr)).toMatchObject([{ error: { code: 'STORE_UNAVAILABLE' } }]);
  const debugged = await onElection(`zk://127.0.0.1:1?auth=digest:joe:${password}`, 'x').run(
    ['status', '--timeout', '1s'],
    { env: { INCUMBENT_DEBUG: '1' } },
  );
  expect(debugged.stderr).toContain('UnusableZooKeeperError');
});

test('servers that have lost their quorum, and one that only reads', async () => {
  const ensemble = await startEnsemble(3, {
    readOnlyMode: true,
    localSessions: true,
    config: { localSessionsUpgradingEnabled: true },
  });
  onTestFinished(() => ensemble.close());
  const x = onElection(ensemble.connectionString, 'x');
  const args = ['doctor', '--samples', '3', '--watch-loop', '10ms'];
  const good = await x.run(args);
  expect(good.stdout).toMatch(/^ok +quorum +3 of 3 named servers serve, one of them as leader$/m);
  expect(good).toMatchObject({ code: 0 });
  await Promise.all(ensemble.members.slice(1).map((member) => member.kill()));
  const only = ensemble.members[0]!;
  for (;;) {
    const answer = await only.fourLetterWord('srvr');
    if (/read-only/.test(answer)) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const [status, bad] = await Promise.all([
    x.run(['status', '--timeout', '2s']),
    x.run([...args, '--timeout', '2s']),
  ]);
  expect(status.stderr).toMatch(/within 2s \(--timeout\): the servers have no quorum: /);
  expect(status.stderr).toContain(`127.0.0.1:${only.port} is read-only`);
  expect(status.code).toBe(69);
  expect(bad.stdout).toMatch(
    /^warn +server +127\.0\.0\.1:\d+ read-only, .*: it has lost its quorum$/m,
  );
  expect(bad.stdout).toMatch(/^broken +quorum +no server serves: there is no quorum$/m);
  expect(bad.code).toBe(69);
});

test('a server that goes silent in the middle of a question: bounded, and said', async () => {
  const proxy = await startProxy(server());
  onTestFinished(() => proxy.close());
  const { run } = onElection(`zk://127.0.0.1:${proxy.port}`, 'silent');
  expect(await run(['init'])).toMatchObject({ code: 0 });
  const watch = start([
    'watch',
    '-e',
    'silent',
    '--store',
    `zk://127.0.0.1:${proxy.port}?timeout=1s`,
  ]);
  await watch.printed(/vacant/);
  proxy.silence();
  await watch.printed(/unknown/);
  expect(await run(['status', '--timeout', '1s'])).toMatchObject({ code: 69 });
  // Its session has expired meanwhile: it goes on in another.
  await proxy.pass();
  await watch.printed(/unknown[\s\S]*vacant/);
});

// --- the doctor ---

test('the doctor finds what there is to know, and leaves nothing behind', async () => {
  const name = 'for-doctor';
  const root = '/doctors/patients';
  const given = `${server().connectionString}?root=${root}&auth=digest:joe:${password}&acl=creator`;
  const { run } = onElection(given, name);
  const first = await run(['doctor', '--samples', '20', '--watch-loop', '10ms']);
  expect(first.stdout).toMatch(/^warn +store +the node \/doctors\/patients did not exist/m);
  const client = await connect(server().connectionString);
  onTestFinished(() => client.close());
  expect(await client.exists('/doctors')).toBe(false);

  expect(await run(['init'])).toMatchObject({ code: 0 });
  const args = ['doctor', '--samples', '20', '--watch-loop', '10ms', '--json'];
  const { code, stdout, stderr } = await run([...args, '--lease', '100s']);
  expect(stderr).toBe('');
  const findings = new Map(jsonLines(stdout).map((each) => [each['check'], each]));
  expect(findings.get('server')).toMatchObject({
    level: 'ok',
    data: { mode: 'standalone', version: '3.8.0', tickTimeMs: 200, maxSessionTimeoutMs: 60_000 },
  });
  expect(findings.get('quorum')).toMatchObject({ level: 'note' });
  expect(findings.get('session')).toMatchObject({
    level: 'warn',
    message:
      'asked for a timeout of 1m 40s (--lease) and got 1m, which is the lease: the servers allow ' +
      '400ms to 1m',
  });
  expect(findings.get('takeover')).toMatchObject({ data: { leaseMs: 60_000, tickMs: 200 } });
  expect(findings.get('acl')).toMatchObject({
    level: 'ok',
    message: `${root}/${name} has digest:joe:rwcda`,
  });
  expect(findings.get('clock')).toMatchObject({
    level: 'note',
    data: { aheadMs: expect.any(Number) },
  });
  expect(findings.get('checks')).toMatchObject({
    data: { samples: 20, p99Ms: expect.any(Number) },
  });
  expect(findings.get('checks-margin')).toMatchObject({ data: { limitMs: 6_000 } });
  expect(findings.get('election')).toMatchObject({ message: `"${name}" is vacant` });
  expect(code).toBe(0);
  await client.addAuth('digest', `joe:${password}`);
  expect((await client.getChildren(root)).children).toEqual([name]);

  // Another one may look, and do nothing.
  const stranger = onElection(`${server().connectionString}?root=${root}&auth=digest:eve:x`, name);
  const denied = await stranger.run(args);
  const said = jsonLines(denied.stdout);
  expect(said).toContainEqual(
    expect.objectContaining({
      check: 'acl',
      level: 'broken',
      message: expect.stringContaining(`what with ${root}/${name}: look at our credentials`),
    }),
  );
  expect(denied.code).toBe(69);
  await client.setAcl(`${root}/${name}`, [acl.digest('joe', password), acl.world(1)]);
  const reader = jsonLines((await stranger.run(args)).stdout);
  expect(reader).toContainEqual(
    expect.objectContaining({
      check: 'acl',
      level: 'broken',
      message: expect.stringMatching(/we may not write, create, delete$/),
    }),
  );
});

// --- the session ---

test('--lease is the session timeout to ask for, and contradicts no other', async () => {
  const { connectionString } = server();
  const at = (parameters: string) => onElection(`${connectionString}${parameters}`, 'timeouts');
  const show = ['--', 'sh', '-c', 'echo $INCUMBENT_LEASE_MS'];
  expect((await at('').run(['run', '--lease', '4s', ...show])).stdout).toBe('4000\n');
  expect((await at('?timeout=5s').run(['run', ...show])).stdout).toBe('5000\n');
  expect((await at('?timeout=5s').run(['run', '--lease', '5s', ...show])).stdout).toBe('5000\n');
  expect((await at('').run(['run', ...show])).stdout).toBe('10000\n');
  const both = await at('?timeout=5s').run(['run', '--lease', '4s', ...show]);
  expect(both).toMatchObject({ code: 64, stdout: '' });
  expect(both.stderr).toContain('--lease 4s and the timeout=5s of --store differ');
  const cut = await at('?timeout=100s').run(['run', ...show]);
  expect(cut).toMatchObject({ code: 0, stdout: '60000\n' });
  expect(cut.stderr).toContain(
    'asked the servers for a session timeout of 1m 40s (the timeout of --store) and got 1m: that is the lease',
  );
  // A command that only asks holds no seat that a short session could lose.
  expect(await at('?timeout=100ms').run(['status'])).toMatchObject({ code: 0, stderr: '' });
  const short = await at('?timeout=100ms').run(['run', ...show]);
  expect(short).toMatchObject({ code: 64, stdout: '' });
  expect(short.stderr).toContain('a session timeout of 400ms (asked for: 100ms) is too short');
});

test('every session is closed, none is left to expire', async () => {
  // Candidates of other tests were killed: theirs are.
  const before = await sessions();
  // So long that no attempt to connect is given up, which would leave one behind as well.
  const { run } = fresh('&timeout=60s');
  await run(['init']);
  await run(['status']);
  await run(['run', '--', 'true']);
  await run(['run', '--', 'false']);
  await run(['transfer', '--to', 'nobody']);
  await run(['doctor', '--samples', '1', '--watch-loop', '10ms']);
  expect((await sessions()).filter((id) => !before.includes(id))).toEqual([]);
});
