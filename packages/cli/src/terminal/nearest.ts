/**
 * The name that the user probably meant, if it is one or two mistakes away. A mistake is an extra
 * letter, a missing letter, a wrong letter, or two neighbours that changed places.
 */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  let best: string | undefined;
  // Two mistakes leave too little of a short name.
  let bestDistance = wanted.length < 4 ? 2 : 3;
  for (const name of names) {
    if (name === word) continue;
    const distance = distanceOf(wanted, name.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [name, distance];
  }
  return best;
}

/**
 * Optimal string alignment: insertions, deletions, replacements and exchanges of neighbours.
 * @param most a distance of this or more need not be exact
 */
function distanceOf(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (before[j - 2] as number) + 1);
      }
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[b.length] as number;
}
