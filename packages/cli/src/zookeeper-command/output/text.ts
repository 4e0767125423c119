/** Text that came from elsewhere (names, data, errors), made harmless for a terminal. */

/**
 * Control and format characters (such as those that turn the direction of writing), and what has no
 * meaning of its own. Not the two joiners, without which Persian, Hindi and emoji cannot be written.
 */
const unprintable = /[^\P{C}\u200c\u200d]|[\p{Zl}\p{Zp}]/gu;

const shortEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** `text` on one line, with whatever could move the cursor or change colours written as an escape. */
export function visible(text: string): string {
  return text.replace(unprintable, (character) => {
    const short = shortEscapes[character];
    if (short !== undefined) return short;
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}

/** The same, but line breaks and tabs stay. */
export function visibleLines(text: string): string {
  return text.replace(/[^\n\t]+/g, visible);
}

/** `text` if it has at most so many characters, else its beginning and "…". */
export function clip(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const kept: string[] = [];
  for (const character of text) {
    if (kept.length > characters) break;
    kept.push(character);
  }
  return kept.length <= characters ? text : `${kept.slice(0, characters - 1).join('')}…`;
}

/** JSON on one line: bigints as strings, and nothing in it that a terminal would obey. */
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

/** Lines of columns of equal width; the last one is not padded. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, [...cell].length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell + ' '.repeat((widths[i] ?? 0) - [...cell].length))
      .join('  ')
      .trimEnd(),
  );
}
