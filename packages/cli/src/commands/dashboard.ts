import { readFile, stat } from 'node:fs/promises';
import { BlockList, isIPv6 } from 'node:net';
import { parseDuration } from 'incumbent';
import type { Context } from '../context.ts';
import type { PageStore } from '../dashboard/page-store.ts';
import { pageStores } from '../dashboard/page-store.ts';
import { openPast } from '../dashboard/past.ts';
import { storeIndexOf } from '../dashboard/query.ts';
import type { ShownGrid, ShownLease } from '../dashboard/shown.ts';
import { readSteering, requireShown, steer } from '../dashboard/steer.ts';
import { exitCodes, UsageError } from '../failure.ts';
import type { DashboardOptions, ListenAddress } from '../options.ts';
import { toJson } from '../terminal/text.ts';
import { LiveValues } from '../web/live-values.ts';
import type { PageOptions } from '../web/page-server.ts';
import { ActionError, servePage } from '../web/page-server.ts';

const defaultAddress: ListenAddress = { host: '127.0.0.1', port: 7070 };

/** Serves the page until a signal ends it. */
export async function dashboard(options: DashboardOptions, context: Context): Promise<number> {
  const { signal, stdout, stderr } = context;
  const { listen: address = defaultAddress, allowSteering = false, timeout } = options;
  const timeoutMs = parseDuration('--timeout', timeout);
  const security = await readSecurity(options, address);
  const live = new LiveValues();
  const stores = await pageStores(options.store, live, context);
  const past =
    options.history === undefined ? undefined : openPast(options.history, stores, context);
  live.set('page', { steering: allowSteering, history: past !== undefined });
  const server = await servePage({
    ...{ address, page: 'dashboard', live, ...security },
    read: {
      '/lease': (query) => shownLease(query, stores),
      '/shards': (query) => shownGrid(query, stores),
      ...(past !== undefined && { '/history': past.answer }),
    },
    ...(allowSteering && {
      act: async (action: unknown) => {
        const steering = readSteering(action, stores.length);
        requireShown(steering, live);
        return { said: await steer(steering, stores, timeout, context) };
      },
    }),
  });
  const { url } = server;
  stdout.write(options.json ? `${toJson({ event: 'serving', url })}\n` : `open ${url}\n`);
  try {
    await Promise.all(
      stores.map((store) =>
        store.run(context, timeoutMs, (why) => {
          stderr.write(`${store.url}: ${why}; the page shows it as soon as it answers\n`);
        }),
      ),
    );
    signal.throwIfAborted();
    return exitCodes.ok;
  } finally {
    server.close();
    past?.close();
  }
}

function shownLease(query: URLSearchParams, stores: readonly PageStore[]): ShownLease {
  const store = stores[storeIndexOf(query)];
  return { leftMs: store?.leaseLeftMs(query.get('election') ?? '') ?? null };
}

/** @throws ActionError */
function shownGrid(query: URLSearchParams, stores: readonly PageStore[]): ShownGrid {
  const store = stores[storeIndexOf(query)];
  if (store === undefined) throw new ActionError(`there is no store ${query.get('store')}`);
  return store.grid(query.get('name') ?? '');
}

type Security = Pick<PageOptions, 'credentials' | 'tls' | 'names'>;

/** @throws UsageError for files that cannot be used, and for a page that everybody could open */
async function readSecurity(options: DashboardOptions, { host }: ListenAddress): Promise<Security> {
  const { authFile, cert, key, hostName } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError('--cert and --key belong together: give both');
  }
  const credentials = authFile === undefined ? undefined : await readCredentials(authFile);
  if (credentials === undefined && !isLoopback(host)) {
    throw new UsageError(
      `--listen ${host}: whoever reaches this machine could see all elections; give --auth-file, or ` +
        'listen on 127.0.0.1',
    );
  }
  return {
    ...(credentials !== undefined && { credentials }),
    ...(hostName !== undefined && { names: hostName }),
    ...(cert !== undefined &&
      key !== undefined && {
        tls: { cert: await readPem('--cert', cert), key: await readPem('--key', key) },
      }),
  };
}

async function readCredentials(file: string): Promise<string> {
  const text = (await readOption('--auth-file', file)).toString('utf8').trim();
  if (!/^[^:\s]+:\S.*$/.test(text)) {
    throw new UsageError(`--auth-file ${file}: it must hold one line, USER:PASSWORD`);
  }
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) {
    throw new UsageError(
      `--auth-file ${file}: others may read it; \`chmod 600 ${file}\` ends that`,
    );
  }
  return text;
}

async function readPem(option: string, file: string): Promise<Buffer> {
  const bytes = await readOption(option, file);
  if (!bytes.includes('-----BEGIN ')) {
    throw new UsageError(`${option} ${file}: it must be a file in PEM format`);
  }
  return bytes;
}

async function readOption(option: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new UsageError(`${option}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  try {
    return loopback.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
  } catch {
    // A name, or every address.
    return false;
  }
}
