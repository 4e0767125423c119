// The site of the docs: builds it, and shows or examines it.
//
//     npm run docs                       builds it into docs/.vitepress/dist
//     npm run docs -- --serve            and serves it on this machine
//     npm run docs -- --test             and opens every page in Chromium
//     npm run docs -- --built --test     without building it again
//     npm run docs -- --test --views light,dark-phone   in two of the four views
//     npm run docs -- --base /incumbent/   for a host on which it is not at the root
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run, seconds, tool } from './lib/run.mjs';

const usage = `npm run docs [-- --serve [--port N] | --test] [--built] [--base /PATH/]`;
const { serve, test, views, built, base, port } = choose();

if (!built) {
  await step('reference and pages of the repository', [
    process.execPath,
    join(root, 'docs/site/generate.mjs'),
  ]);
  await step(
    'site',
    tool('vitepress/bin/vitepress.js', 'build', 'docs'),
    base === undefined ? {} : { DOCS_BASE: base },
  );
  if (!serve && !test) {
    console.log('built: docs/.vitepress/dist; `npm run docs -- --serve --built` shows it');
  }
}
if (test) {
  const chosen = views === undefined ? [] : ['--views', views];
  const { code } = await run([process.execPath, join(root, 'docs/test/site.test.mjs'), ...chosen], {
    output: 'inherit',
  });
  process.exitCode = code;
}
if (serve) {
  const { serveSite } = await import('../docs/site/serve.mjs');
  const { url } = await serveSite({ port: Number(port ?? 4173) });
  console.log(`${url} (Ctrl-C ends it)`);
}

async function step(name, command, env) {
  const { code, output, ms } = await run(command, { env });
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds(ms)})`);
  if (code === 0) return;
  console.log(output);
  process.exit(1);
}

function choose() {
  try {
    const { values } = parseArgs({
      options: {
        serve: { type: 'boolean' },
        test: { type: 'boolean' },
        views: { type: 'string' },
        built: { type: 'boolean' },
        base: { type: 'string' },
        port: { type: 'string' },
        help: { type: 'boolean' },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    if (values.views !== undefined && !values.test) {
      throw new Error('--views says in which views --test opens the pages: give --test as well');
    }
    if (values.base !== undefined && !/^\/(.*\/)?$/.test(values.base)) {
      throw new Error(`--base begins and ends with a slash, unlike "${values.base}"`);
    }
    return values;
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(64);
  }
}
