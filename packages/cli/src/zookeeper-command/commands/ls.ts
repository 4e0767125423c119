import { toJson, visible } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { statHeader, statRow, statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { withClient } from '../session.ts';
import { Unreadable } from '../unreadable.ts';
import { walk } from '../walk.ts';

export async function ls(args: Arguments, context: Context): Promise<number> {
  const root = pathOf(args);
  const recursive = args.has('recursive');
  const withStat = args.has('stat');
  const { json, signal } = context;
  return withClient(args, context, async (client) => {
    const unreadable = new Unreadable(context);
    const maxDepth = recursive ? Number.POSITIVE_INFINITY : 1;
    let isFirst = true;
    for await (const visit of walk(client, root, {
      maxDepth,
      stat: withStat,
      data: false,
      signal,
    })) {
      if (visit.depth === 0) continue;
      const { path, stat, error } = visit;
      const name = visible(recursive ? path : visit.name);
      if (error !== undefined) unreadable.note(error);
      if (json) {
        const known = withStat && stat !== undefined ? { stat: statToJson(stat) } : {};
        await context.print(`${toJson({ path, ...known, ...unreadable.asJson(error) })}\n`);
      } else if (withStat) {
        const row = stat === undefined ? `${unknownStat}${name}` : statRow(stat, name);
        await context.print(`${isFirst ? `${statHeader}\n` : ''}${row}\n`);
      } else {
        await context.print(`${name}\n`);
      }
      isFirst = false;
    }
    return unreadable.exitCode;
  });
}

const unknownStat = '?'.padStart(7).padEnd(statHeader.length - 'NAME'.length);
