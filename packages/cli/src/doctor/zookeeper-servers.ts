/** The report that each server gives of itself. */
import { formatDuration } from 'incumbent';
import type { ServerReport } from '../zookeeper/servers.ts';
import type { Finding } from './finding.ts';

/** Before it there were no transactions. */
const oldestVersion = '3.4.0';

export function serverFindings(
  servers: readonly ServerReport[],
  compatibility: '3.4' | '3.5' | undefined,
): Finding[] {
  return [
    ...servers.map((server) => serverFinding(server, compatibility)),
    quorumFinding(servers),
    ...tickFindings(servers),
  ];
}

function serverFinding(
  { server, mode, version, conf, problem }: ServerReport,
  compatibility: '3.4' | '3.5' | undefined,
): Finding {
  const data = { server, mode: mode ?? null, version: version ?? null, ...conf };
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'server',
    level,
    message: `${problem?.includes(server) ? '' : `${server} `}${message}`,
    data,
  });
  if (mode === undefined)
    return finding('warn', `serves nobody: ${problem ?? 'it answers nothing'}`);
  if (mode === 'unknown') {
    const words = 'its 4lw.commands.whitelist has none of srvr, mntr and stat';
    return finding('note', `does not say what it is: ${words}`);
  }
  const times =
    conf === undefined
      ? ''
      : `, tick ${formatDuration(conf.tickTimeMs)}, session timeouts from ` +
        `${formatDuration(conf.minSessionTimeoutMs)} to ${formatDuration(conf.maxSessionTimeoutMs)}`;
  const facts = `${mode}${version === undefined ? '' : `, version ${version}`}${times}`;
  if (version !== undefined && compareVersions(version, oldestVersion) < 0) {
    return finding('broken', `${facts}: older than ${oldestVersion}, which elections need`);
  }
  const wanted =
    version === undefined || compareVersions(version, '3.6.0') >= 0
      ? undefined
      : compareVersions(version, '3.5.0') >= 0
        ? '3.5'
        : '3.4';
  if (wanted !== undefined && compatibility !== '3.4' && compatibility !== wanted) {
    return finding('broken', `${facts}: add compatibility=${wanted} to the URL`);
  }
  if (mode === 'read-only') return finding('warn', `${facts}: it has lost its quorum`);
  return finding('ok', facts);
}

/** Whether there is one ensemble behind the names, and how many servers may fail before it does. */
function quorumFinding(servers: readonly ServerReport[]): Finding {
  const serving = servers.filter(
    ({ mode }) => mode !== undefined && mode !== 'read-only' && mode !== 'unknown',
  );
  const alone = serving.filter(({ mode }) => mode === 'standalone');
  const leaders = serving.filter(({ mode }) => mode === 'leader');
  const data = { named: servers.length, serving: serving.length };
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'quorum',
    level,
    message,
    data,
  });
  if (serving.length === 0 && servers.some(({ mode }) => mode === 'unknown')) {
    return finding('note', 'not known: no server says what it is');
  }
  if (serving.length === 0) return finding('broken', 'no server serves: there is no quorum');
  if (alone.length > 0 && serving.length > 1) {
    const names = alone.map(({ server }) => server).join(', ');
    return finding(
      'broken',
      `these are not one ensemble: ${names} ${alone.length === 1 ? 'is' : 'are'} standalone`,
    );
  }
  if (alone.length > 0) {
    return finding('note', 'a single server: while it is down, nobody can be elected');
  }
  if (leaders.length > 1) {
    const names = leaders.map(({ server }) => server).join(', ');
    return finding(
      'broken',
      `${names} all lead: these are not one ensemble, or it is just electing`,
    );
  }
  const many = `${serving.length} of ${servers.length} named servers serve`;
  return leaders.length === 1
    ? finding('ok', `${many}, one of them as leader`)
    : finding('ok', `${many}; the leader is not among those that were named`);
}

/** A session that moves is kept for as long as the next server says. */
function tickFindings(servers: readonly ServerReport[]): Finding[] {
  const known = servers.filter(({ conf }) => conf !== undefined);
  const serving = servers.filter(({ mode }) => mode !== undefined);
  if (serving.length > 0 && known.length === 0) {
    return [
      {
        check: 'tick',
        level: 'note',
        message: 'not known: the 4lw.commands.whitelist of the servers does not have conf',
      },
    ];
  }
  const different = (['tickTimeMs', 'minSessionTimeoutMs', 'maxSessionTimeoutMs'] as const).filter(
    (name) => new Set(known.map(({ conf }) => conf?.[name])).size > 1,
  );
  return different.map((name) => ({
    check: 'tick',
    level: 'warn',
    message:
      `${name.replace(/Ms$/, '')} is not the same on all servers: ` +
      known.map(({ server, conf }) => `${server} ${formatDuration(conf?.[name] ?? 0)}`).join(', '),
  }));
}

/** The longest tick that a server has told. */
export function longestTickMs(servers: readonly ServerReport[]): number | undefined {
  const ticks = servers.flatMap(({ conf }) => (conf === undefined ? [] : [conf.tickTimeMs]));
  return ticks.length === 0 ? undefined : Math.max(...ticks);
}

/** -1, 0 or 1. Only the numbers in front count: "3.5.0-alpha" is 3.5.0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)];
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return Math.sign(difference);
  }
  return 0;
}
