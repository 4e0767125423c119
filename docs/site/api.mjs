// The reference of the API, from the sources, by TypeDoc. It has a TypeScript of its own: the one
// that the packages are built with has no interface for programs.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Application, LogLevel, ReflectionKind } from 'typedoc';
import { generated, repository } from './paths.mjs';
import { slugOf } from './slug.mjs';

const packages = [
  'packages/incumbent',
  'packages/zookeeper',
  'packages/zookeeper-testing',
  'packages/redis-failover',
  'packages/shards',
];

/** The entry points of a package: the name to import, and the source file. */
export function entryPoints(path) {
  const { name, exports } = JSON.parse(
    readFileSync(join(repository, path, 'package.json'), 'utf8'),
  );
  return Object.entries(exports)
    .filter(([key, entry]) => entry['@incumbent/source'] !== undefined && key !== './internal')
    .map(([key, entry]) => ({
      name: `${name}${key.slice(1)}`,
      source: join(repository, path, entry['@incumbent/source']),
    }));
}

export async function makeApiPages() {
  rmSync(generated.api, { recursive: true, force: true });
  const lines = [];
  for (const path of packages) lines.push(...(await makePages(path)));
  const page = [
    '# API\n',
    'Made from the sources: what an editor shows of a name is what stands here.\n',
    '| Import | What it is |\n| --- | --- |',
    ...lines,
  ];
  writeFileSync(join(generated.api, 'index.md'), `${page.join('\n')}\n`);
}

/** @returns a line of the table for each of its entry points */
async function makePages(path) {
  const entries = entryPoints(path);
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: entries.map(({ source }) => source),
    // Also where there is only one: then it is a module of its own.
    alwaysCreateEntryPointModule: true,
    tsconfig: join(repository, path, 'tsconfig.json'),
    name: 'API',
    readme: 'none',
    // The compiler of the packages has checked them.
    skipErrorChecking: true,
    excludePrivate: true,
    excludeInternal: true,
    // The members of `Error` are not ours to explain.
    excludeExternals: true,
    disableSources: true,
    logLevel: LogLevel.Warn,
    validation: { notExported: false, invalidLink: false, notDocumented: false },
    outputs: [{ name: 'markdown', path: generated.api }],
    cleanOutputDir: false,
    // One page for each entry point.
    router: 'module',
    entryFileName: 'index',
    groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables', '*'],
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    parametersFormat: 'table',
    pageTitleTemplates: { module: ({ name }) => name },
  });
  const found = app.getEntryPoints();
  if (found?.length !== entries.length) throw new Error(`TypeDoc could not read ${path}`);
  for (const entry of found) {
    entry.displayName = entries.find(({ source }) => source === entry.sourceFile.fileName).name;
  }
  const project = app.converter.convert(found);
  await app.generateOutputs(project);
  unnumber(entries.map(({ name }) => name));
  return project.getReflectionsByKind(ReflectionKind.Module).map(({ name, comment }) => {
    const summary = comment?.summary.map(({ text }) => text).join('') ?? '';
    if (!existsSync(join(generated.api, `${name}.md`))) throw new Error(`no page of ${name}`);
    return `| [\`${name}\`](${name}.md) | ${summary.replaceAll('\n', ' ')} |`;
  });
}

/**
 * `incumbent/backend` and the interface `Backend` of `incumbent` would be one file on file systems
 * that ignore case. So TypeDoc numbers the page, though interfaces have none of their own here.
 */
function unnumber(names) {
  const pathOf = (name) => join(generated.api, `${name}.md`);
  const numbered = names.filter((name) => existsSync(pathOf(`${name}-1`)));
  for (const name of numbered) renameSync(pathOf(`${name}-1`), pathOf(name));
  for (const path of names.map(pathOf)) {
    let text = readFileSync(path, 'utf8');
    for (const name of numbered) {
      const last = name.split('/').at(-1);
      text = text.replaceAll(`${last}-1.md`, `${last}.md`);
    }
    writeFileSync(path, withAnchors(text));
  }
}

/** A class and a type of one name are counted by TypeDoc; only the second *heading* has a number. */
function withAnchors(text) {
  const times = new Map();
  for (const [, heading] of text.matchAll(/^#+ (.*)$/gm)) {
    const slug = slugOf(heading.replaceAll('\\', ''));
    times.set(slug, (times.get(slug) ?? 0) + 1);
  }
  return text.replaceAll(/\(#([\w-]+)-(\d+)\)/g, (link, slug, number) =>
    !times.has(`${slug}-${number}`) && (times.get(slug) ?? 0) <= Number(number)
      ? `(#${slug})`
      : link,
  );
}
