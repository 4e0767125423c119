import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const directory = join(repository, 'docs/guides');
const guides = readdirSync(directory).filter((name) => name.endsWith('.md'));
const pages = new Map(guides.map((name) => [name, readFileSync(join(directory, name), 'utf8')]));

/** Code for files. Blocks for a terminal are in no file. */
const fences = /^```(ts|sql|yaml)\n(.*?)^```$/gms;

/** The files of the examples that a page links to. */
function filesOf(page: string): string[] {
  return [...page.matchAll(/\]\(\.\.\/\.\.\/(examples\/[^)#]+\.(?:ts|sql|yaml))\)/g)].map(
    ([, path]) => path as string,
  );
}

/** Without the indentation that all of its lines have. */
function dedent(lines: readonly string[]): string {
  const depths = lines.filter((line) => line !== '').map((line) => line.search(/\S/));
  const depth = Math.min(...depths);
  return lines.map((line) => line.slice(depth)).join('\n');
}

function isCutFrom(file: string, block: string): boolean {
  return placeIn(file, block) !== undefined;
}

/** The numbers of its lines in the file; undefined: it is not from there. */
function placeIn(file: string, block: string): readonly number[] | undefined {
  const lines = file.split('\n');
  const wanted = block.trimEnd().split('\n');
  const dedented = dedent(wanted);
  const at = lines.findIndex(
    (_, start) => dedent(lines.slice(start, start + wanted.length)) === dedented,
  );
  return at === -1 ? undefined : wanted.map((_, i) => at + i);
}

/** The page begins with the reader's own program. */
const readersOwn = 'examples/cron/every-copy.ts';

describe.each([...pages])('the guide %s', (_name, page) => {
  const files = filesOf(page).map((path) => readFileSync(join(repository, path), 'utf8'));

  const blocks = [...page.matchAll(fences)].map(([, language, code], i) => ({
    number: i + 1,
    language,
    code: code as string,
  }));

  test.each(blocks)('block $number shows $language of an example it links to', ({ code }) => {
    expect(
      files.some((file) => isCutFrom(file, code)),
      code,
    ).toBe(true);
  });

  const programs = filesOf(page).filter(
    (path) => /^examples\/(?!test)/.test(path) && path.endsWith('.ts') && path !== readersOwn,
  );
  test.each([...new Set(programs)])('shows all of %s: what is copied runs', (path) => {
    const file = readFileSync(join(repository, path), 'utf8');
    const shown = new Set(blocks.flatMap(({ code }) => placeIn(file, code) ?? []));
    const head = file.startsWith('/**') ? file.slice(0, file.indexOf('*/')).split('\n').length : 0;
    const left = file
      .split('\n')
      .filter((line, at) => at >= head && line.trim() !== '' && !shown.has(at));
    expect(left).toEqual([]);
  });

  test('links to pages that exist', () => {
    const links = [...page.matchAll(/\]\((\.{1,2}\/[^)#]+)/g)].map(([, path]) => path as string);
    for (const link of links) expect(() => readFileSync(join(directory, link))).not.toThrow();
  });
});

test('every example has a guide', () => {
  const linked = [...pages.values()].flatMap(filesOf);
  for (const folder of ['cron', 'queue', 'kubernetes', 'http', 'grpc', 'shards']) {
    const names = readdirSync(join(repository, 'examples', folder));
    for (const name of names.filter((each) => /\.(ts|sql|yaml)$/.test(each))) {
      expect(linked).toContain(`examples/${folder}/${name}`);
    }
  }
});
