import type { Paint } from '../../terminal/style.ts';
import { painter } from '../../terminal/style.ts';
import { clip, toJson, visible } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { dataToJson, textOf } from '../output/data.ts';
import { statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { withClient } from '../session.ts';
import { Unreadable } from '../unreadable.ts';
import type { Visit } from '../walk.ts';
import { walk } from '../walk.ts';

/** Characters of the data that are shown. */
const maxDataCharacters = 60;

export async function tree(args: Arguments, context: Context): Promise<number> {
  const root = pathOf(args);
  const maxDepth = args.wholeNumber('depth', 0, 2 ** 31 - 1) ?? Number.POSITIVE_INFINITY;
  const data = args.has('data');
  const { json, signal } = context;
  const paint = painter(context.stdout, context.env);
  return withClient(args, context, async (client) => {
    const unreadable = new Unreadable(context);
    for await (const visit of walk(client, root, { maxDepth, stat: true, data, signal })) {
      const { path, depth, stat, error } = visit;
      if (error !== undefined) unreadable.note(error);
      const line = json
        ? toJson({
            ...{ path, depth },
            ...(stat === undefined ? {} : { stat: statToJson(stat) }),
            ...(visit.data === undefined ? {} : dataToJson(visit.data)),
            ...unreadable.asJson(error),
          })
        : treeLine(visit, depth >= maxDepth, paint);
      await context.print(`${line}\n`);
    }
    return unreadable.exitCode;
  });
}

/** @param isCut its children are not shown */
function treeLine(visit: Visit, isCut: boolean, paint: Paint): string {
  const { path, name, lasts, stat, data, error } = visit;
  const above = lasts.slice(0, -1).map((last) => (last ? '    ' : '│   '));
  const branch = lasts.length === 0 ? '' : lasts.at(-1) ? '└── ' : '├── ';
  const marks: string[] = [];
  if (stat !== undefined && stat.ephemeralOwner !== 0n) marks.push('ephemeral');
  if (stat !== undefined && isCut && stat.numChildren > 0) {
    marks.push(`${stat.numChildren} ${stat.numChildren === 1 ? 'child' : 'children'}`);
  }
  if (error !== undefined) marks.push('may not be read');
  return [
    paint('faint', above.join('') + branch),
    visible(lasts.length === 0 ? path : name),
    data === undefined ? '' : `  ${preview(data)}`,
    marks.length === 0 ? '' : paint('faint', `  (${marks.join(', ')})`),
  ].join('');
}

function preview(data: Uint8Array | null): string {
  if (data === null) return '= null';
  const text = textOf(data);
  if (text === undefined) return `= ${data.length} bytes`;
  return `= "${clip(visible(text), maxDataCharacters)}"`;
}
