import { createServer } from 'node:http';
import type { ListenAddress } from '../options.ts';
import { toJson } from '../terminal/text.ts';
import { bind } from '../web/bind.ts';
import type { OwnedShards } from './metrics.ts';

export interface LiveStatus {
  /** 503 on /healthz: a term is held that cannot be confirmed, or that is over and still works. */
  readonly healthy: boolean;
  /** Undefined: it owns shards, and there is no /leader. */
  readonly leading?: boolean;
  /** It leads, and its program is ready: 200 on /leader. */
  readonly ready?: boolean;
  /** The fields that /status shows. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Listener {
  readonly url: string;
  close(): void;
}

/**
 * Serves /healthz, /leader, /status and /metrics.
 * @param owned of which shards this process owns so many
 * @throws CommandError when the address cannot be listened on
 */
export async function listen(
  address: ListenAddress,
  status: () => LiveStatus,
  owned?: OwnedShards,
): Promise<Listener> {
  // Only who listens needs prom-client, and a start is fast without it.
  const metrics = await (await import('./metrics.ts')).serveMetrics(owned);
  const server = createServer((request, response) => {
    const { healthy, leading, ready, fields } = status();
    const leadership = leading === undefined ? {} : { leading, ready };
    const send = (code: number, type: string, text: string) => {
      const allowed = request.method === 'GET' || request.method === 'HEAD';
      response.writeHead(allowed ? code : 405, {
        'content-type': type.includes(';') ? type : `${type}; charset=utf-8`,
        'cache-control': 'no-store',
        ...(allowed ? {} : { allow: 'GET, HEAD' }),
      });
      response.end(allowed ? `${text}\n` : 'only GET\n');
    };
    switch ((request.url ?? '').split('?')[0] ?? '') {
      case '/healthz':
        return send(healthy ? 200 : 503, 'text/plain', healthy ? 'ok' : 'term not confirmed');
      case '/leader':
        if (leading === undefined) break;
        return send(ready ? 200 : 503, 'text/plain', leaderWords(leading, ready === true));
      case '/status':
        return send(200, 'application/json', toJson({ ...leadership, healthy, ...fields }));
      case '/metrics':
        metrics.text().then(
          (text) => send(200, metrics.contentType, text.trimEnd()),
          (error: unknown) => send(500, 'text/plain', String(error)),
        );
        return undefined;
      default:
    }
    const leader = leading === undefined ? '' : ' /leader,';
    return send(404, 'text/plain', `there is /healthz,${leader} /status and /metrics`);
  });
  const at = await bind(server, address).catch((error: unknown) => {
    metrics.close();
    throw error;
  });
  server.unref();
  return {
    url: `http://${at}`,
    close() {
      server.close();
      server.closeAllConnections();
      metrics.close();
    },
  };
}

function leaderWords(leading: boolean, ready: boolean): string {
  if (!leading) return 'not leading';
  return ready ? 'leading' : 'leading, not ready';
}
