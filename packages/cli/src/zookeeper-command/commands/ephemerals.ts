import { toJson, visible } from '../../terminal/text.ts';
import { localTime } from '../../terminal/time.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { hex, statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { withClient } from '../session.ts';
import { Unreadable } from '../unreadable.ts';
import { walk } from '../walk.ts';

export async function ephemerals(args: Arguments, context: Context): Promise<number> {
  const root = pathOf(args);
  const { json, signal } = context;
  const maxDepth = Number.POSITIVE_INFINITY;
  return withClient(args, context, async (client) => {
    const unreadable = new Unreadable(context);
    let isFirst = true;
    for await (const visit of walk(client, root, { maxDepth, stat: true, data: false, signal })) {
      const { path, stat, error } = visit;
      if (error !== undefined) unreadable.note(error);
      if (stat === undefined || stat.ephemeralOwner === 0n) continue;
      const owner = hex(stat.ephemeralOwner);
      const line = json
        ? toJson({ path, owner, stat: statToJson(stat) })
        : `${owner.padEnd(18)}  ${localTime(stat.ctime)}  ${visible(path)}`;
      await context.print(`${isFirst && !json ? header : ''}${line}\n`);
      isFirst = false;
    }
    if (isFirst) context.note(`there is no ephemeral node at or below ${root}`);
    return unreadable.exitCode;
  });
}

const header = `${'SESSION'.padEnd(18)}  ${'CREATED'.padEnd(19)}  PATH\n`;
