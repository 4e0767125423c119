// Makes the pictures of `incumbent dashboard` in the docs: elections and shards on a directory, seen in Chromium.
//
//   node scripts/dashboard-picture.mjs            docs/guides/dashboard.png and dashboard-shards.png
//   node scripts/dashboard-picture.mjs --shards   the second one only: the first one takes minutes
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createShards, observeShards } from '@incumbent/shards';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { chromium } from 'playwright-core';
import { root } from './lib/run.mjs';

const picture = (name) => join(root, 'docs/guides', `${name}.png`);
const directory = mkdtempSync(join(tmpdir(), 'dashboard-picture-'));
const backend = file(directory);
const names = ['billing', 'cron', 'invoices', 'mail', 'orders', 'reports', 'search', 'thumbnails'];
const held = [];

/** A few minutes of the life of one election. */
async function live(name, at) {
  for (let turn = 0; turn < 4; turn += 1) {
    const id = `host-${(at + turn) % 5}`;
    const election = createElection({ name, backend, lease: '15s', candidate: { id } });
    const term = await election.campaign();
    const isLast = turn === 3 && at % 4 !== 3;
    if (isLast) {
      held.push({ election, term });
      const other = createElection({ name, backend, candidate: { id: `host-${(at + 4) % 5}` } });
      other.campaign().catch(() => {});
      held.push({ election: other });
      return;
    }
    await sleep(20_000 + 7_000 * ((at * 3 + turn) % 5));
    await term[Symbol.asyncDispose]();
    await election.close();
    await sleep(1_000 * ((at + turn) % 7));
  }
}

/** Four members, of which one leaves: its work takes a while to stop. */
async function share() {
  const members = ['worker-1', 'worker-2', 'worker-3', 'worker-4'].map((id, at) =>
    createShards({
      ...{ name: 'queues', backend, shards: 256, weight: at === 3 ? 2 : 1, maxMoving: 40 },
      candidate: { id, addresses: [`10.0.0.${at + 1}:8080`] },
      own: (_shard, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => setTimeout(resolve, at === 3 ? 60_000 : 0));
        }),
    }),
  );
  for await (const status of observeShards({ name: 'queues', backend })) {
    if (status?.unowned.length === 0 && status.members.length === members.length) break;
  }
  void members.at(-1).drain(); // it ends with this program
  for await (const status of observeShards({ name: 'queues', backend })) {
    if ((status?.moving.length ?? 0) > 0) return;
  }
}

async function take(page, name) {
  await page.screenshot({ path: picture(name) });
  console.log(picture(name));
}

const isWhole = process.argv[2] !== '--shards';
if (isWhole) await Promise.all(names.map(live));
await share();
const dashboard = spawn(
  process.execPath,
  [
    'packages/cli/dist/bin.js',
    'dashboard',
    '--json',
    '--store',
    `file:${directory}`,
    '--listen',
    '127.0.0.1:0',
  ],
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
);
const [line] = await once(createInterface({ input: dashboard.stdout }), 'line');
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1180, height: 520 } });
  await page.goto(JSON.parse(line).url);
  if (isWhole) {
    await page.locator('[data-election]').first().waitFor();
    await page.getByRole('button', { name: '10 min' }).click();
    await sleep(1_500);
    await take(page, 'dashboard');
  }
  await page.setViewportSize({ width: 1180, height: 900 });
  await page.getByRole('link', { name: /^Shards/ }).click();
  await page.getByRole('link', { name: 'queues' }).click();
  await page.getByText(/^shard 0: worker/).waitFor();
  await take(page, 'dashboard-shards');
} finally {
  await browser.close();
  dashboard.kill('SIGINT');
  for (const { term, election } of held) {
    await term?.[Symbol.asyncDispose]();
    await election.close();
  }
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
