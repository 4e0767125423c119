// The shards of `incumbent dashboard` in Chromium, on real stores.
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Shards } from '@incumbent/shards';
import { createShards, pinShard } from '@incumbent/shards';
import { file } from 'incumbent/file';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ShardProcesses } from '../../../shards/test-integration/support/processes.ts';
import type { ShownGrid } from '../../src/dashboard/shown.ts';
import { expectAccessible, faultsOf, openBrowser } from './browser.ts';
import { openPage, startDashboard } from './dashboard-process.ts';
import type { PageStore } from './page-stores.ts';
import { pageStores } from './page-stores.ts';

const patiently = { timeout: 60_000 };
const scratch = mkdtempSync(join(tmpdir(), 'shards-page-test-'));
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

async function dashboard(store: string): Promise<URL> {
  const { child, url } = await startDashboard(['--store', store]);
  started.push(child);
  return url;
}

/** The work of a shard. */
const own = (_shard: unknown, { signal }: { readonly signal: AbortSignal }) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

const fact = (page: Page, name: string, text: string) =>
  page.locator(`[data-fact="${name}"] dd`).getByText(text, { exact: true }).waitFor(patiently);

/** The page of the set, with its grid. */
async function openSet(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: /^Shards/ }).click(patiently);
  await page.getByRole('link', { name, exact: true }).click(patiently);
  await page.getByRole('listbox').waitFor(patiently);
}

/** The words that a screen reader has for the shard. */
async function wordsOf(page: Page, shard: number): Promise<string> {
  await page.getByRole('spinbutton', { name: 'Shard' }).fill(String(shard));
  return (await page.locator(`#shard-${shard}`).getAttribute('aria-label')) ?? '';
}

/** The colour that is painted for the shard, a little inside of its upper left corner. */
async function paintOf(page: Page, shard: number): Promise<string> {
  await wordsOf(page, shard);
  return page.evaluate((number) => {
    const cell = document.querySelector(`#shard-${number}`)!.getBoundingClientRect();
    for (const canvas of document.querySelectorAll('canvas')) {
      const { left, top, bottom } = canvas.getBoundingClientRect();
      if (cell.top < top || cell.top >= bottom) continue;
      const [x, y] = [
        (cell.left - left + 3) * devicePixelRatio,
        (cell.top - top + 3) * devicePixelRatio,
      ];
      const [red, green, blue] = canvas.getContext('2d')!.getImageData(x, y, 1, 1).data;
      return `rgb(${red}, ${green}, ${blue})`;
    }
    return 'no canvas';
  }, shard);
}

/** The colour of a member, as its row shows it. */
const colourOf = (page: Page, id: string) =>
  page
    .locator(`[data-member="${id}"] .swatch rect`)
    .evaluate((element) => getComputedStyle(element).fill);

const gridOf = (page: Page) =>
  page.evaluate(async () => {
    const response = await fetch('/shards?store=0&name=queues');
    return (await response.json()) as ShownGrid;
  });

describe.each(pageStores)('on $name', ({ name, missing, open: openStore }) => {
  if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
  let store: PageStore;
  let members: ShardProcesses | undefined;
  beforeAll(async () => {
    if (missing === undefined) store = await openStore(join(scratch, name));
  });
  afterAll(async () => {
    await members?.end();
    await store?.close();
  });

  test.skipIf(missing !== undefined)(
    'the grid shows the owner of each shard, and another one when its owner is killed',
    async () => {
      const group = new ShardProcesses(store.where, 64, '4s');
      members = group;
      await Promise.all(['a', 'b', 'c'].map((id) => group.start(id)));
      await group.until(() => group.isEven);
      const url = await dashboard(store.url);
      const page = await openPage(browser, url);
      const faults = faultsOf(page, url.origin);
      await page.getByRole('link', { name: /^Shards/ }).click(patiently);
      const row = page.locator('[data-shards="queues"]');
      await row.locator('[data-name="Members"]', { hasText: '3' }).waitFor(patiently);
      await row.locator('[data-name="Owned"]', { hasText: '64' }).waitFor(patiently);
      await expectAccessible(page);

      await openSet(page, 'queues');
      await fact(page, 'Without an owner', '0');
      await expect.poll(() => wordsOf(page, 0), patiently).toMatch(/shard 0: [abc], token \d+/);
      await expectAccessible(page);
      const before = await gridOf(page);
      for (const shard of [0, 17, 63]) {
        const { id, token } = before.terms[before.cells[shard]!]!;
        expect(await wordsOf(page, shard)).toContain(`shard ${shard}: ${id}, token ${token}`);
        await expect.poll(() => paintOf(page, shard)).toBe(await colourOf(page, id));
      }

      const lost = before.cells.findIndex((term) => before.terms[term]?.id === 'b');
      const kept = before.cells.findIndex((term) => before.terms[term]?.id === 'a');
      const words = await wordsOf(page, kept);
      await group.kill('b');
      await fact(page, 'Members', '2');
      await fact(page, 'Without an owner', '0');
      await page.locator('[aria-live]', { hasText: 'queues: 2 members' }).waitFor(patiently);
      await expect
        .poll(() => wordsOf(page, lost), patiently)
        .toMatch(/: [ac], token \d+, since (?!before)/);
      const heir = (await wordsOf(page, lost)).includes(': a,') ? 'a' : 'c';
      await expect.poll(() => paintOf(page, lost)).toBe(await colourOf(page, heir));
      const [same] = words.split(', since');
      expect(await wordsOf(page, kept)).toContain(same);

      // They are no elections.
      await page.getByRole('link', { name: /^Elections/ }).click();
      await page.getByText('all 0').waitFor(patiently);
      expect(faults).toEqual([]);
      await page.close();
    },
  );
});

test('shards with names are found by them', async () => {
  const directory = join(scratch, 'named');
  const tenants = createShards({
    ...{ name: 'tenants', backend: file(directory), shards: ['globex', 'acme', '<b>"odd" ☃'] },
    candidate: { id: 'one' },
    own,
  });
  await tenants.joined;
  const page = await openPage(browser, await dashboard(`file:${directory}`));
  await openSet(page, 'tenants');
  await fact(page, 'Without an owner', '0');
  await page.getByRole('searchbox', { name: 'Name' }).fill('GLOB');
  await page.locator('.about', { hasText: 'shard 2 (globex): one, token' }).waitFor(patiently);
  expect(await wordsOf(page, 0)).toMatch(/^shard 0 \(<b>"odd" ☃\): one/);
  await fact(page, 'Pinned', '0');
  await pinShard({ name: 'tenants', backend: file(directory) }, 2, 'one');
  await fact(page, 'Pinned', '1');
  await page.getByRole('button', { name: 'globex to one', exact: true }).click(patiently);
  await page.locator('.about', { hasText: 'pinned to one' }).waitFor(patiently);
  expect(await wordsOf(page, 2)).toMatch(/^shard 2 \(globex\): one, .*, pinned to one$/);
  await expectAccessible(page);
  await page.close();
  await tenants.close();
});

describe('10,000 shards', () => {
  const directory = join(scratch, 'many');
  const members: Shards<number>[] = [];
  let url: URL;

  beforeAll(async () => {
    const backend = file(directory);
    for (const id of ['one', 'two', 'three']) {
      members.push(
        createShards({
          ...{ name: 'queues', backend, shards: 10_000, candidate: { id }, lease: '30s' },
          own,
        }),
      );
    }
    await Promise.all(members.map(({ joined }) => joined));
    url = await dashboard(`file:${directory}`);
  });
  afterAll(async () => {
    await Promise.all(members.map((member) => member.close()));
  });

  test('are reached by the keyboard alone, and told in words', async () => {
    const page = await openPage(browser, url);
    await openSet(page, 'queues');
    await fact(page, 'Without an owner', '0');
    for (let tabs = 0; ; tabs += 1) {
      expect(tabs, 'the grid cannot be reached by the key Tab').toBeLessThan(30);
      await page.keyboard.press('Tab');
      if (await page.evaluate(() => document.activeElement?.role === 'listbox')) break;
    }
    const option = page.getByRole('option');
    const heard = () => option.getAttribute('aria-label');
    await page.keyboard.press('End');
    expect(await heard()).toMatch(/^shard 9999: (one|two|three), token/);
    expect(await option.getAttribute('aria-posinset')).toBe('10000');
    // The view follows.
    await expect
      .poll(() => page.locator('.grid-scroll').evaluate((box) => box.scrollTop))
      .toBeGreaterThan(500);
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    expect(await heard()).toMatch(/^shard 1: /);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    expect(await heard()).toMatch(/^shard 1: /);

    // One member stands out, by its button.
    const [first] = await page.locator('[data-member]').all();
    const id = await first!.getAttribute('data-member');
    const { terms, cells } = await gridOf(page);
    const other = cells.findIndex((term) => terms[term]?.id !== id);
    const bright = await paintOf(page, other);
    await first!.getByRole('button').press('Enter');
    await expect.poll(() => paintOf(page, other)).not.toBe(bright);

    await page.getByText('The same as text').press('Enter');
    await page.locator('.ranges').getByText('and', { exact: false }).first().waitFor();
    await expectAccessible(page);
    await page.close();
  });

  test.each(['light', 'dark'] as const)(
    'fit a phone, and can be read there: %s',
    async (colorScheme) => {
      const page = await openPage(browser, url, {
        viewport: { width: 390, height: 844 },
        colorScheme,
      });
      const width = () => page.evaluate(() => document.documentElement.scrollWidth);
      await page.getByRole('link', { name: /^Shards/ }).click(patiently);
      await page.locator('[data-shards]').waitFor(patiently);
      expect(await width()).toBeLessThanOrEqual(390);
      await expectAccessible(page);
      await openSet(page, 'queues');
      await fact(page, 'Without an owner', '0');
      expect(await width()).toBeLessThanOrEqual(390);
      await expectAccessible(page);
      await page.close();
    },
  );

  test('scroll; how many frames a second is said', async () => {
    const page = await openPage(browser, url);
    await openSet(page, 'queues');
    await fact(page, 'Without an owner', '0');
    const times = await page.evaluate(async () => {
      const found: number[] = [];
      const box = document.querySelector('.grid-scroll')!;
      for (let at = 0; at < 240; at += 1) {
        box.scrollBy(0, at < 120 ? 12 : -12);
        found.push(await new Promise<number>(requestAnimationFrame));
      }
      return found;
    });
    const gaps = times.slice(1).map((time, at) => time - times[at]!);
    gaps.sort((a, b) => a - b);
    const average = 1_000 / ((times.at(-1)! - times[0]!) / gaps.length);
    process.stdout.write(
      `10,000 shards: ${average.toFixed(0)} frames a second, ` +
        `p99 ${gaps[Math.floor(gaps.length * 0.99)]!.toFixed(1)} ms\n`,
    );
    expect(await page.locator('canvas').count()).toBeGreaterThan(1);
    await page.close();
  });

  test('a damaged slot is named, and the rest is shown', async () => {
    // Nobody holds the last one.
    const slot = join(directory, '.leases', '_queues%2F16');
    for (const entry of readdirSync(slot)) writeFileSync(join(slot, entry), 'no record');
    const page = await openPage(browser, url);
    await openSet(page, 'queues');
    await page.getByRole('alert').getByText('_queues%2F16').waitFor(patiently);
    await fact(page, 'Shards', '10,000');
    await page.close();
  });
});
