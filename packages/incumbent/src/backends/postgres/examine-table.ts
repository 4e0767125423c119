import type { Driver } from './driver.ts';
import type { Table } from './options.ts';
import { columns } from './schema.ts';

export interface TableState {
  readonly exists: boolean;
  /** The fault of the table. Undefined when it has none, or is missing. */
  readonly problem: string | undefined;
}

/** Compares the table with the one that `schema` makes. Further columns do no harm. */
export async function examineTable(
  driver: Driver,
  table: Table,
  signal: AbortSignal | undefined,
): Promise<TableState> {
  const rows = await driver.query(
    `select a.attname::text, format_type(a.atttypid, null)::text
      from pg_attribute a
      where a.attrelid = to_regclass($1::text) and a.attnum > 0 and not a.attisdropped`,
    [table.sql],
    signal,
  );
  if (rows.length === 0) return { exists: false, problem: undefined };
  const types = new Map(rows.map(([name, type]) => [name, type]));
  for (const [name, type] of Object.entries(columns)) {
    const found = types.get(name);
    if (found === undefined) return { exists: true, problem: `it has no column "${name}"` };
    if (found !== type) {
      return { exists: true, problem: `its column "${name}" is of type ${found}, not ${type}` };
    }
  }
  const keys = await driver.query(
    `select array_to_string(array(
        select a.attname from pg_attribute a
        where a.attrelid = i.indrelid and a.attnum = any (i.indkey)
        order by a.attname
      ), ',')
      from pg_index i
      where i.indrelid = to_regclass($1::text)
        and i.indisunique and i.indimmediate and i.indpred is null and i.indexprs is null`,
    [table.sql],
    signal,
  );
  for (const key of ['name', 'name,token']) {
    if (!keys.some(([found]) => found === key)) {
      return { exists: true, problem: `it has no unique key (${key.replace(',', ', ')})` };
    }
  }
  return { exists: true, problem: undefined };
}
