// Makes the picture of `incumbent dashboard` in the docs: elections on a directory, seen in Chromium.
//
//   node scripts/dashboard-picture.mjs       docs/guides/dashboard.png
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { chromium } from 'playwright-core';
import { root } from './lib/run.mjs';

const picture = join(root, 'docs/guides/dashboard.png');
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

await Promise.all(names.map(live));
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
  await page.locator('[data-election]').first().waitFor();
  await page.getByRole('button', { name: '10 min' }).click();
  await sleep(1_500);
  await page.screenshot({ path: picture });
  console.log(picture);
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
