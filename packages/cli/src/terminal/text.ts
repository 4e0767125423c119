/** Text that came from elsewhere (records, errors, files), made harmless for a terminal. */

/**
 * Control characters, and format characters such as those that turn the direction of writing. Also
 * code points without a meaning of their own (private use, halves of surrogate pairs), and line
 * separators. The two joiners (U+200C, U+200D) stay: Persian, Hindi and emoji need them.
 */
const unprintable = /[^\P{C}\u200c\u200d]|[\p{Zl}\p{Zp}]/gu;

const shortEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** `text` on one line. Characters that could move the cursor or change colours become escapes. */
export function visible(text: string): string {
  return text.replace(unprintable, escapeCharacter);
}

/** Like `visible`, but line breaks stay. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

function escapeCharacter(character: string): string {
  const short = shortEscapes[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return code <= 0xff ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`;
}

/** JSON on one line: bigints as strings, and no character that a terminal would obey. */
export function toJson(value: unknown): string {
  const json = JSON.stringify(value, (_key, entry: unknown) =>
    typeof entry === 'bigint' ? entry.toString() : entry,
  );
  // These can only stand inside strings, where JSON may write them as escapes.
  return json.replace(unprintable, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

// East Asian Wide and Fullwidth, and the characters that terminals show as emoji.
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;

let segmenter: Intl.Segmenter | undefined;

/** Made at the first use: it takes 15 ms, and `run` loads this file but rarely needs it. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** How many columns of a terminal `text` takes; `text` is `visible`. */
export function columnsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemesOf(text)) columns += columnsOfGrapheme(segment);
  return columns;
}

function columnsOfGrapheme(grapheme: string): number {
  if (/^[\p{M}\u200c\u200d]+$/u.test(grapheme)) return 0;
  return wide.test(grapheme) ? 2 : 1;
}

export function padEnd(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - columnsOf(text)));
}

export function padStart(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - columnsOf(text))) + text;
}

/** `text` if it fits into `columns`, else its beginning and "…". */
export function clip(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemesOf(text)) {
    used += columnsOfGrapheme(segment);
    if (used > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Lines of at most `columns`, unless a word is longer. Undefined: one line. */
export function wrap(text: string, columns: number | undefined): string[] {
  if (columns === undefined) return [text];
  const most = Math.max(columns, 20);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && columnsOf(longer) > most) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
