// Opens every page of the built site in Chromium, as `npm run docs -- --test` does: light and dark,
// on a wide screen and on a phone. Fails when a page logs an error, asks another host for
// something, is wider than the screen, or has a link or an anchor without a target. Fails, too, when
// the search does not find what it should, or when text has too little contrast. Pictures are left
// in docs/test/pictures.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { built, docs } from '../site/paths.mjs';
import { serveSite } from '../site/serve.mjs';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** Pages that are open at once. */
const atOnce = 4;
const limitMs = 120_000;
const wide = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };
const allViews = [
  { name: 'light', scheme: 'light', viewport: wide, checksContrast: true },
  { name: 'dark', scheme: 'dark', viewport: wide, checksContrast: true },
  { name: 'light-phone', scheme: 'light', viewport: phone },
  { name: 'dark-phone', scheme: 'dark', viewport: phone },
];
const pictured = new Map([
  ['index.html', 'home'],
  ['stores/redis.html', 'store'],
  ['evidence/benchmarks-stores.html', 'benchmark'],
  ['reference/api/incumbent/redis.html', 'api'],
  ['design/hand-over.html', 'diagram'],
]);
/** Contrast is examined on one page of each kind: what is drawn by one style is alike everywhere. */
const examined = new Set([
  ...pictured.keys(),
  'start/index.html',
  'reference/commands/incumbent.html',
]);

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, views: { type: 'string' } },
});
const views = chooseViews();
const startMs = performance.now();
const failures = [];
const pictures = join(docs, 'test/pictures');
mkdirSync(pictures, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const pages = readdirSync(built, { recursive: true })
  .filter((file) => file.endsWith('.html') && file !== '404.html')
  .filter((file) => options.only === undefined || file.includes(options.only))
  .sort();
const site = await serveSite();
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
/** For each page its anchors, and the links on it. */
const anchors = new Map();
const links = [];
try {
  for (const view of views) await inView(view);
  await searchFinds('fencing token');
} finally {
  await browser.close();
  site.close();
}
checkLinks();

for (const failure of failures) console.log(`FAILED ${failure}`);
const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
console.log(
  `${pages.length} pages in ${views.length} views, ${links.length} links, ${failures.length} failures, ${seconds} s; pictures in ${relative(process.cwd(), pictures)}`,
);
process.exitCode = failures.length > 0 || pages.length === 0 ? 1 : 0;

function chooseViews() {
  const names = options.views?.split(',');
  const unknown = names?.find((name) => !allViews.some((view) => view.name === name));
  if (unknown !== undefined) {
    console.error(`no view "${unknown}"; there are ${allViews.map(({ name }) => name).join(', ')}`);
    process.exit(64);
  }
  return allViews.filter(({ name }) => names === undefined || names.includes(name));
}

async function inView(view) {
  const context = await browser.newContext({
    viewport: view.viewport,
    colorScheme: view.scheme,
    reducedMotion: 'reduce',
  });
  const waiting = [...pages];
  const worker = async () => {
    const page = await context.newPage();
    page.setDefaultTimeout(limitMs);
    let shown = '';
    const fails = (what) => failures.push(`${shown} (${view.name}): ${what}`);
    page.on('console', (message) => {
      if (message.type() === 'error') fails(`the console says: ${message.text()}`);
    });
    page.on('pageerror', (error) => fails(`an error: ${error.message}`));
    page.on('request', (request) => {
      const url = request.url();
      if (/^https?:/.test(url) && !url.startsWith(site.url)) fails(`asks another host: ${url}`);
    });
    page.on('response', (response) => {
      if (response.status() >= 400) fails(`${response.status()}: ${response.url()}`);
    });
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      shown = path;
      try {
        await examine(page, path, view, fails);
      } catch (error) {
        fails(error.message);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  await context.close();
}

async function examine(page, path, view, fails) {
  await page.goto(new URL(path, site.url).href, { waitUntil: 'load' });
  // Vue has taken over, and diagrams are drawn.
  await page.waitForFunction(() => document.querySelector('#app')?.__vue_app__ !== undefined);
  await page.waitForFunction(
    () =>
      document.querySelectorAll('.diagram').length ===
      document.querySelectorAll('.diagram svg').length,
  );
  const seen = await page.evaluate(() => ({
    isDark: document.documentElement.classList.contains('dark'),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    anchors: [...document.querySelectorAll('[id]')].map(({ id }) => id),
    links: [...document.querySelectorAll('a[href]')].map(({ href }) => href),
    broken: [...document.images]
      .filter(({ complete, naturalWidth }) => complete && naturalWidth === 0)
      .map(({ src }) => src),
  }));
  if (seen.isDark !== (view.scheme === 'dark')) fails('it has not the colours of the system');
  if (seen.overflow > 0) fails(`it is ${seen.overflow} px wider than the screen`);
  for (const image of seen.broken) fails(`a picture is not shown: ${image}`);
  if (!anchors.has(path)) {
    anchors.set(path, new Set(seen.anchors));
    for (const href of new Set(seen.links)) links.push({ path, href });
  }
  if (view.checksContrast && examined.has(path)) await examineContrast(page, fails);
  const name = pictured.get(path);
  if (name === undefined) return;
  const chart = page.locator('.bar-chart').first();
  if ((await chart.count()) > 0) {
    await chart.evaluate((each) => window.scrollTo(0, each.offsetTop - 160));
  }
  await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`) });
}

async function examineContrast(page, fails) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly: {
        type: 'rule',
        values: ['color-contrast', 'image-alt', 'scrollable-region-focusable'],
      },
    });
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.length}, first ${nodes[0].html.slice(0, 160)} ${nodes[0].any[0]?.message ?? ''}`,
    );
  });
  for (const each of found) fails(each);
}

/** Every link within the site leads to a page, and to an anchor of it. */
function checkLinks() {
  if (options.only !== undefined) return;
  for (const { path, href } of links) {
    const url = new URL(href);
    if (url.origin !== new URL(site.url).origin) continue;
    const target = decodeURIComponent(url.pathname.slice(1)).replace(/(^|\/)$/, '$1index.html');
    const known = anchors.get(target) ?? anchors.get(`${target}.html`);
    const anchor = decodeURIComponent(url.hash.slice(1));
    if (known === undefined) failures.push(`${path}: a link leads to no page: ${url.pathname}`);
    else if (anchor !== '' && !known.has(anchor)) {
      failures.push(`${path}: a link leads to no anchor: ${url.pathname}${url.hash}`);
    }
  }
}

async function searchFinds(words) {
  const page = await browser.newPage({ viewport: wide });
  page.setDefaultTimeout(limitMs);
  try {
    await page.goto(site.url);
    await page.click('.DocSearch-Button, .VPNavBarSearch button');
    await page.fill('.VPLocalSearchBox input', words);
    const first = page.locator('.VPLocalSearchBox .result').first();
    await first.waitFor();
    const href = await first.getAttribute('href');
    await first.click();
    await page.waitForURL((url) => url.pathname === new URL(href, site.url).pathname);
    await page.waitForFunction(() => /token/i.test(document.querySelector('main')?.textContent));
  } catch (error) {
    failures.push(`search: "${words}" is not found: ${error.message}`);
  } finally {
    await page.close();
  }
}
