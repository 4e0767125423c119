import type { ZooKeeper } from '@incumbent/zookeeper';
import { ZooKeeperError } from '@incumbent/zookeeper';
import type { ZooKeeperOptions } from 'incumbent/zookeeper';
import { zookeeper } from 'incumbent/zookeeper';
import { electionNode } from '../zookeeper/location.ts';
import { nodeAcl } from '../zookeeper/node-acl.ts';
import type { OpenZooKeeper } from '../zookeeper/open.ts';
import type { Finding } from './finding.ts';
import type { Scratch } from './scratch.ts';
import { aclFinding, clockFinding } from './zookeeper-session.ts';

/**
 * Its nodes have our own layout, even where the store has another one. The measurement is about the
 * servers, and the other participants of a layout would take part.
 */
export async function scratchOnZooKeeper(
  name: string,
  { client, location }: OpenZooKeeper,
  signal: AbortSignal,
): Promise<Scratch> {
  const given = location.parameters.options;
  const root = parentOf(electionNode(given, name));
  const options: ZooKeeperOptions = {
    root,
    create: true,
    ...(given.acl === undefined ? {} : { acl: given.acl }),
  };
  const node = electionNode(options, name);
  const missing = await missingAbove(client, node, signal);
  return {
    name,
    backend: zookeeper(client, options),
    async lookFirst(election, until) {
      const findings: Finding[] = [];
      if (missing.includes(root)) {
        findings.push({
          check: 'store',
          level: 'warn',
          message: `the node ${root} did not exist: nobody has used it, or another one is meant`,
          data: { node: root },
        });
      }
      const paths = election === undefined ? [root] : [electionNode(given, election), root];
      for (const path of paths) {
        if (!(await isThere(client, path, until))) continue;
        findings.push(await aclFinding(client, path, until));
        break;
      }
      return findings;
    },
    async look(_election, until) {
      const probe = `${node}/clock`;
      await client.create(probe, null, { signal: until, acl: nodeAcl(given) });
      const finding = await clockFinding(client, probe, until);
      await client.delete(probe, { signal: until });
      return [finding];
    },
    async remove(until) {
      await client.deleteRecursive(node, { signal: until });
      for (const path of missing) await removeEmpty(client, path, until);
    },
  };
}

/** The missing nodes above a node, the lowest first. */
async function missingAbove(
  client: ZooKeeper,
  node: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let path = parentOf(node); path !== '/'; path = parentOf(path)) {
    if (await isThere(client, path, signal)) break;
    missing.push(path);
  }
  return missing;
}

async function isThere(client: ZooKeeper, path: string, signal: AbortSignal): Promise<boolean> {
  return (await client.stat(path, { signal })).stat !== null;
}

async function removeEmpty(client: ZooKeeper, path: string, signal: AbortSignal): Promise<void> {
  try {
    await client.delete(path, { signal });
  } catch (error) {
    // Another client has begun to use it.
    if (!(error instanceof ZooKeeperError && error.code === 'NOT_EMPTY')) throw error;
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}
