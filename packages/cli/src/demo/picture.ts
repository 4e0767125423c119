import type { Paint, Tone } from '../terminal/style.ts';
import { clip, columnsOf, padEnd, padStart } from '../terminal/text.ts';
import type { Lane, Scene } from './scene.ts';
import type { Mark, Note } from './snapshot.ts';

interface Glyph {
  readonly text: string;
  readonly tone?: Tone;
}

const working: Glyph = { text: '█', tone: 'good' };
const conditions: Readonly<Record<Lane['conditions'][number]['condition'], Glyph>> = {
  starts: { text: ' ' },
  waits: { text: '·', tone: 'faint' },
  frozen: { text: '░', tone: 'cold' },
  gone: { text: ' ' },
};
const marks: Readonly<Record<Mark, Glyph>> = {
  killed: { text: '✗', tone: 'bad' },
  frozen: { text: '❄', tone: 'cold' },
  thawed: { text: '↑', tone: 'cold' },
  resigned: { text: '↓', tone: 'warn' },
};

/** Narrower than this there is no picture. */
export const leastColumns = 64;
const mostColumns = 80;
/** Lines of `picture`. The place for notes is there from the beginning. */
export const pictureRows = 20;
const noteRows = 6;

const firstCellMs = 240;
/** Shown a little late, so that the log up to there has been read. */
const delayMs = 60;
const margin = '  ';

/** The lines to show now: a lane for each candidate, growing with time, and the notes. */
export function picture(scene: Scene, columns: number, paint: Paint): string[] {
  const width = Math.min(columns, mostColumns);
  const nowMs = Math.max(0, scene.nowMs - delayMs);
  const idColumns = Math.max(...scene.lanes.map(({ id }) => columnsOf(id)));
  const indent = margin.length + idColumns + margin.length;
  const cells = width - indent - margin.length;
  let cellMs = firstCellMs;
  while (nowMs >= cells * cellMs) cellMs *= 2;

  const title = 'incumbent demo';
  const about = '  five candidates, one seat, lease 3 s';
  const time = padStart(
    inSeconds(scene.nowMs, 1),
    width - 2 * margin.length - title.length - about.length,
  );
  const lines = [
    '',
    `${margin}${paint('strong', title)}${paint('faint', about)}${time}`,
    '',
    ...scene.lanes.map(
      (lane) => `${margin}${padEnd(lane.id, idColumns)}${margin}${row(lane, nowMs, cellMs, paint)}`,
    ),
    ' '.repeat(indent) + paint('faint', axis(nowMs, cellMs, cells)),
    '',
    margin + legend(width - 2 * margin.length, paint),
    '',
    ...scene.notes.slice(-noteRows).map((note) => margin + noteLine(note, width - 4, paint)),
  ];
  while (lines.length < pictureRows - 2) lines.push('');
  for (const { good, text } of scene.verdict) {
    lines.push(margin + paint(good ? 'good' : 'bad', clip(text, columns - 4)));
  }
  return lines;
}

/** Each cell shows what was in its middle, so that a cell is never two candidates' at once. */
function row(lane: Lane, nowMs: number, cellMs: number, paint: Paint): string {
  const glyphs: Glyph[] = [];
  for (let fromMs = 0; fromMs + cellMs / 2 <= nowMs; fromMs += cellMs) {
    const mark = lane.marks.findLast(({ atMs }) => atMs >= fromMs && atMs < fromMs + cellMs);
    glyphs.push(mark ? marks[mark.mark] : glyphAt(lane, fromMs + cellMs / 2));
  }
  return paintAll(glyphs, paint);
}

function glyphAt(lane: Lane, atMs: number): Glyph {
  if (lane.work.some(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs)) return working;
  const { condition } = lane.conditions.findLast(({ sinceMs }) => sinceMs <= atMs) ?? {
    condition: 'gone',
  };
  return conditions[condition];
}

/** One escape sequence for each run of a tone. */
function paintAll(glyphs: readonly Glyph[], paint: Paint): string {
  let line = '';
  for (let i = 0; i < glyphs.length; ) {
    const tone = glyphs[i]?.tone;
    let text = '';
    while (i < glyphs.length && glyphs[i]?.tone === tone) text += glyphs[i++]?.text;
    line += tone === undefined ? text : paint(tone, text);
  }
  return line;
}

function axis(nowMs: number, cellMs: number, cells: number): string {
  let line = '';
  for (let atMs = 0; atMs <= nowMs; atMs += 5_000) {
    const label = atMs === 0 ? '0' : `${atMs / 1000} s`;
    const column = Math.round(atMs / cellMs);
    if (column + label.length <= cells) line = padEnd(line, column) + label;
  }
  return line;
}

/** As much of it as fits. */
function legend(width: number, paint: Paint): string {
  const entries: readonly (readonly [readonly Glyph[], string])[] = [
    [[working], 'its program works'],
    [[conditions.waits], 'waits'],
    [[marks.killed], 'killed'],
    [[marks.frozen, conditions.frozen], 'frozen'],
    [[marks.thawed], 'thawed'],
    [[marks.resigned], 'resigns'],
  ];
  const gap = '   ';
  let columns = -gap.length;
  return entries
    .filter(([glyphs, word]) => {
      columns += gap.length + glyphs.length + 1 + word.length;
      return columns <= width;
    })
    .map(([glyphs, word]) => `${paintAll(glyphs, paint)} ${paint('faint', word)}`)
    .join(gap);
}

function noteLine({ atMs, mark, what, outcome }: Note, width: number, paint: Paint): string {
  const time = padStart(inSeconds(atMs, 1), 6);
  const sign = mark === undefined ? ' ' : paintAll([marks[mark]], paint);
  const text = outcome === undefined ? what : `${padEnd(what, 24)} → ${outcome}`;
  return `${paint('faint', time)}  ${sign} ${clip(text, width - 10)}`;
}

export function inSeconds(ms: number, digits: number): string {
  return `${(ms / 1000).toFixed(digits)} s`;
}
