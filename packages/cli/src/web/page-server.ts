import { randomBytes } from 'node:crypto';
import { access, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { extname } from 'node:path';
import { CommandError, exitCodes } from '../failure.ts';
import type { ListenAddress } from '../options.ts';
import { toJson } from '../terminal/text.ts';
import type { Refusal } from './access.ts';
import { whyNotKnown, whyNotOurs, whyNotSteered } from './access.ts';
import { bind } from './bind.ts';
import type { LiveValues } from './live-values.ts';

/** Beside `src` and `dist`: the pages that `web/build.mjs` has made. */
const assets = new URL('../../assets/', import.meta.url);

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing but what we serve ourselves, and no page of another one around it. */
const headers: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const longestAction = 65_536;
/** A browser has up to seven. */
const mostConnections = 700;

/** An action that cannot be taken, or a question without an answer, in words for the person who asked. */
export class ActionError extends Error {
  override readonly name: string = 'ActionError';
}

export interface PageOptions {
  readonly address: ListenAddress;
  /** The page, without its ending: `demo`. */
  readonly page: string;
  readonly live: LiveValues;
  /**
   * Does what the page asks for, given as JSON. Absent: the page only shows.
   * @throws ActionError
   */
  readonly act?: (action: unknown) => Promise<object>;
  /**
   * Answers of further paths, such as `/history`, which change nothing.
   * @throws ActionError
   */
  readonly read?: Readonly<Record<string, (query: URLSearchParams) => object>>;
  /** `USER:PASSWORD` that every request must know (HTTP Basic). Absent: everybody may look. */
  readonly credentials?: string;
  /** PEM. Absent: plain HTTP. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
  /** Further names under which the page may be opened. */
  readonly names?: readonly string[];
}

export interface PageServer {
  /** With the token, where there are actions: for the person who has started the command only. */
  readonly url: string;
  close(): void;
}

/**
 * Serves one page, the values that it shows (`/live`), and its actions (`/act`).
 * @throws CommandError when the address cannot be listened on
 */
export async function servePage(options: PageOptions): Promise<PageServer> {
  const { live, act, read = {}, page, credentials, tls } = options;
  const names = new Set(options.names?.map((name) => name.toLowerCase()));
  const scheme = tls === undefined ? 'http' : 'https';
  const token = randomBytes(18).toString('base64url');

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refused = whyNotOurs(request, names) ?? whyNotKnown(request, credentials);
    if (refused !== undefined) return refuse(response, refused);
    const [path = '', query] = (request.url ?? '').split('?');
    if (path === '/act') {
      if (act === undefined) return refuse(response, { status: 403, text: 'this page only shows' });
      const refusal = whyNotSteered(request, scheme, token);
      if (refusal !== undefined) return refuse(response, refusal);
      return answerAction(request, response, act);
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refuse(response, { status: 405, text: 'only GET' });
    }
    if (path === '/live') {
      if (request.method === 'HEAD') return send(response, 200, 'text/event-stream', '');
      if (!live.stream(response)) {
        refuse(response, { status: 503, text: 'too many browsers have this page open' });
      }
      return;
    }
    const question = Object.hasOwn(read, path) ? read[path] : undefined;
    if (question !== undefined) {
      return sendAnswer(response, async () => question(new URLSearchParams(query)));
    }
    return sendAsset(response, path === '/' ? `/${page}.html` : path);
  }

  const handle = (request: IncomingMessage, response: ServerResponse) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    answer(request, response).catch((error: unknown) => {
      refuse(response, { status: 500, text: error instanceof Error ? error.message : 'failed' });
    });
  };
  const server = tls === undefined ? createServer(handle) : createTlsServer({ ...tls }, handle);
  server.maxConnections = mostConnections;
  await requireBuilt(page);
  const at = await bind(server, options.address);
  return {
    url: `${scheme}://${at}/${act === undefined ? '' : `#${token}`}`,
    close() {
      live.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** In a clone they are built by `npm run build`. */
async function requireBuilt(page: string): Promise<void> {
  try {
    await access(new URL(`${page}.html`, assets));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      'INTERNAL',
      exitCodes.internal,
      `the page "${page}" is not built: ${why}`,
    );
  }
}

async function answerAction(
  request: IncomingMessage,
  response: ServerResponse,
  act: (action: unknown) => Promise<object>,
): Promise<void> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > longestAction) {
      return refuse(response, { status: 413, text: `longer than ${longestAction} characters` });
    }
  }
  let action: unknown;
  try {
    action = JSON.parse(text);
  } catch {
    return refuse(response, { status: 400, text: 'the body must be JSON' });
  }
  return sendAnswer(response, () => act(action));
}

async function sendAnswer(response: ServerResponse, answer: () => Promise<object>): Promise<void> {
  try {
    send(response, 200, 'application/json', toJson(await answer()));
  } catch (error) {
    if (!(error instanceof ActionError)) throw error;
    refuse(response, { status: 409, text: error.message });
  }
}

async function sendAsset(response: ServerResponse, path: string): Promise<void> {
  const type = types[extname(path)];
  // One folder, and nothing above or below it.
  const isName = /^\/[\w-]+(\.[\w-]+)+$/.test(path);
  try {
    if (type === undefined || !isName) throw new Error('no such page');
    send(response, 200, type, await readFile(new URL(path.slice(1), assets)));
  } catch {
    refuse(response, { status: 404, text: 'no such page' });
  }
}

function refuse(response: ServerResponse, { status, text }: Refusal): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (status === 401)
    response.setHeader('www-authenticate', 'Basic realm="incumbent", charset="UTF-8"');
  send(response, status, 'application/json; charset=utf-8', toJson({ error: text }));
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(body);
}
