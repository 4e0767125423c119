import type { Paint, Tone } from './style.ts';

export interface Cell {
  /** `visible`, without colours. */
  readonly text: string;
  readonly tone?: Tone;
}

const gap = '  ';

/** Lines of a table, header first; columns aligned to the left. Host names are ASCII, so a character is a column. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
): string[] {
  const widths = titles.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => row[i]?.text.length ?? 0)),
  );
  const line = (cells: readonly Cell[]) =>
    cells
      .map(({ text, tone }, i) => {
        const padded = i === titles.length - 1 ? text : text.padEnd(widths[i] ?? 0);
        return tone === undefined ? padded : paint(tone, padded);
      })
      .join(gap)
      .trimEnd();
  return [line(titles.map((text) => ({ text, tone: 'faint' }))), ...rows.map(line)];
}

/** Lines of `name  value`, names aligned; a value of several lines goes on below itself. */
export function fields(
  entries: readonly (readonly [name: string, values: readonly Cell[]])[],
  paint: Paint,
): string[] {
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  return entries.flatMap(([name, values]) =>
    values.map(({ text, tone }, i) => {
      const label = paint('faint', (i === 0 ? name : '').padEnd(width));
      return `${label}${gap}${tone === undefined ? text : paint(tone, text)}`;
    }),
  );
}
