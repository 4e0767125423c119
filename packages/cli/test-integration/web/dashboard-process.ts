/** `incumbent dashboard`, and its page in a browser. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Browser, Page } from 'playwright-core';
import { cliFile } from '../../src/trial/candidate-process.ts';

/** The caller ends the process. */
export async function startDashboard(
  options: readonly string[],
): Promise<{ readonly child: ChildProcess; readonly url: URL }> {
  const words = ['dashboard', '--json', '--listen', '127.0.0.1:0', ...options];
  const child = spawn(process.execPath, [cliFile, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, url: new URL(String(JSON.parse(line).url)) };
}

export async function openPage(
  browser: Browser,
  url: URL,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  await page.goto(url.href);
  return page;
}
