import type { Timing } from 'incumbent';
import type { OpenZooKeeper } from '../zookeeper/open.ts';
import type { Finding } from './finding.ts';
import { serverFindings } from './zookeeper-servers.ts';
import { sessionFindings, takeoverFinding } from './zookeeper-session.ts';

/** Servers that answer must not wait for servers that do not. */
const longestAskMs = 2_000;

/** Facts about the servers and about our session that need nothing to be created. */
export async function examineZooKeeper(
  zookeeper: OpenZooKeeper,
  timing: Timing,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { client, location, askedTimeoutMs } = zookeeper;
  const { compatibility, options } = location.parameters;
  const askMs = Math.min(longestAskMs, timeoutMs / 2);
  const servers = await zookeeper.askServers(askMs, signal);
  const negotiatedMs = client.session?.timeoutMs ?? askedTimeoutMs;
  return [
    ...serverFindings(servers, compatibility),
    ...sessionFindings(zookeeper, negotiatedMs, servers),
    takeoverFinding(timing, options.predecessorWait !== 'off', servers),
  ];
}
