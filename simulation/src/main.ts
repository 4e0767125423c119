import { fileURLToPath } from 'node:url';
import { loadLibrary } from './library.ts';
import { runSeed } from './run-seed.ts';

const lib = await loadLibrary(
  fileURLToPath(new URL('../../packages/incumbent/dist', import.meta.url)),
);
const from = Number(process.argv[2] ?? 1),
  n = Number(process.argv[3] ?? 100),
  trace = process.argv[4] === 'trace';
const t = performance.now();
let ev = 0;
const fails: Record<string, number[]> = {};
const cov = new Map<string, number>();
for (let s = from; s < from + n; s += 1) {
  const r = await runSeed(lib, s, trace);
  ev += r.events;
  for (const [k, v] of r.coverage) cov.set(k, (cov.get(k) ?? 0) + v);
  if (r.violation) {
    (fails[r.violation.guarantee] ??= []).push(s);
    if (trace || fails[r.violation.guarantee]!.length <= 2)
      console.log(
        s,
        r.violation.guarantee,
        r.violation.atMs.toFixed(3),
        r.violation.message.slice(0, 400),
      );
  }
  if (trace) console.log(r.lines.slice(-Number(process.argv[5] ?? 60)).join('\n'));
}
console.log(
  fails,
  ((performance.now() - t) / n).toFixed(2),
  'ms/seed',
  (ev / n).toFixed(0),
  'entries/seed',
);
if (process.argv[5] === 'cov' || n >= 200)
  console.log(
    [...cov]
      .sort()
      .map(([k, v]) => `${k}: ${Math.round(v)}`)
      .join('\n'),
  );
