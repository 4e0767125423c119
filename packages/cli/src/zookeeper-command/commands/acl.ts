import { toJson, visible } from '../../terminal/text.ts';
import { formatAcl, parseAcl } from '../acl-spec.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import { statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { withClient } from '../session.ts';

export async function acl(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args);
  const version = args.nodeVersion();
  const more = args.operands.slice(1);
  const isChange = args.has('set');
  if (!isChange && more.length > 0) {
    throw new UsageError('an ACL is changed with --set: `acl PATH --set ACL ...`');
  }
  if (!isChange && args.has('version')) throw new UsageError('--version goes with --set');
  const list = [...args.all('set'), ...more].map(parseAcl);
  const { signal, json } = context;
  return withClient(args, context, async (client) => {
    if (isChange) {
      const { stat } = await client.setAcl(path, list, { version, signal });
      const text = json
        ? toJson({ path, stat: statToJson(stat) })
        : `the ACL of ${visible(path)} has version ${stat.aversion} now`;
      await context.print(`${text}\n`);
      return exitCodes.ok;
    }
    const { acl, stat } = await client.getAcl(path, { signal });
    const entries = acl.map((entry) => ({ ...entry, spec: formatAcl(entry) }));
    const text = json
      ? toJson({ path, acl: entries, stat: statToJson(stat) })
      : entries.map(({ spec }) => visible(spec)).join('\n');
    await context.print(`${text}\n`);
    return exitCodes.ok;
  });
}
