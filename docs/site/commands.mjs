// Pages of the commands, from what they say of themselves: `incumbent` from its command table, the
// other two from their `--help`. So the site says of an option exactly what the command says.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { commands } from '../../packages/cli/dist/command-table.js';
import { generated, repository } from './paths.mjs';

export function makeCommandPages() {
  rmSync(generated.commands, { recursive: true, force: true });
  mkdirSync(generated.commands, { recursive: true });
  write('incumbent', incumbentPage());
  write(
    'incumbent-zk',
    helpPage('incumbent-zk', 'packages/cli/dist/zookeeper-command/bin.js', '../zookeeper-cli.md'),
  );
  write(
    'incumbent-redis',
    helpPage(
      'incumbent-redis',
      'packages/cli/dist/redis-failover-command/bin.js',
      '../redis-failover.md',
    ),
  );
}

function write(name, lines) {
  writeFileSync(join(generated.commands, `${name}.md`), `${lines.join('\n')}\n`);
}

function incumbentPage() {
  const groups = Map.groupBy?.(commands, ({ group }) => group) ?? groupsOf(commands);
  const table = [...groups].flatMap(([group, entries]) =>
    entries.map(
      ({ name, summary }, i) =>
        `| ${i === 0 ? group.slice(0, -1) : ''} | [\`${name}\`](#${name}) | ${cell(summary)} |`,
    ),
  );
  return [
    '---\noutline: [2, 2]\n---\n',
    '# `incumbent`: every command\n',
    'The options of each command, as `incumbent COMMAND --help` prints them.',
    'What they are for, exit codes and stores: [the `incumbent` command](../cli.md).\n',
    '| | Command | What it does |\n| --- | --- | --- |',
    ...table,
    '',
    ...commands.flatMap(commandSection),
  ];
}

function groupsOf(entries) {
  const groups = new Map();
  for (const entry of entries) {
    groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
  }
  return groups;
}

function commandSection(entry) {
  const command = new Command(entry.name);
  entry.define(command);
  const usage = `incumbent ${entry.name} ${command.usage()}`;
  const summary = `${entry.summary[0].toUpperCase()}${entry.summary.slice(1)}.`;
  const lines = [
    `## ${entry.name}\n`,
    withoutMarkup(entry.description ?? summary),
    '',
    `\`\`\`\n${usage}\n\`\`\`\n`,
  ];
  const operands = command.registeredArguments.filter(({ description }) => description);
  if (operands.length > 0) {
    lines.push('| Operand | Meaning |\n| --- | --- |');
    for (const operand of operands) {
      const choices = operand.argChoices ? `: ${operand.argChoices.join(', ')}` : '';
      lines.push(`| \`${operand.name()}\` | ${cell(`${operand.description}${choices}`)} |`);
    }
    lines.push('');
  }
  const headings = new Map();
  for (const option of command.options) {
    const heading = option.helpGroupHeading ?? 'Options:';
    headings.set(heading, [...(headings.get(heading) ?? []), option]);
  }
  for (const [heading, options] of headings) {
    lines.push(`| ${heading.replace(/:$/, '')} | Meaning |\n| --- | --- |`);
    for (const option of options) lines.push(`| \`${option.flags}\` | ${cell(meaning(option))} |`);
    lines.push('');
  }
  const examples = entry.examples.map(({ line, about }) => `# ${about}\n${line}`);
  lines.push(`\`\`\`sh\n${examples.join('\n\n')}\n\`\`\`\n`);
  return lines;
}

/** As commander adds it in the help. */
function meaning({ description, argChoices, defaultValue, defaultValueDescription, mandatory }) {
  const notes = [];
  if (argChoices) notes.push(`choices: ${argChoices.join(', ')}`);
  if (defaultValue !== undefined) notes.push(`default: ${defaultValueDescription ?? defaultValue}`);
  if (mandatory) notes.push('must be given');
  return notes.length > 0 ? `${description} (${notes.join('; ')})` : description;
}

function helpPage(name, bin, more) {
  const help = (...args) =>
    execFileSync(process.execPath, [join(repository, bin), ...args, '--help'], {
      encoding: 'utf8',
      // Commander breaks lines at this width where there is no terminal.
      env: { ...process.env, COLUMNS: '80' },
    }).trimEnd();
  const all = help();
  // Names stand two columns in, below headings without an indentation; `help` is no command of use.
  const lists = all.split(/^Global options:|^Examples:/m)[0];
  const names = [...lists.matchAll(/^ {2}([a-z]+) {2,}\S/gm)]
    .map(([, each]) => each)
    .filter((each) => each !== 'help');
  if (names.length < 3) throw new Error(`the help of ${name} lists no commands`);
  return [
    '---\noutline: [2, 2]\n---\n',
    `# \`${name}\`: every command\n`,
    `What the command prints as its help. What it is for: [the page of it](${more}).\n`,
    `\`\`\`\n${all}\n\`\`\`\n`,
    ...names.flatMap((each) => [`## ${each}\n`, `\`\`\`\n${help(each)}\n\`\`\`\n`]),
  ];
}

/** Text that is no markup. */
function withoutMarkup(text) {
  return text.replaceAll(/[<>]/g, (sign) => (sign === '<' ? '&lt;' : '&gt;'));
}

function cell(text) {
  return withoutMarkup(text).replaceAll('|', '\\|').replaceAll('\n', ' ');
}
