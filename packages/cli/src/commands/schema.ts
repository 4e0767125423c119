import type { Context } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import type { SchemaOptions } from '../options.ts';

/** Prints what the owner of a store has to apply: nothing is asked, nothing is changed. */
export async function schema(options: SchemaOptions, { stdout }: Context): Promise<number> {
  const [store] = options.operands;
  refuseOthers(options, store === 'postgres' ? postgresOptions : kubernetesOptions, store ?? '');
  stdout.write(store === 'postgres' ? await sql(options) : await manifests(options));
  return exitCodes.ok;
}

const postgresOptions = ['table', 'fence', 'fenceColumn'] as const;
const kubernetesOptions = ['namespace', 'account', 'election'] as const;
const flags: Readonly<Record<string, string>> = {
  table: '--table',
  fence: '--fence',
  fenceColumn: '--fence-column',
  namespace: '--namespace',
  account: '--account',
  election: '--election',
};

async function sql({ table, fence, fenceColumn }: SchemaOptions): Promise<string> {
  const postgres = await import('incumbent/postgres');
  if (fence === undefined) {
    if (fenceColumn !== undefined) {
      throw new UsageError(
        '--fence-column names the column of a table that --fence names: give both, or neither',
      );
    }
    return postgres.schema(table === undefined ? {} : { table });
  }
  if (table !== undefined) {
    throw new UsageError(
      '--table is for the table of the elections, --fence for one that is to be protected: run it once ' +
        'for each',
    );
  }
  const column = fenceColumn === undefined ? {} : { column: fenceColumn };
  return postgres.fenceTrigger({ table: fence, ...column });
}

async function manifests({ namespace, account, election }: SchemaOptions): Promise<string> {
  const kubernetes = await import('incumbent/kubernetes');
  return kubernetes.schema({
    ...(namespace === undefined ? {} : { namespace }),
    ...(account === undefined ? {} : { serviceAccount: account }),
    ...(election === undefined ? {} : { elections: election }),
  });
}

function refuseOthers(
  options: SchemaOptions,
  known: readonly (keyof SchemaOptions)[],
  store: string,
): void {
  for (const [name, flag] of Object.entries(flags)) {
    const key = name as keyof SchemaOptions;
    if (options[key] === undefined || known.includes(key)) continue;
    const others = known.map((each) => flags[each]).join(', ');
    throw new UsageError(`${flag} means nothing for ${store}; there are ${others}`);
  }
}
