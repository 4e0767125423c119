import type { Coverage } from './coverage.ts';
import type { Mechanism } from './mechanism.ts';
import type { SeedResult } from './run-seed.ts';

export function coverageTable({ name, required }: Mechanism, coverage: Coverage): string {
  const all = [...new Set([...required, ...[...coverage.counts.keys()].sort()])];
  const cells = all.map((what) => `${String(Math.round(coverage.get(what))).padStart(9)}  ${what}`);
  const half = Math.ceil(cells.length / 2);
  const rows = cells
    .slice(0, half)
    .map((left, index) => `${left.padEnd(56)}${cells[half + index] ?? ''}`.trimEnd());
  return `what the seeds of the ${name} contained:\n${rows.join('\n')}`;
}

export function missing({ required }: Mechanism, coverage: Coverage): readonly string[] {
  return required.filter((name) => coverage.get(name) === 0);
}

export function describeFailure(
  mechanism: Mechanism,
  { seed, violation, lines }: SeedResult,
  shown: number,
): string {
  const name = violation?.guarantee ?? '';
  const sentence = mechanism.guarantees[name] ?? 'the same seed takes the same course';
  return [
    `${mechanism.name}, seed ${seed}: "${name}" is broken after ${((violation?.atMs ?? 0) / 1000).toFixed(3)} s: ${violation?.message}`,
    `  the guarantee: ${sentence}`,
    '  what came before:',
    ...lines.slice(-shown).map((line) => `  ${line}`),
    `  again: npm run simulate -- --mechanism ${mechanism.name} --from ${seed} --seeds 1 --trace`,
  ].join('\n');
}
