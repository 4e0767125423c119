// How long after a change of the record the row on the page changes. Leaders are killed for it.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Election } from 'incumbent';
import { createElection } from 'incumbent';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from './browser.ts';
import { openPage, startDashboard } from './dashboard-process.ts';
import type { PageStore } from './page-stores.ts';
import { pageStores } from './page-stores.ts';

/** `INCUMBENT_KILLS=20`: so many leaders are killed on each store. */
const kills = Number(process.env['INCUMBENT_KILLS'] ?? 2);
/** From one look at the record to the next: an error of the measurement. */
const lookEveryMs = 5;
const program = fileURLToPath(new URL('candidate.mjs', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'row-latency-test-'));
const started: ChildProcess[] = [];
let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser.close();
  for (const child of started) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});

/** Resolves when it waits, or leads. */
async function candidate({ where }: PageStore, id: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, ...where, id, 'orders', '1s'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  await once(child.stdout, 'data');
  return child;
}

/** When the record shows the leader, by the clock of this machine. */
async function recordedAt(election: Election, id: string): Promise<number> {
  for (;;) {
    const { state, leader } = await election.leader();
    if (state === 'led' && leader?.id === id) return Date.now();
    await sleep(lookEveryMs);
  }
}

/** When the row shows the leader, by the same clock. */
const shownAt = (page: Page, id: string): Promise<number> =>
  page.evaluate(
    (leader) =>
      new Promise<number>((resolve) => {
        const look = () => {
          const cell = document.querySelector('[data-election="orders"] .leader');
          const isLed = document.querySelector('[data-election="orders"][data-state="led"]');
          if (isLed === null || cell?.textContent !== leader) return;
          observer.disconnect();
          resolve(Date.now());
        };
        const observer = new MutationObserver(look);
        observer.observe(document.body, {
          ...{ childList: true, subtree: true },
          ...{ characterData: true, attributes: true },
        });
        look();
      }),
    id,
  );

describe.each(pageStores)('on $name', ({ name, missing, open: openStore }) => {
  if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
  let store: PageStore;
  beforeAll(async () => {
    if (missing === undefined) store = await openStore(join(scratch, name));
  });
  afterAll(() => store?.close());

  test.skipIf(missing !== undefined)(
    'a leader is killed: from the new record to the row is measured',
    async () => {
      const election = createElection({ name: 'orders', backend: store.backend });
      let leader = await candidate(store, 'host-0');
      await recordedAt(election, 'host-0');
      const { child, url } = await startDashboard(['--store', store.url]);
      started.push(child);
      const page = await openPage(browser, url);
      await shownAt(page, 'host-0');
      const tookMs: number[] = [];
      for (let turn = 1; turn <= kills; turn += 1) {
        const id = `host-${turn}`;
        const next = await candidate(store, id);
        const both = Promise.all([recordedAt(election, id), shownAt(page, id)]);
        leader.kill('SIGKILL');
        const [recordedMs, shownMs] = await both;
        tookMs.push(shownMs - recordedMs);
        leader = next;
      }
      tookMs.sort((a, b) => a - b);
      expect(tookMs).toHaveLength(kills);
      const [middle, last] = [tookMs[Math.floor(kills / 2)], tookMs.at(-1)];
      process.stdout.write(
        `${name}: ${kills} leaders killed, from the record to the row ${middle} ms (median), ` +
          `${last} ms (longest), looking every ${lookEveryMs} ms: ${tookMs.join(' ')}\n`,
      );
      leader.kill('SIGKILL');
      await page.close();
      await election.close();
    },
  );
});
