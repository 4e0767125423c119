import type { ZooKeeper } from '@incumbent/zookeeper';
import { NoNodeError } from '@incumbent/zookeeper';
import { Progress } from '../../terminal/progress.ts';
import { toJson, visible } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import { pathOf } from '../path.ts';
import { withClient } from '../session.ts';

export async function rm(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args);
  const version = args.nodeVersion();
  const recursive = args.has('recursive');
  const maxNodes = args.wholeNumber('max-nodes', 1, 2 ** 31 - 1);
  if (path === '/' || path === '/zookeeper') {
    throw new UsageError(`${path} is not deleted: name the nodes below it`);
  }
  if (recursive && args.has('version')) {
    throw new UsageError('--version is for one node: it does not go with -r');
  }
  if (!recursive && maxNodes !== undefined) throw new UsageError('--max-nodes goes with -r');
  return withClient(args, context, async (client) => {
    const { signal } = context;
    const deleted = recursive ? await deleteAll(client, path, maxNodes, context) : 1;
    if (!recursive) await client.delete(path, { version, signal });
    if (deleted === 0) throw new NoNodeError({ path });
    const more = deleted > 1 ? ` and ${deleted - 1} below it` : '';
    await context.print(
      context.json ? `${toJson({ path, deleted })}\n` : `deleted ${visible(path)}${more}\n`,
    );
    return exitCodes.ok;
  });
}

async function deleteAll(
  client: ZooKeeper,
  path: string,
  maxNodes: number | undefined,
  context: Context,
): Promise<number> {
  const progress = new Progress(context.stderr);
  try {
    const { deleted } = await client.deleteRecursive(path, {
      maxNodes,
      signal: context.signal,
      onProgress: ({ deleted, found }) => {
        if (!context.json) progress.update(`${deleted} of ${found} nodes deleted`);
      },
    });
    return deleted;
  } finally {
    progress.end();
  }
}
