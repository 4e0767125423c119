// Serves the built site on this machine only.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { built } from './paths.mjs';

const types = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** @param {{ port?: number }} [options] default: any port that is free */
export async function serveSite({ port = 0 } = {}) {
  if (!isFile(join(built, 'index.html'))) throw new Error('the site is not built: `npm run docs`');
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    // Nothing above the root is reached: `normalize` has taken the `..` off.
    const path = join(built, normalize(decodeURIComponent(pathname)));
    const file = [path, join(path, 'index.html'), `${path}.html`].find(isFile);
    response.statusCode = file === undefined ? 404 : 200;
    const shown = file ?? join(built, '404.html');
    response.setHeader('content-type', types[extname(shown)] ?? 'application/octet-stream');
    createReadStream(shown).pipe(response);
  });
  await new Promise((done, fail) => {
    server.once('error', fail);
    server.listen(port, '127.0.0.1', done);
  });
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
