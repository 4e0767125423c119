// Makes the picture of `incumbent demo --web` in the README and the docs, by playing it in Chromium.
//
//   node scripts/demo-web-picture.mjs       docs/start/demo-web.png
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { root } from './lib/run.mjs';

const file = join(root, 'docs/start/demo-web.png');
const demo = spawn(process.execPath, ['packages/cli/dist/bin.js', 'demo', '--web', '--json'], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [line] = await once(createInterface({ input: demo.stdout }), 'line');
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1180, height: 815 } });
  await page.goto(JSON.parse(line).url);
  let leader = await nextLeader(page, '');
  const first = leader;
  for (const word of ['Kill', 'Freeze', 'Resign']) {
    await page.waitForTimeout(3_000);
    await page.click(`[data-candidate="${leader}"] button:has-text("${word}")`);
    const next = await nextLeader(page, leader);
    if (word === 'Freeze') {
      await page.waitForTimeout(1_500);
      await page.click(`[data-candidate="${leader}"] button:has-text("Thaw")`);
    }
    leader = next;
  }
  await page.click(`[data-candidate="${first}"] button:has-text("Start")`);
  await page.mouse.move(0, 0);
  await page.waitForTimeout(2_500);
  await page.screenshot({ path: file });
  console.log(file);
} finally {
  await browser.close();
  demo.kill('SIGINT');
}

async function nextLeader(page, before) {
  const found = await page.waitForFunction((last) => {
    const id = document.querySelector('[data-state="leads"]')?.dataset.candidate;
    return id !== last && id;
  }, before);
  return found.jsonValue();
}
