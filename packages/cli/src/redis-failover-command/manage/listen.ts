import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toJson } from '../../terminal/text.ts';
import { CommandError, exitCodes } from '../failure.ts';

export interface ListenAddress {
  /** Empty: every address. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** HOST:PORT, [IPV6]:PORT or :PORT; undefined: none of them. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+(?:%\w+)?)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  return { host: match[1] ?? match[2] ?? '', port };
}

export interface Served {
  /** `ready: false` is answered with 503. */
  ready(): { readonly ready: boolean; readonly body: object };
  metrics(): Promise<{ readonly type: string; readonly text: string }>;
}

export interface Listener {
  readonly url: string;
  close(): void;
}

/**
 * Serves /healthz, /readyz and /metrics.
 * @throws CommandError when the address cannot be listened on
 */
export async function listen({ host, port }: ListenAddress, served: Served): Promise<Listener> {
  const server = createServer((request, response) => {
    const send = (code: number, type: string, text: string) => {
      response.writeHead(code, { 'content-type': type, 'cache-control': 'no-store' });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    const plain = 'text/plain; charset=utf-8';
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return send(405, plain, 'only GET\n');
    }
    switch ((request.url ?? '').split('?')[0] ?? '') {
      case '/healthz':
        // The answer itself is the check: the event loop turns.
        return send(200, plain, 'ok\n');
      case '/readyz': {
        const { ready, body } = served.ready();
        return send(ready ? 200 : 503, 'application/json; charset=utf-8', `${toJson(body)}\n`);
      }
      case '/metrics':
        served.metrics().then(
          ({ type, text }) => send(200, type, text),
          (error: unknown) => send(500, plain, `${String(error)}\n`),
        );
        return undefined;
      default:
        return send(404, plain, 'there is /healthz, /readyz and /metrics\n');
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'somebody listens there already' : error.message;
      const shown = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
      // Not a usage error: a process that was just stopped may still hold the port.
      reject(new CommandError('CANNOT_LISTEN', exitCodes.no, `--listen ${shown}: ${why}`));
    });
    server.listen({ port, ...(host === '' ? {} : { host }) }, resolve);
  });
  // Later errors concern single connections.
  server.on('error', () => {});
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${shown}:${bound.port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
