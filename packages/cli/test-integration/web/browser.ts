/** Debian's Chromium, as the pages of the command are looked at. */
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { expect } from 'vitest';

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
/** Chromium asks hosts of its maker for this and that, which no test needs. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, args: quiet });
}

/** Errors that the page has logged or thrown, and requests to other hosts. */
export function faultsOf(page: Page, origin: string): readonly string[] {
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`logged: ${message.text()}`);
  });
  page.on('pageerror', ({ message }) => faults.push(`thrown: ${message}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`asked ${request.url()}`);
  });
  return faults;
}

/** By the rules of WCAG that a program can check. */
export async function expectAccessible(page: Page): Promise<void> {
  // The policy of the page lets no script be added, but the browser's own tools may evaluate one.
  const source = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  const { readFile } = await import('node:fs/promises');
  await page.evaluate(await readFile(source, 'utf8'));
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const results = await axe.run();
    return results.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  });
  expect(violations).toEqual([]);
}
