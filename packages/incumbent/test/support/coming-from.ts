/** The pages of docs/coming-from, and the files in test/coming-from that name the tests of their rows. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { NamedTest } from './named-tests.ts';

const pages = new URL('../../../../docs/coming-from/', import.meta.url);
const matrices = new URL('../coming-from/', import.meta.url);
const programs = new URL('programs/', matrices);

/** The tests of each row, by its id: files, and the titles of tests in them. */
export type Matrix = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

export interface Page {
  readonly text: string;
  readonly sections: readonly Section[];
}

export interface Section {
  readonly title: string;
  /** Of its table, without the titles of the columns. */
  readonly rows: readonly (readonly string[])[];
}

/** @returns the names, without the overview's */
export function systemsWithPage(): readonly string[] {
  return namesIn(pages, '.md').filter((name) => name !== 'index');
}

export function systemsWithMatrix(): readonly string[] {
  return namesIn(matrices, '.json');
}

export function systemsWithProgram(): readonly string[] {
  return namesIn(programs, '.ts');
}

export function readPage(system: string): Page {
  const text = readFileSync(new URL(`${system}.md`, pages), 'utf8');
  const sections = text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({ title: section.split('\n')[0] as string, rows: rowsIn(section) }));
  return { text, sections };
}

export function readMatrix(system: string): Matrix {
  return JSON.parse(readFileSync(new URL(`${system}.json`, matrices), 'utf8'));
}

/** The code of ours that a page may show; undefined: the page shows nothing but commands. */
export function readProgram(system: string): string | undefined {
  const url = new URL(`${system}.ts`, programs);
  return existsSync(url) ? readFileSync(url, 'utf8') : undefined;
}

/** The links to files of the repository, as they are written, and where they lead. */
export function linksOf(
  system: string,
): readonly (readonly [string, { readonly file: URL; readonly anchor: string | undefined }])[] {
  const { text } = readPage(system);
  const links = [...text.matchAll(/\]\(((?![a-z]+:)[^)#]*)(?:#([^)]*))?\)/g)];
  return links.map(([, path = '', anchor]) => [
    anchor === undefined ? path : `${path}#${anchor}`,
    { file: new URL(path === '' ? `${system}.md` : path, pages), anchor },
  ]);
}

export function anchorsOf(file: URL): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    slugOf(heading as string),
  );
}

/** The anchor of a heading, as docs/site/slug.mjs makes it. */
function slugOf(heading: string): string {
  const kept = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return kept.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
}

export function testsIn(matrix: Matrix): readonly NamedTest[] {
  return Object.values(matrix).flatMap((files) =>
    Object.entries(files).flatMap(([file, names]) => names.map((name) => ({ file, name }))),
  );
}

function rowsIn(section: string): readonly (readonly string[])[] {
  return section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .slice(1)
    .map((line) =>
      line
        .slice(2, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

function namesIn(folder: URL, extension: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(extension))
    .map((name) => basename(name, extension))
    .sort();
}
