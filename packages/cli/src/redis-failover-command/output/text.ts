/** Text that came from elsewhere (znodes, servers, files), made harmless for a terminal. */

/** Control and format characters, halves of surrogate pairs, line separators; not the two joiners. */
const unprintable = /[^\P{C}\u200c\u200d]|[\p{Zl}\p{Zp}]/gu;

/** `text` on one line, with whatever could move the cursor or change colours written as an escape. */
export function visible(text: string): string {
  return text.replace(unprintable, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** The same, but line breaks stay. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

/** JSON on one line: tokens as strings, and nothing in it that a terminal would obey. */
export function toJson(value: unknown): string {
  const json = JSON.stringify(value, (_key, entry: unknown) =>
    typeof entry === 'bigint' ? entry.toString() : entry,
  );
  // These can only stand inside strings, where JSON may write them as escapes.
  return visible(json);
}

/** A span of time: `250ms`, `1.2s`, `90s`. */
export function milliseconds(ms: number): string {
  if (ms < 10) return `${Math.round(ms * 10) / 10}ms`;
  return ms < 999.5 ? `${Math.round(ms)}ms` : `${Math.round(ms / 100) / 10}s`;
}
