/** The session that the elections live on, the clock behind it, and the rights on the nodes. */
import type { Acl, ClientIdentity, ZooKeeper } from '@incumbent/zookeeper';
import { permissions, ZooKeeperError } from '@incumbent/zookeeper';
import type { Timing } from 'incumbent';
import { formatDuration, parseDuration } from 'incumbent';
import type { OpenZooKeeper } from '../zookeeper/open.ts';
import type { ServerReport } from '../zookeeper/servers.ts';
import type { Finding } from './finding.ts';
import { longestTickMs } from './zookeeper-servers.ts';

const show = formatDuration;
/** Beyond it, times that people write and read are of little use. */
const farMs = 5_000;
/** The servers' tick that the library assumes, unless it is told otherwise. */
const defaultTickMs = 2_000;

export function sessionFindings(
  {
    askedTimeoutMs,
    askedBy,
    location,
  }: Pick<OpenZooKeeper, 'askedTimeoutMs' | 'askedBy' | 'location'>,
  negotiatedMs: number,
  servers: readonly ServerReport[],
): Finding[] {
  const { predecessorWait, layout, onDisconnect, tickTime } = location.parameters.options;
  const data = { askedMs: askedTimeoutMs, negotiatedMs };
  const limits = servers.find(({ conf }) => conf !== undefined)?.conf;
  const allowed =
    limits === undefined
      ? 'servers allow 2 to 20 ticks unless they are told otherwise'
      : `the servers allow ${show(limits.minSessionTimeoutMs)} to ${show(limits.maxSessionTimeoutMs)}`;
  const findings: Finding[] = [
    negotiatedMs === askedTimeoutMs
      ? {
          check: 'session',
          level: 'ok',
          message: `timeout ${show(negotiatedMs)}, as asked for`,
          data,
        }
      : {
          check: 'session',
          level: 'warn',
          message:
            `asked for a timeout of ${show(askedTimeoutMs)} (${askedBy}) and got ` +
            `${show(negotiatedMs)}, which is the lease: ${allowed}`,
          data,
        },
  ];
  if (predecessorWait === 'off') {
    findings.push({
      check: 'predecessor',
      level: 'warn',
      message:
        'predecessor-wait=off: after a leader that ended unclean two may believe at once, and ' +
        'only tokens keep them apart',
    });
  }
  const isMixed = layout !== undefined && layout !== 'incumbent';
  if (isMixed) {
    findings.push({
      check: 'layout',
      level: 'note',
      message: `${layout}: members that are not ours wait for nobody's belief, see docs/reference/cli.md`,
    });
  }
  const tickMs = longestTickMs(servers);
  const saidMs = tickTime === undefined ? defaultTickMs : parseDuration('tick-time', tickTime);
  if (isMixed && tickMs !== undefined && tickMs > saidMs) {
    findings.push({
      check: 'tick-time',
      level: 'broken',
      message:
        `the servers' tick is ${show(tickMs)}, longer than the ${show(saidMs)} that bound what is ` +
        `believed in the layout ${layout}: add tick-time=${show(tickMs)} to the URL`,
      data: { tickMs, saidMs },
    });
  }
  if (onDisconnect === 'step-down') {
    findings.push({
      check: 'on-disconnect',
      level: 'note',
      message: 'step-down: every lost connection ends the term',
    });
  }
  return findings;
}

/** How long a takeover takes after a crash. */
export function takeoverFinding(
  { leaseMs, beliefMs, clockDrift }: Timing,
  waits: boolean,
  servers: readonly ServerReport[],
): Finding {
  const tickMs = longestTickMs(servers);
  const waitMs = waits ? (beliefMs * (1 + clockDrift)) / (1 - clockDrift) : 0;
  const ticks = tickMs === undefined ? '2 ticks' : show(2 * tickMs);
  const sum =
    tickMs === undefined
      ? `${show(leaseMs + waitMs)} and 2 ticks`
      : show(leaseMs + waitMs + 2 * tickMs);
  return {
    check: 'takeover',
    level: 'note',
    message:
      `after a crash somebody leads within ${sum}: session ${show(leaseMs)}, expiry ${ticks}` +
      (waits ? `, belief of the last leader ${show(waitMs)}` : ''),
    data: { leaseMs, waitMs, tickMs: tickMs ?? null },
  };
}

/**
 * Compares our wall clock with that of the servers' leader, which dates every change.
 * @param path a node of ours, which is written
 */
export async function clockFinding(
  client: ZooKeeper,
  path: string,
  signal: AbortSignal,
): Promise<Finding> {
  let best: { readonly offMs: number; readonly doubtMs: number } | undefined;
  for (let i = 0; i < 5; i += 1) {
    const before = Date.now();
    const { stat } = await client.set(path, null, { signal });
    const after = Date.now();
    const doubtMs = (after - before) / 2 + 1;
    if (best === undefined || doubtMs < best.doubtMs) {
      best = { offMs: Number(stat.mtime) - (before + after) / 2, doubtMs };
    }
  }
  const { offMs = 0, doubtMs = 0 } = best ?? {};
  const isFar = Math.abs(offMs) - doubtMs > farMs;
  return {
    check: 'clock',
    level: isFar ? 'warn' : 'note',
    message:
      `the clock of the servers is ${show(Math.abs(offMs))} ${offMs < 0 ? 'behind' : 'ahead of'} ` +
      `ours (± ${show(doubtMs)})${isFar ? ': set one of them right' : ''}; no election depends on it, ` +
      'only the times that people read and write',
    data: { aheadMs: offMs, doubtMs },
  };
}

/** The rights on a node: who has them, and whether ours are enough. */
export async function aclFinding(
  client: ZooKeeper,
  path: string,
  signal: AbortSignal,
): Promise<Finding> {
  try {
    const { acl } = await client.getAcl(path, { signal });
    // Servers before 3.7 do not know the question.
    const us = await client.whoAmI({ signal }).then(
      ({ identities }) => identities,
      () => undefined,
    );
    return judgeAcl(path, acl, us);
  } catch (error) {
    if (!(error instanceof ZooKeeperError) || error.code !== 'NO_AUTH') throw error;
    return {
      check: 'acl',
      level: 'broken',
      message: `we may not even read who may do what with ${path}: look at our credentials`,
      data: { path },
    };
  }
}

const needed = [
  ['read', permissions.read],
  ['write', permissions.write],
  ['create', permissions.create],
  ['delete', permissions.delete],
] as const;

/** @param us undefined: not known */
export function judgeAcl(
  path: string,
  entries: readonly Acl[],
  us: readonly ClientIdentity[] | undefined,
): Finding {
  const text = entries.map(entryWords).join(', ');
  const data = { path, acl: entries.map(entryWords) };
  const world = permsOf(entries.filter(({ scheme }) => scheme === 'world'));
  if (world === permissions.all) {
    const message = `everybody may do everything with ${path} (${text})`;
    return { check: 'acl', level: 'note', message, data };
  }
  const message = `${path} has ${text}`;
  if (us === undefined) return { check: 'acl', level: 'note', message, data };
  const ours = permsOf(entries.filter((entry) => us.some((identity) => isAbout(entry, identity))));
  const missing = needed.filter(([, bit]) => ((world | ours) & bit) === 0).map(([name]) => name);
  if (missing.length === 0) return { check: 'acl', level: 'ok', message, data };
  // An address may be meant by a network, and servers have schemes of their own.
  const isSure = entries.every(({ scheme }) =>
    ['world', 'digest', 'sasl', 'x509'].includes(scheme),
  );
  return {
    check: 'acl',
    level: isSure ? 'broken' : 'warn',
    message: `${message}: as ${identityWords(us)} we may not ${missing.join(', ')}`,
    data: { ...data, missing },
  };
}

function permsOf(entries: readonly Acl[]): number {
  return entries.reduce((all, { perms }) => all | perms, 0);
}

function isAbout({ scheme, id }: Acl, identity: ClientIdentity): boolean {
  if (scheme !== identity.scheme) return false;
  // Of a digest only the user is told.
  return scheme === 'digest' ? id.split(':')[0] === identity.user : id === identity.user;
}

function identityWords(us: readonly ClientIdentity[]): string {
  return us.length === 0 ? 'nobody' : us.map(({ scheme, user }) => `${scheme}:${user}`).join(', ');
}

/** Without the hash of a password. */
function entryWords({ scheme, id, perms }: Acl): string {
  const letters = (['read', 'write', 'create', 'delete', 'admin'] as const)
    .filter((name) => (perms & permissions[name]) !== 0)
    .map((name) => (name === 'delete' ? 'd' : name[0]))
    .join('');
  return `${scheme}:${scheme === 'digest' ? id.split(':')[0] : id}:${letters}`;
}
