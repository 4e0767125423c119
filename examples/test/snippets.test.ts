/**
 * Every piece of TypeScript or JavaScript on a page is type-checked. One that is marked (```ts runnable)
 * is also run, as a program of its own with the built library. Pages whose code is cut from
 * programs of the repository are held to those by tests of their own.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { contextOf, contexts } from './support/snippet-context.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
/** `guides.test.ts`, and coming-from.test.ts of the library. */
const heldElsewhere = /^docs\/(guides|coming-from)\//;
/** Run by readme.test.ts of the library, with stores that it makes up. */
const runElsewhere = 'packages/incumbent/README.md';

const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: repository, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((page) => !heldElsewhere.test(page));

const snippets = pages.flatMap((page) => {
  const text = readFileSync(join(repository, page), 'utf8');
  const languages = page === runElsewhere ? 'ts' : 'ts|js';
  const fence = new RegExp(`^\`\`\`(?:${languages})\\b([^\\n]*)\\n(.*?)^\`\`\``, 'gms');
  return [...text.matchAll(fence)].map(([, mark = '', code = ''], i) => {
    return { page, number: i + 1, code, isRunnable: mark.trim() === 'runnable' };
  });
});

// Beside the examples, so that packages are found.
const parent = join(repository, 'examples/.snippets');
mkdirSync(parent, { recursive: true });
const directory = mkdtempSync(join(parent, 'check-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** @returns what the compiler says of these files */
function check(files: ReadonlyMap<string, string>): string {
  for (const [name, code] of files) writeFileSync(join(directory, name), code);
  const settings = {
    extends: '../../../tsconfig.base.json',
    compilerOptions: {
      ...{ noEmit: true, composite: false, declarationMap: false, isolatedDeclarations: false },
      // A page may leave types out, and reads the environment as its readers do.
      ...{ noImplicitAny: false, noPropertyAccessFromIndexSignature: false },
      ...{ exactOptionalPropertyTypes: false, skipLibCheck: true, erasableSyntaxOnly: false },
    },
    files: [...files.keys()],
  };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(settings));
  const compiler = join(repository, 'node_modules/typescript/bin/tsc');
  const { stdout, status } = spawnSync(
    process.execPath,
    [compiler, '-p', directory, '--pretty', 'false'],
    {
      cwd: directory,
      encoding: 'utf8',
    },
  );
  return status === 0 ? '' : stdout;
}

const nameOf = ({ page, number }: { readonly page: string; readonly number: number }) =>
  `${page.replaceAll(/[/.]/g, '_')}_${number}.ts`;

it('finds the code of all pages', () => {
  expect(snippets.length).toBeGreaterThanOrEqual(50);
});

it('type-checks', () => {
  const files = new Map(
    snippets.flatMap((snippet) => {
      const { page, code } = snippet;
      const text = `export {};\n${contextOf(page, code)}${code}`;
      // A module that another piece of the page imports.
      const [, module] = /^\/\/ (store)\.js\b/.exec(code) ?? [];
      return [
        [nameOf(snippet), text] as const,
        ...(module === undefined ? [] : [[`${module}.ts`, text] as const]),
      ];
    }),
  );
  expect(check(files)).toBe('');
});

it('would not, if a page called what is not there', () => {
  const wrong =
    "import { createElection } from 'incumbent';\ncreateElection({ nmae: 'billing' });\n";
  expect(check(new Map([['wrong.ts', wrong]]))).toContain("'nmae' does not exist");
});

it('is given no name for a page that is gone', () => {
  for (const page of Object.keys(contexts)) expect(pages).toContain(page);
});

/** Needs nothing but the library and this machine, and ends without a hold of minutes. */
const isProgram = (code: string) =>
  /^import [^;]* from 'incumbent\/(?:file|memory)';$/m.test(code) &&
  !/ from '(?!incumbent(?:'|\/(?:file|memory)'))/.test(code) &&
  !code.includes('holdAtLeast');

it('marks every whole program on the stores of this machine', () => {
  const marked = snippets.filter(({ isRunnable }) => isRunnable);
  const programs = snippets.filter(({ code }) => isProgram(code));
  expect(marked.length).toBeGreaterThanOrEqual(6);
  expect(marked.map(nameOf)).toEqual(programs.map(nameOf));
});

const run = promisify(execFile);

it.each(snippets.filter(({ isRunnable }) => isRunnable).map((one) => [nameOf(one), one.code]))(
  'runs: %s',
  async (name, code) => {
    const program = join(directory, name.replace(/ts$/, 'mjs'));
    // Not the directory of this machine that the page names.
    const store = `${program}.store`;
    writeFileSync(program, code.replaceAll(/\/var\/(?:tmp|lib)\/incumbent/g, store));
    const { stdout, stderr } = await run(process.execPath, [program], { cwd: directory });
    expect(stderr).toBe('');
    // It does as it says: every text that it prints as it stands.
    for (const [, text = ''] of code.matchAll(/console\.log\('([^']*)'\)/g)) {
      expect(stdout).toContain(text);
    }
  },
);
