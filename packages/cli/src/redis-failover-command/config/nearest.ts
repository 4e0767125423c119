/** The name that is meant, if it is one or two mistakes away, or begins with what was written. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const wanted = word.toLowerCase().replaceAll('-', '_');
  let best = names.find((name) => wanted.length >= 3 && name.startsWith(wanted));
  let bestDistance = wanted.length < 4 ? 2 : 3;
  for (const name of names) {
    const distance = distanceOf(wanted, name);
    if (distance < bestDistance) [best, bestDistance] = [name, distance];
  }
  return best;
}

/** Insertions, deletions and replacements (Levenshtein). */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
