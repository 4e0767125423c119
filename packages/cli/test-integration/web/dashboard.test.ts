// `incumbent dashboard` in Chromium, on real stores.
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@incumbent/zookeeper';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import type { Backend, Election, Term } from 'incumbent';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { zookeeper } from 'incumbent/zookeeper';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Steering } from '../../src/dashboard/shown.ts';
import { openToWrite } from '../../src/history/history-file.ts';
import { HistoryWriter } from '../../src/history/history-writer.ts';
import { loadSqlite } from '../../src/history/sqlite.ts';
import { cliFile } from '../../src/trial/candidate-process.ts';
import { expectAccessible, faultsOf, openBrowser } from './browser.ts';
import { openPage, startDashboard } from './dashboard-process.ts';
import { pageStores } from './page-stores.ts';

/** `INCUMBENT_BROWSERS=10`: how many look at a thousand elections at length. */
const browsersAtLength = Number(process.env['INCUMBENT_BROWSERS'] ?? 0);
const patiently = { timeout: 60_000 };
let browser: Browser;
const scratch = mkdtempSync(join(tmpdir(), 'dashboard-test-'));
const started: ChildProcess[] = [];
const dashboard = async (...options: readonly string[]): Promise<URL> => {
  const { child, url } = await startDashboard(options);
  started.push(child);
  pids.set(url.port, child.pid ?? 0);
  return url;
};
/** Of dashboards, by their port. */
const pids = new Map<string, number>();

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser.close();
  for (const child of started) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});

/** Processor time of a process so far, in ms. Linux counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

const open = (url: URL, options: Parameters<Browser['newPage']>[0] = {}) =>
  openPage(browser, url, options);

const row = (page: Page, election: string) => page.locator(`[data-election="${election}"]`);

/** Its leader, or its state. */
const shows = (page: Page, election: string, cell: 'leader' | 'state', text: string) =>
  row(page, election).locator(`.${cell}`, { hasText: text }).waitFor(patiently);

/** Elections of a test, which are closed after it. */
function electionsOn(backend: Backend) {
  const opened: Election[] = [];
  const terms: Term[] = [];
  return {
    async lead(name: string, id: string): Promise<Term> {
      const term = await this.handle(name, id).campaign();
      terms.push(term);
      return term;
    },
    handle(name: string, id: string): Election {
      const election = createElection({
        name,
        backend,
        candidate: { id, addresses: ['10.0.0.7:80'] },
      });
      opened.push(election);
      return election;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(terms.map((term) => term[Symbol.asyncDispose]()));
      await Promise.all(opened.map((election) => election.close()));
    },
  };
}

describe.each(pageStores)('on $name', ({ missing, open: openStore }) => {
  if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
  const it = test.skipIf(missing !== undefined);
  let store: Awaited<ReturnType<typeof openStore>>;
  beforeAll(async () => {
    if (missing === undefined) store = await openStore(join(scratch, 'store'));
  });
  afterAll(async () => {
    await store?.close();
  });

  it('a new leader is shown at once, and a leader hands over by click', async () => {
    await using elections = electionsOn(store.backend);
    const first = await elections.lead('orders', 'first');
    const next = elections.lead('orders', 'next');
    const url = await dashboard('--store', store.url, '--allow-steering');
    const page = await open(url);
    const faults = faultsOf(page, url.origin);
    await shows(page, 'orders', 'leader', 'first');
    await expectAccessible(page);

    await row(page, 'orders').getByRole('link').click();
    await page.getByRole('button', { name: 'Hand over to…' }).click(patiently);
    await page.getByRole('dialog').getByText('first is asked to stop its work').waitFor();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Do it' }).click();
    await page
      .getByRole('status')
      .getByText('to hand election "orders" over to "next"')
      .waitFor(patiently);
    if (!first.signal.aborted) await once(first.signal, 'abort');
    await first[Symbol.asyncDispose]();
    const second = await next;
    // Its id alone may stand in the reason of the vacancy before.
    await page.locator('.facts', { hasText: String(second.token) }).waitFor(patiently);

    await page.getByRole('link', { name: 'all elections' }).click();
    second.resign();
    await second[Symbol.asyncDispose]();
    await shows(page, 'orders', 'state', 'no leader');
    expect(faults).toEqual([]);
    await page.close();
  });
});

test('a leader hands over by the keyboard alone', async () => {
  const directory = join(scratch, 'keys');
  await using elections = electionsOn(file(directory));
  const first = await elections.lead('orders', 'first');
  const next = elections.lead('orders', 'next');
  const page = await open(await dashboard('--store', `file:${directory}`, '--allow-steering'));
  await shows(page, 'orders', 'leader', 'first');
  await tabTo(page, 'orders');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Hand over to…' }).waitFor(patiently);
  await tabTo(page, 'Hand over to…');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  // The focus is where it was.
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await tabTo(page, 'Do it');
  await page.keyboard.press('Enter');
  if (!first.signal.aborted) await once(first.signal, 'abort');
  await first[Symbol.asyncDispose]();
  await next;
  await page.close();
});

/** Moves the focus on until it is on the link or button with this text. */
async function tabTo(page: Page, text: string): Promise<void> {
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  for (let tabs = 0; (await focused()) !== text; tabs += 1) {
    expect(tabs, `"${text}" cannot be reached by the key Tab`).toBeLessThan(60);
    await page.keyboard.press('Tab');
  }
}

describe('many elections', () => {
  const directory = join(scratch, 'many');
  const names = Array.from({ length: 1_000 }, (_, at) => `shard-${at}`);
  let url: URL;

  beforeAll(async () => {
    const backend = file(directory);
    for (let at = 0; at < names.length; at += 50) {
      await Promise.all(
        names.slice(at, at + 50).map(async (name) => {
          const election = createElection({ name, backend, candidate: { id: `host-${at}` } });
          await election.drain('nobody', new Date(Date.now() + 3_600_000));
          await election.close();
        }),
      );
    }
    url = await dashboard('--store', `file:${directory}`);
  });

  test('of a thousand only those that are seen are drawn; scrolling, filtering and sorting reach all', async () => {
    const page = await open(url);
    await row(page, 'shard-0').waitFor(patiently);
    await page.getByText('all 1000').waitFor(patiently);
    expect(await page.locator('[data-election]').count()).toBeLessThan(60);
    await page.locator('.rows').focus();
    await page.keyboard.press('End');
    await row(page, 'shard-999').waitFor(patiently);
    await page.getByRole('searchbox').fill('shard-77');
    await row(page, 'shard-770').waitFor(patiently);
    expect(await page.locator('[data-election]').count()).toBe(11);
    await page.getByRole('button', { name: 'Election' }).click();
    expect(await page.locator('[data-election]').first().getAttribute('data-election')).toBe(
      'shard-779',
    );
    await page.close();
  });

  test.each(['light', 'dark'] as const)(
    'it fits a phone, and can be read there: %s',
    async (colorScheme) => {
      const page = await open(url, { viewport: { width: 390, height: 844 }, colorScheme });
      await row(page, 'shard-0').waitFor(patiently);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        390,
      );
      await expectAccessible(page);
      await page.close();
    },
  );

  test.skipIf(browsersAtLength === 0)(
    'at length: processor time, and frames while scrolling',
    async () => {
      const pages = await Promise.all(Array.from({ length: browsersAtLength }, () => open(url)));
      for (const page of pages) await row(page, 'shard-0').waitFor(patiently);
      const pid = pids.get(url.port)!;
      const [beforeMs, begin] = [cpuMs(pid), performance.now()];
      await sleep(30_000);
      const share = (cpuMs(pid) - beforeMs) / (performance.now() - begin);
      const [page] = pages as [Page];
      const frames = page.evaluate(async () => {
        const times: number[] = [];
        const rows = document.querySelector('.rows')!;
        for (let at = 0; at < 300; at += 1) {
          rows.scrollBy(0, 60);
          times.push(await new Promise<number>(requestAnimationFrame));
        }
        return times;
      });
      const times = await frames;
      const gaps = times.slice(1).map((time, at) => time - times[at]!);
      gaps.sort((a, b) => a - b);
      const average = 1_000 / ((times.at(-1)! - times[0]!) / gaps.length);
      process.stdout.write(
        `${pages.length} browsers, ${names.length} elections: ${(100 * share).toFixed(1)} % of a core; ` +
          `${average.toFixed(0)} frames a second, p99 ${gaps[Math.floor(gaps.length * 0.99)]!.toFixed(1)} ms\n`,
      );
      await Promise.all(pages.map((each) => each.close()));
    },
  );

  test('a page that only shows has no buttons to steer, and refuses requests', async () => {
    const page = await open(url);
    await row(page, 'shard-0').getByRole('link').click(patiently);
    await page.getByText('Kept out by an operator').waitFor(patiently);
    expect(await page.getByRole('button', { name: 'End the election' }).count()).toBe(0);
    for (const action of everyAction) {
      expect(await post(url, action, { 'x-incumbent-token': 'x' })).toBe(403);
    }
    await page.close();
  });
});

const json = { 'content-type': 'application/json' };

const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
const everyAction: readonly Steering[] = [
  { act: 'vacate', force: false },
  { act: 'vacate', force: true },
  { act: 'transfer', to: 'next' },
  { act: 'drain', id: 'first', until: inAnHour },
  { act: 'lift', id: 'nobody' },
  { act: 'end' },
  { act: 'reopen' },
];

/** @returns the status of the answer */
async function post(
  url: URL,
  action: Steering,
  headers: Record<string, string>,
  token: string | null = null,
): Promise<number> {
  const body = JSON.stringify({ ...action, store: 0, election: 'orders', token });
  const asked = request({
    ...{ host: url.hostname, port: url.port, path: '/act', method: 'POST' },
    headers: { ...json, ...headers },
  });
  asked.end(body);
  const [answer] = await once(asked, 'response');
  answer.resume();
  return answer.statusCode;
}

test('every way to steer is refused without the token, from another origin, and under another name', async () => {
  const directory = join(scratch, 'steered');
  await using elections = electionsOn(file(directory));
  const first = await elections.lead('orders', 'first');
  const handle = elections.handle('orders', 'next');
  const drains = async () => (await handle.inspect()).drains.length;
  const url = await dashboard('--store', `file:${directory}`, '--allow-steering');
  const page = await open(url);
  await shows(page, 'orders', 'leader', 'first');
  const secret = { 'x-incumbent-token': url.hash.slice(1) };
  const term = String(first.token);
  for (const action of everyAction) {
    expect(await post(url, action, {}, term)).toBe(403);
    expect(await post(url, action, { 'x-incumbent-token': 'x' }, term)).toBe(403);
    const other = { ...secret, origin: 'http://127.0.0.1:1' };
    expect(await post(url, action, other, term)).toBe(403);
    const framed = { ...secret, 'sec-fetch-site': 'cross-site' };
    expect(await post(url, action, framed, term)).toBe(403);
    expect(await post(url, action, { ...secret, host: 'evil.example' }, term)).toBe(421);
    const form = { ...secret, 'content-type': 'text/plain' };
    expect(await post(url, action, form, term)).toBe(415);
  }
  expect(first.signal.aborted).toBe(false);
  expect((await handle.inspect()).request).toBeUndefined();
  expect(await drains()).toBe(0);
  // Without the faults it is done.
  expect(await post(url, { act: 'vacate', force: false }, secret, term)).toBe(200);
  if (!first.signal.aborted) await once(first.signal, 'abort');
  await page.close();
});

test('the lease of a leader that is not heard from counts down', async () => {
  const store = `file:${join(scratch, 'frozen')}`;
  const words = ['run', '--store', store, '--election', 'orders', '--id', 'first', '--'];
  const leader = spawn(process.execPath, [cliFile, ...words, 'sleep', '600']);
  started.push(leader);
  const page = await open(await dashboard('--store', store));
  await shows(page, 'orders', 'leader', 'first');
  await row(page, 'orders').getByRole('link').click();
  await page.locator('.facts').getByText('left, if it is not renewed').waitFor(patiently);
  leader.kill('SIGSTOP');
  await page.locator('.left.low').waitFor(patiently);
  await page.locator('.facts', { hasText: 'no leader' }).waitFor(patiently);
  await page.close();
  leader.kill('SIGKILL');
  // Its guard has the same pipes, and ends the program.
  await once(leader, 'close');
});

test('a browser that sleeps sees the present state when it wakes up', async () => {
  const directory = join(scratch, 'asleep');
  await using elections = electionsOn(file(directory));
  const first = await elections.lead('orders', 'first');
  const page = await open(await dashboard('--store', `file:${directory}`));
  await shows(page, 'orders', 'leader', 'first');
  const devTools = await page.context().newCDPSession(page);
  await devTools.send('Page.setWebLifecycleState', { state: 'frozen' });
  await first[Symbol.asyncDispose]();
  await elections.lead('orders', 'second');
  await devTools.send('Page.setWebLifecycleState', { state: 'active' });
  await shows(page, 'orders', 'leader', 'second');
  await page.close();
});

test('a damaged record is named, odd names are shown as they are, and the rest goes on', async () => {
  const directory = join(scratch, 'odd');
  const names = ['plain', 'a.b?c#d%e&f', 'ünï ☃ "quoted" <b>', '__proto__'];
  await using elections = electionsOn(file(directory));
  for (const name of names) await elections.lead(name, 'one');
  const url = await dashboard('--store', `file:${directory}`);
  const page = await open(url);
  for (const name of names) await page.getByRole('link', { name, exact: true }).waitFor(patiently);
  await page.getByRole('link', { name: names[1]!, exact: true }).click();
  await page.getByRole('heading', { name: names[1]!, exact: true }).waitFor(patiently);
  await page.getByRole('link', { name: 'all elections' }).click();
  const damaged = elections.handle('damaged', 'one');
  await damaged.drain('x', new Date(Date.now() + 3_600_000));
  const folder = join(directory, 'damaged');
  for (const name of readdirSync(folder)) writeFileSync(join(folder, name), 'no record');
  await shows(page, 'damaged', 'state', 'unknown');
  await shows(page, 'plain', 'state', 'led');
  await page.close();
});

test('10,000 recorded terms: the page of an election shows them in pages, with those of the store', async () => {
  const directory = join(scratch, 'recorded');
  const path = join(scratch, 'history.db');
  await using elections = electionsOn(file(directory));
  const leading = await elections.lead('orders', 'now');
  const database = openToWrite(path, loadSqlite('/'));
  const nowUnixMs = Date.now();
  const terms = Array.from({ length: 10_000 }, (_, at) => {
    const fromUnixMs = nowUnixMs - 3_000_000 + 250 * at;
    const end = { toUnixMs: fromUnixMs + 200, why: at % 100 === 0 ? 'unclean' : 'resigned' };
    return { token: String(at), incarnation: String(at), id: `host-${at % 5}`, fromUnixMs, end };
  });
  const writer = new HistoryWriter(database, 86_400_000);
  const shown = { state: 'vacant', token: null, leader: null, incarnation: null } as const;
  writer.write([
    {
      ...{ store: writer.store(`file:${directory}`), election: 'orders', atUnixMs: nowUnixMs },
      ...{ shown: { ...shown, ready: false, why: null }, terms },
    },
  ]);
  database.close();
  const page = await open(await dashboard('--store', `file:${directory}`, '--history', path));
  await page.getByRole('link', { name: 'orders' }).click();
  const rows = page.locator('tbody tr');
  await rows.filter({ hasText: '9999' }).waitFor(patiently);
  expect(await rows.count()).toBe(500);
  await page.getByRole('button', { name: 'Show older terms' }).click();
  await expect.poll(() => rows.count(), patiently).toBe(1_000);
  expect(await rows.last().textContent()).toContain('9000');
  await expectAccessible(page);
  expect(await page.locator('.zoomed .term').count()).toBe(1_001);
  // A later reading of the newest ones leaves the older ones on the page.
  const again = page.waitForResponse(/\/history\?/, patiently);
  await leading[Symbol.asyncDispose]();
  await again;
  await page.locator('.facts', { hasText: 'no leader' }).waitFor(patiently);
  expect(await rows.count()).toBe(1_000);
  await page.close();
});

const zooKeeperMissing = serverAvailable({});
test.skipIf(zooKeeperMissing !== undefined)(
  'a store that goes away: the page says since when what it shows is old, and goes on afterwards',
  async () => {
    const server = await startServer();
    try {
      await using zk = await connect(server.connectionString);
      await using elections = electionsOn(zookeeper(zk));
      await elections.lead('orders', 'one');
      const url = await dashboard('--store', server.connectionString, '--timeout', '3s');
      const page = await open(url);
      await shows(page, 'orders', 'leader', 'one');
      await server.kill();
      await page
        .getByRole('alert')
        .getByText('Its elections are as they were at')
        .waitFor(patiently);
      await row(page, 'orders').waitFor();
      await server.restart();
      await page.getByRole('alert').waitFor({ state: 'detached', timeout: 120_000 });
      await page.close();
    } finally {
      await server.close();
    }
  },
);

test.skipIf(zooKeeperMissing !== undefined)(
  'a store that is away at the start: the page says so, shows the others, and shows it once it answers',
  async () => {
    const server = await startServer();
    const directory = join(scratch, 'at-start');
    try {
      await using zk = await connect(server.connectionString);
      await using elections = electionsOn(zookeeper(zk));
      await elections.lead('orders', 'one');
      await using others = electionsOn(file(directory));
      await others.lead('reports', 'two');
      await server.kill();
      const stores = ['--store', server.connectionString, '--store', `file:${directory}`];
      const page = await open(await dashboard(...stores, '--timeout', '3s'));
      await shows(page, 'reports', 'leader', 'two');
      await page.getByRole('alert').getByText('It has not been read yet').waitFor(patiently);
      await server.restart();
      await row(page, 'orders').waitFor({ timeout: 120_000 });
      await page.getByRole('alert').waitFor({ state: 'detached', timeout: 120_000 });
      await page.close();
    } finally {
      await server.close();
    }
  },
);

describe('for others', () => {
  const file600 = (name: string, text: string) => {
    const path = join(scratch, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };

  test('a password is asked for, by TLS, and names of the machine are told by option', async () => {
    const [cert, key] = [join(scratch, 'cert.pem'), join(scratch, 'key.pem')];
    execFileSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost'],
    ]);
    const url = await dashboard(
      ...[
        '--store',
        `file:${join(scratch, 'tls')}`,
        '--auth-file',
        file600('auth', 'ops:se:cret\n'),
      ],
      ...['--cert', cert, '--key', key],
    );
    expect(url.protocol).toBe('https:');
    const context = { ignoreHTTPSErrors: true };
    const stranger = await browser.newContext(context);
    for (const path of ['/', '/live', '/dashboard.js']) {
      expect((await stranger.request.get(new URL(path, url).href)).status()).toBe(401);
    }
    await stranger.close();
    const known = await browser.newContext({
      ...context,
      httpCredentials: { username: 'ops', password: 'se:cret' },
    });
    const page = await known.newPage();
    await page.goto(url.href);
    await page.getByText('hold no election yet').waitFor(patiently);
    await known.close();
  });

  /** @returns what the command says when it ends with 64 */
  async function refusal(...options: readonly string[]): Promise<string> {
    const store = `file:${join(scratch, 'none')}`;
    const child = spawn(process.execPath, [cliFile, 'dashboard', '--store', store, ...options], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    started.push(child);
    let text = '';
    child.stderr.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(64);
    return text;
  }

  test('options that would open the page to everybody, or cannot be used, are refused', async () => {
    const loose = join(scratch, 'loose');
    writeFileSync(loose, 'ops:secret', { mode: 0o644 });
    expect(await refusal('--listen', ':0')).toMatch(/give --auth-file, or listen on 127\.0\.0\.1/);
    expect(await refusal('--auth-file', loose)).toMatch(/others may read it; `chmod 600/);
    expect(await refusal('--auth-file', file600('empty', '\n'))).toMatch(/one line, USER:PASSWORD/);
    expect(await refusal('--auth-file', join(scratch, 'missing'))).toMatch(/--auth-file: ENOENT/);
    expect(await refusal('--cert', loose)).toMatch(/--cert and --key belong together/);
    expect(await refusal('--cert', loose, '--key', loose)).toMatch(/must be a file in PEM format/);
  });
});

test('the elections of two stores stand side by side', async () => {
  const [one, two] = [join(scratch, 'one'), join(scratch, 'two')];
  await using first = electionsOn(file(one));
  await using second = electionsOn(file(two));
  await first.lead('orders', 'a');
  await second.lead('orders', 'b');
  const url = await dashboard('--store', `file:${one}`, '--store', `file:${two}`);
  const page = await open(url);
  await page.getByText('all 2').waitFor(patiently);
  expect(await page.locator('[data-election="orders"]').allTextContents()).toEqual([
    expect.stringContaining('a'),
    expect.stringContaining('b'),
  ]);
  await page.close();
});
