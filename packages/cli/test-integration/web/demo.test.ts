// `incumbent demo --web` in Chromium: a person kills, freezes, thaws and resigns candidates by button.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cliFile } from '../../src/trial/candidate-process.ts';
import { expectAccessible, faultsOf, openBrowser } from './browser.ts';

let browser: Browser;
let demo: ChildProcess;
let url: URL;
const printed: Record<string, unknown>[] = [];

beforeAll(async () => {
  browser = await openBrowser();
  demo = spawn(process.execPath, [cliFile, 'demo', '--web', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: demo.stdout! });
  lines.on('line', (line) => printed.push(JSON.parse(line)));
  await once(lines, 'line');
  url = new URL(String(printed[0]!['url']));
});

afterAll(async () => {
  await browser.close();
  demo.kill('SIGKILL');
});

const leader = (page: Page, not = '') =>
  page
    .waitForFunction(
      (last) => {
        const row = document.querySelector<HTMLElement>('[data-state="leads"]');
        return row?.dataset['candidate'] !== last && row?.dataset['candidate'];
      },
      not,
      { timeout: 60_000 },
    )
    .then((handle) => handle.jsonValue() as Promise<string>);

const press = (page: Page, candidate: string, word: string) =>
  page.click(`[data-candidate="${candidate}"] button:has-text("${word}")`, { timeout: 60_000 });

const state = (page: Page, candidate: string, wanted: string) =>
  page.waitForSelector(`[data-candidate="${candidate}"][data-state="${wanted}"]`, {
    timeout: 60_000,
  });

const note = (page: Page, text: RegExp) =>
  page.locator('.notes li', { hasText: text }).first().waitFor({ timeout: 60_000 });

test('a person kills, starts, freezes, thaws and resigns leaders, and never are there two', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const faults = faultsOf(page, url.origin);
  await page.goto(url.href);
  const first = await leader(page);
  // The token is for this tab only: not in a bookmark, and not in a picture.
  expect(page.url()).toBe(`${url.origin}/`);

  await press(page, first, 'Kill');
  await state(page, first, 'gone');
  const second = await leader(page, first);
  await note(page, new RegExp(`${first} killed \\(SIGKILL\\).*${second} leads after`));
  await press(page, first, 'Start');
  await state(page, first, 'waits');

  await press(page, second, 'Freeze');
  await state(page, second, 'frozen');
  const third = await leader(page, second);
  await press(page, second, 'Thaw');
  await note(page, new RegExp(`${second} thawed \\(SIGCONT\\).*finds its term over`));
  await state(page, second, 'waits');

  await press(page, third, 'Resign');
  const fourth = await leader(page, third);
  await note(page, new RegExp(`${third} asked to resign.*${fourth} leads after`));

  expect(await page.getAttribute('[data-overlaps]', 'data-overlaps')).toBe('0');
  await expectAccessible(page);
  expect(faults).toEqual([]);
  await page.close();
});

test.each(['light', 'dark'] as const)(
  'fits a phone, and can be read there: %s',
  async (colorScheme) => {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme });
    await page.goto(url.href);
    await leader(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(390);
    await expectAccessible(page);
    await page.close();
  },
);

test('works by the keyboard alone', async () => {
  const page = await browser.newPage();
  await page.goto(url.href);
  const id = await leader(page);
  const focused = () =>
    page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
  for (let tabs = 0; !(await focused()).startsWith(`Resign ${id}`); tabs += 1) {
    expect(tabs).toBeLessThan(30);
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  await note(page, new RegExp(`${id} asked to resign`));
  await page.close();
});

test('without the token the page only shows', async () => {
  const page = await browser.newPage();
  await page.goto(url.origin);
  await leader(page);
  expect(await page.locator('button:enabled').count()).toBe(0);
  await page.getByText('This page only shows').waitFor();
  await page.close();
});

/** @returns the status of the answer */
async function post(headers: Record<string, string>, method = 'POST'): Promise<number> {
  const asked = request({ host: url.hostname, port: url.port, path: '/act', method, headers });
  asked.end(JSON.stringify({ act: 'kill', candidate: 'nobody' }));
  const [answer] = await once(asked, 'response');
  answer.resume();
  return answer.statusCode;
}

test('an action is refused without the token, from another origin, and under another name', async () => {
  const json = { 'content-type': 'application/json' };
  const token = { 'x-incumbent-token': url.hash.slice(1) };
  // A candidate that is not there is refused as such: the request itself was let through.
  expect(await post({ ...json, ...token })).toBe(409);
  expect(await post({ ...json, ...token, origin: url.origin })).toBe(409);
  expect(await post(json)).toBe(403);
  expect(await post({ ...json, 'x-incumbent-token': 'x' })).toBe(403);
  expect(await post({ ...json, ...token, origin: 'http://elsewhere.example' })).toBe(403);
  expect(await post({ ...json, ...token, 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await post({ ...token, 'content-type': 'text/plain' })).toBe(415);
  expect(await post({ ...json, ...token, host: 'elsewhere.example' })).toBe(421);
  expect(await post({ ...json, ...token }, 'PUT')).toBe(405);
});

test('INT ends the demo with its verdict, and the page says that it is old', async () => {
  const page = await browser.newPage();
  await page.goto(url.href);
  await leader(page);
  demo.kill('SIGINT');
  await page.getByText('has ended, or cannot be reached').waitFor({ timeout: 60_000 });
  const [code] = await once(demo, 'exit');
  expect(code).toBe(0);
  expect(printed.at(-1)).toMatchObject({ event: 'verdict', overlaps: 0, violations: [], left: 0 });
  await page.close();
});
