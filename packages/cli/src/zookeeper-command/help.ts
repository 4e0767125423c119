import { columns } from '../terminal/table.ts';
import type { CommandEntry, OperandSpec, OptionSpec } from './table.ts';
import { commands, globalOptions, optionsBehind, versionOption } from './table.ts';

const groups = ['Look', 'Change', 'Servers and sessions'] as const;

export function rootHelp(): string {
  const lists = groups.map((group) => {
    const rows = commands
      .filter((command) => command.group === group)
      .map(({ name, summary }) => [`  ${name.padEnd(10)}`, summary]);
    return section(`${group}:`, columns(rows));
  });
  return [
    'Usage: incumbent-zk [global options] COMMAND [options]\n\n' +
      'Look into a ZooKeeper ensemble, and change what is there.\n',
    ...lists,
    section('Global options:', optionLines([...globalOptions, versionOption])),
    section('Examples:', [
      '  incumbent-zk -s zk://zk1:2181,zk2:2181/app tree',
      '  INCUMBENT_ZK=zks://zk1:2281 incumbent-zk get --tls-ca ca.pem /config',
    ]),
    '`incumbent-zk COMMAND --help` shows the options of a command.\n',
  ].join('\n');
}

export function commandHelp(command: CommandEntry): string {
  const { name, summary, description, options, operands, examples } = command;
  const known = optionsBehind(command);
  const usage = ['incumbent-zk', name, ...(options.length > 0 ? ['[options]'] : [])];
  const about = `${summary[0]?.toUpperCase()}${summary.slice(1)}.`;
  return [
    `Usage: ${[...usage, ...operands.map(operandWord)].join(' ')}\n\n` +
      `${about}\n${description === undefined ? '' : `\n${description}\n`}`,
    ...(options.length > 0 ? [section('Options:', optionLines(options))] : []),
    section('Global options:', optionLines(known.filter((spec) => !options.includes(spec)))),
    section(
      'Examples:',
      examples.map((line) => `  ${line}`),
    ),
  ].join('\n');
}

function operandWord({ name, optional, many }: OperandSpec): string {
  const word = many ? `${name}...` : name;
  return optional ? `[${word}]` : word;
}

function optionLines(specs: readonly OptionSpec[]): string[] {
  return columns(
    specs.map(({ name, short, value, about }) => [
      `  ${short === undefined ? '   ' : `-${short},`} --${name}${value === undefined ? '' : ` ${value}`}`,
      about,
    ]),
  );
}

function section(title: string, lines: readonly string[]): string {
  return `${title}\n${lines.join('\n')}\n`;
}
