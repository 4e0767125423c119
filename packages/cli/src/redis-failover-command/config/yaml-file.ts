/**
 * Configuration files: YAML, keys plain or as the gem writes them (`:nodes:`, Ruby's symbols), all
 * settings at the top or a section for each environment. Every error has file, line and column.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Node, Pair, Scalar, YAMLMap } from 'yaml';
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import { nearest } from '../../terminal/nearest.ts';
import { SettingError } from '../failure.ts';
import type { Given } from './given.ts';
import { quote, ranks } from './given.ts';
import type { Kind, Setting, SettingKey } from './settings.ts';
import { allSettings } from './settings.ts';

/** @throws SettingError also for a file that is not there */
export async function readConfigurationFile(
  file: string,
  environment: string | undefined,
  cwd: string,
): Promise<ReadonlyMap<SettingKey, Given>> {
  let text: string;
  try {
    text = await readFile(resolve(cwd, file), 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new SettingError(`File ${file} can't be found (--config)`);
    throw new SettingError(`File ${file} (--config) cannot be read: ${message}`);
  }
  return parseConfiguration(text, file, environment);
}

/** @returns what is given, by key */
export function parseConfiguration(
  text: string,
  file: string,
  environment: string | undefined,
): ReadonlyMap<SettingKey, Given> {
  const source = new Source(text, file);
  const top = source.root();
  if (environment === undefined) return source.settings(top, rootEntries(source, top));
  return source.settings(...sectionOf(source, top, environment));
}

interface Entry {
  /** Without the colon of a symbol. */
  readonly name: string;
  readonly key: Scalar;
  readonly value: Node | null;
}

function rootEntries(source: Source, top: YAMLMap | undefined): readonly Entry[] {
  const entries = top === undefined ? [] : source.entries(top);
  const sections = entries.filter(
    ({ name, value }) => settingOf(name) === undefined && isMap(value),
  );
  const [first] = sections;
  if (first !== undefined && sections.length === entries.length) {
    const names = sections.map(({ name }) => name).join(', ');
    source.refuse(
      first.key,
      `the settings stand in environments (${names}): choose one with --environment`,
    );
  }
  return entries;
}

function sectionOf(
  source: Source,
  top: YAMLMap | undefined,
  environment: string,
): [section: YAMLMap, entries: readonly Entry[]] {
  const entries = top === undefined ? [] : source.entries(top);
  const known = entries.filter(({ value }) => isMap(source.follow(value)));
  const found = entries.find(({ name }) => name === environment);
  const section = source.follow(found?.value ?? null);
  if (isMap(section)) return [section, source.entries(section)];
  if (found !== undefined && settingOf(environment) === undefined) {
    source.refuse(found.key, `the environment ${environment} holds no settings`);
  }
  const names = known.map(({ name }) => name).join(', ');
  throw new SettingError(
    `Environment ${environment} can't be found in ${source.file}: ` +
      (names === '' ? 'it has no environments; leave --environment out' : `it has ${names}`),
  );
}

const settingsByKey: ReadonlyMap<string, Setting> = new Map(
  allSettings.flatMap((setting) =>
    [setting.key, ...(setting.alsoKeys ?? [])].map((key) => [key, setting] as const),
  ),
);

function settingOf(name: string): Setting | undefined {
  return settingsByKey.get(name);
}

class Source {
  readonly file: string;
  readonly #text: string;
  readonly #lines = new LineCounter();
  #resolve: (node: Node | null) => Node | null = (node) => node;

  constructor(text: string, file: string) {
    this.#text = text;
    this.file = file;
  }

  /** undefined if the file is empty. */
  root(): YAMLMap | undefined {
    const documents = parseAllDocuments(this.#text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      keepSourceTokens: false,
    });
    if (!Array.isArray(documents)) return undefined;
    const [document, second] = documents;
    const error = document?.errors[0] ?? second?.errors[0];
    if (error !== undefined) {
      throw new SettingError(`${this.at(error.pos[0])}${sentence(error.message)}`);
    }
    if (second !== undefined) {
      throw new SettingError(
        `${this.at(second.range[0])}a second document: everything stands in one`,
      );
    }
    const contents = document?.contents ?? null;
    if (contents === null || (isScalar(contents) && contents.value === null)) return undefined;
    this.#resolve = (node) => (isAlias(node) ? (node.resolve(document as never) ?? null) : node);
    if (!isMap(contents))
      this.refuse(contents as Node, 'the file holds `key: value` lines, and this is none');
    return contents;
  }

  /** The node that an alias (`*name`) stands for. */
  follow(node: Node | null): Node | null {
    return this.#resolve(node);
  }

  /**
   * The entries of a map, with those that `<<: *name` merges. Its own entries win.
   * @param within the maps that merge this one
   */
  entries(map: YAMLMap, within: readonly YAMLMap[] = []): readonly Entry[] {
    const own: Entry[] = [];
    const merged: Entry[] = [];
    for (const { key, value } of map.items as Pair<Node, Node | null>[]) {
      if (!isScalar(key)) this.refuse(key, 'a key is a word');
      const name = String(key.source ?? key.value).replace(/^:/, '');
      if (name === '<<') {
        const path = [...within, map];
        for (const each of this.#mergedMaps(key, value)) {
          if (path.includes(each)) this.refuse(key, '<< brings a section into itself');
          merged.push(...this.entries(each, path));
        }
        continue;
      }
      const before = own.find((entry) => entry.name === name);
      if (before !== undefined) this.#refuseTwice(key, before);
      own.push({ name, key, value });
    }
    const names = new Set(own.map(({ name }) => name));
    for (const entry of merged) {
      if (!names.has(entry.name)) own.push(entry);
      names.add(entry.name);
    }
    return own;
  }

  settings(map: YAMLMap | undefined, entries: readonly Entry[]): ReadonlyMap<SettingKey, Given> {
    if (map === undefined) throw new SettingError(`${this.file} is empty`);
    const given = new Map<SettingKey, Given>();
    const keys = new Map<string, Entry>();
    for (const entry of entries) {
      const setting = settingOf(entry.name);
      if (setting === undefined) this.#refuseUnknown(entry);
      const { key } = setting;
      const before = keys.get(key);
      if (before !== undefined) this.#refuseTwice(entry.key, before);
      keys.set(key, entry);
      given.set(key, this.#given(setting, entry));
    }
    return given;
  }

  refuse(node: Node, message: string): never {
    throw new SettingError(`${this.at(node.range?.[0] ?? 0)}${message}`);
  }

  at(offset: number): string {
    const { line, col } = this.#lines.linePos(offset);
    return `${this.file}:${line}:${col}: `;
  }

  #given({ kind }: Setting, { name, key, value }: Entry): Given {
    const node = this.follow(value);
    if (node === null || (isScalar(node) && node.value === null)) {
      this.refuse(key, `${name} has no value: write one, or leave the line out`);
    }
    const where = this.at(key.range?.[0] ?? 0);
    if (kind !== 'list' || !isSeq(node)) {
      if (isScalar(node)) return { value: scalarValue(node, kind), name, where, rank: ranks.file };
      const form = isMap(node) ? 'a section of its own' : 'a list';
      this.refuse(
        key,
        `${name} is one value${kind === 'list' ? ' or a list of them' : ''}, not ${form}`,
      );
    }
    const items = (node.items as (Node | null)[]).map((each) => {
      const item = this.follow(each);
      if (!isScalar(item) || item.value === null)
        this.refuse(item ?? key, `${name} is a list of values`);
      return item;
    });
    return {
      value: items.map((item) => scalarValue(item, kind)),
      name,
      where,
      items: items.map((item) => this.at(item.range?.[0] ?? 0)),
      rank: ranks.file,
    };
  }

  #mergedMaps(key: Scalar, value: Node | null): YAMLMap[] {
    const node = this.follow(value);
    const nodes = isSeq(node) ? (node.items as Node[]).map((each) => this.follow(each)) : [node];
    return nodes.map((each) => {
      if (!isMap(each)) this.refuse(key, '<< takes a section, such as *defaults');
      return each;
    });
  }

  #refuseTwice(key: Scalar, before: Entry): never {
    const { line } = this.#lines.linePos(before.key.range?.[0] ?? 0);
    const name = String(key.source ?? key.value).replace(/^:/, '');
    const same = name === before.name ? '' : ` as ${before.name}`;
    return this.refuse(key, `${name} stands in line ${line} already${same}`);
  }

  #refuseUnknown({ name, key }: Entry): never {
    const names = [...settingsByKey.keys()];
    const meant = meantBy(name, names);
    const wayOut = meant === undefined ? `it can be ${names.join(', ')}` : `did you mean ${meant}?`;
    return this.refuse(key, `there is no setting ${quote(name)}: ${wayOut}`);
  }
}

/** The setting that is one or two mistakes away, or begins with what was written. */
function meantBy(name: string, names: readonly string[]): string | undefined {
  const wanted = name.toLowerCase().replaceAll('-', '_');
  if (names.includes(wanted)) return wanted;
  const begins = names.find((each) => wanted.length >= 3 && each.startsWith(wanted));
  return nearest(wanted, names) ?? begins;
}

/** Texts as they were written: a password may look like a number. */
function scalarValue(node: Scalar, kind: Kind): unknown {
  if (kind === 'count' || kind === 'switch') return node.value;
  if (typeof node.value === 'string')
    return kind === 'choice' ? node.value.replace(/^:/, '') : node.value;
  return node.source ?? String(node.value);
}

function sentence(message: string): string {
  const [first = ''] = message.split('\n');
  return `${first.charAt(0).toLowerCase()}${first.slice(1)}`;
}
