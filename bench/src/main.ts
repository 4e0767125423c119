/**
 * `npm run bench -- SUBJECT`: what ours costs, beside a peer or what the machine itself costs in the
 * same run. Ends with 0 also when a goal is missed; with 1 when something could not be measured or an
 * election was wrong.
 */
import { writePage } from './page.ts';
import { commandOf, defaultSubject, subjects } from './subject.ts';

const width = Math.max(...Object.keys(subjects).map((name) => name.length));
const usage = `npm run bench -- [SUBJECT] [OPTIONS]     default: ${defaultSubject}

${Object.entries(subjects)
  .map(([name, { about, takes }]) => `  ${name.padEnd(width)}  ${about} (${takes})`)
  .join('\n')}

  ${'page'.padEnd(width)}  writes docs/evidence/benchmarks.md from the results that are kept

\`${commandOf('SUBJECT')} --help\` shows its options. \`--save\` keeps the results in bench/results/SUBJECT.json.
`;

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [first] = args;
  if (first === 'help' || first === '--help' || first === '-h') {
    process.stdout.write(usage);
    return 0;
  }
  if (first === 'page') {
    const path = await writePage();
    process.stdout.write(`wrote ${path}\n`);
    return 0;
  }
  const isNamed = first !== undefined && !first.startsWith('-');
  const subject = subjects[isNamed ? first : defaultSubject];
  if (subject === undefined) {
    process.stderr.write(`there is nothing to measure by the name "${first}"\n\n${usage}`);
    return 64;
  }
  const { run } = await subject.load();
  return run(isNamed ? args.slice(1) : args);
}
