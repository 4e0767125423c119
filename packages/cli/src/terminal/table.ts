import type { Paint, Tone } from './style.ts';
import { clip, columnsOf, padEnd, padStart } from './text.ts';

export interface Column {
  readonly title: string;
  readonly align?: 'right';
}

export interface Cell {
  /** `visible`, without colours. */
  readonly text: string;
  readonly tone?: Tone;
}

/**
 * Lines of a table, header first.
 * @param width columns of the terminal: the last column is cut to fit. Undefined: it is not cut
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
  width: number | undefined,
): string[] {
  const widths = columns.map(({ title }, i) =>
    Math.max(columnsOf(title), ...rows.map((row) => columnsOf(row[i]?.text ?? ''))),
  );
  const lastStart = widths.slice(0, -1).reduce((sum, each) => sum + each + gap.length, 0);
  const lastWidth = width === undefined ? Infinity : Math.max(8, width - lastStart);
  const line = (cells: readonly Cell[]): string =>
    columns
      .map(({ align }, i) => {
        const { text = '', tone } = cells[i] ?? {};
        const isLast = i === columns.length - 1;
        const shown = isLast ? clip(text, lastWidth) : text;
        const padded =
          align === 'right'
            ? padStart(shown, widths[i] ?? 0)
            : isLast
              ? shown
              : padEnd(shown, widths[i] ?? 0);
        return tone === undefined ? padded : paint(tone, padded);
      })
      .join(gap)
      .trimEnd();
  return [line(columns.map(({ title }) => ({ text: title, tone: 'faint' }))), ...rows.map(line)];
}

const gap = '  ';

/** Lines of `name  value`, with the values aligned. Further values of a name stand below the first. */
export function fields(
  entries: readonly (readonly [name: string, values: readonly Cell[]])[],
  paint: Paint,
): string[] {
  const width = Math.max(0, ...entries.map(([name]) => columnsOf(name)));
  return entries.flatMap(([name, values]) =>
    values.map(({ text, tone }, i) => {
      const label = paint('faint', padEnd(i === 0 ? name : '', width));
      return `${label}${gap}${tone === undefined ? text : paint(tone, text)}`;
    }),
  );
}

/** Lines of columns of equal width, aligned to the left, without a header or colours. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, columnsOf(cell));
    });
  }
  return rows.map((row) =>
    row
      .map((cell, i) => padEnd(cell, widths[i] ?? 0))
      .join(gap)
      .trimEnd(),
  );
}
