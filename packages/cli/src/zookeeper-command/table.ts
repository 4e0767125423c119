/** The commands and their options. Parsing, --help and the check of the documentation read this. */
import type { Arguments } from './arguments.ts';
import type { Context } from './context.ts';

export interface OptionSpec {
  /** The long name, without dashes. */
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** The placeholder of the value in the help. Without it the option is a flag. */
  readonly value?: string;
  /** It may be given several times. */
  readonly many?: true;
  readonly about: string;
}

export interface OperandSpec {
  readonly name: string;
  readonly optional?: true;
  readonly many?: true;
}

export type Execute = (args: Arguments, context: Context) => Promise<number>;

export interface CommandEntry {
  readonly name: string;
  readonly group: 'Look' | 'Change' | 'Servers and sessions';
  /** One line for the list of commands, without a full stop. */
  readonly summary: string;
  /** The rest of its help. */
  readonly description?: string;
  readonly operands: readonly OperandSpec[];
  readonly options: readonly OptionSpec[];
  readonly examples: readonly string[];
  /** Imports the command: nothing is loaded before it runs. */
  readonly load: () => Promise<Execute>;
}

export const helpOption: OptionSpec = { name: 'help', short: 'h', about: 'show this help' };
export const versionOption: OptionSpec = {
  name: 'version',
  short: 'V',
  about: 'print the version (in front of the command only)',
};

/** Known to every command, in front of it or behind it. */
export const globalOptions: readonly OptionSpec[] = [
  {
    name: 'server',
    short: 's',
    value: 'URL',
    about: 'zk://h1:2181,h2:2181/app, or zks:// (default: INCUMBENT_ZK, else localhost)',
  },
  {
    name: 'timeout',
    value: 'DURATION',
    about: 'how long connecting, and each request, may take (default: 10s)',
  },
  {
    name: 'auth',
    value: 'SCHEME:CREDENTIALS',
    many: true,
    about: 'such as digest:USER:PASSWORD (repeatable; or INCUMBENT_ZK_AUTH)',
  },
  {
    name: 'sasl',
    value: 'USER:PASSWORD',
    about: 'log in by SASL DIGEST-MD5 (or INCUMBENT_ZK_SASL)',
  },
  { name: 'tls-ca', value: 'FILE', about: 'certificates of the authorities to trust, PEM' },
  { name: 'tls-cert', value: 'FILE', about: 'our certificate, PEM' },
  {
    name: 'tls-key',
    value: 'FILE',
    about: 'its key, PEM (the passphrase: INCUMBENT_ZK_TLS_PASSPHRASE)',
  },
  {
    name: 'tls-servername',
    value: 'NAME',
    about: "the name in the server's certificate (default: the host)",
  },
  { name: 'read-only', about: 'accept servers that have no quorum, for reading' },
  { name: 'json', about: 'for programs: one JSON object a line' },
  helpOption,
];

const path: OperandSpec = { name: 'PATH' };
const data: OperandSpec = { name: 'DATA|-', optional: true };
const file: OptionSpec = { name: 'file', value: 'FILE', about: 'read the data from a file' };
const nodeVersion: OptionSpec = {
  name: 'version',
  value: 'N',
  about: 'only if the node has this version',
};

export const commands: readonly CommandEntry[] = [
  {
    name: 'ls',
    group: 'Look',
    summary: 'list the children of a node, or with -R all below it',
    operands: [{ ...path, optional: true }],
    options: [
      { name: 'recursive', short: 'R', about: 'all below it, as full paths' },
      { name: 'stat', short: 'l', about: 'with version, children, bytes, time and owner' },
    ],
    examples: ['incumbent-zk ls /', 'incumbent-zk ls -R --stat /brokers'],
    load: async () => (await import('./commands/ls.ts')).ls,
  },
  {
    name: 'tree',
    group: 'Look',
    summary: 'draw a node and what is below it',
    operands: [{ ...path, optional: true }],
    options: [
      { name: 'depth', value: 'N', about: 'so many levels below it (default: all)' },
      { name: 'data', about: 'with the beginning of the data' },
    ],
    examples: ['incumbent-zk tree --depth 2 --data /'],
    load: async () => (await import('./commands/tree.ts')).tree,
  },
  {
    name: 'get',
    group: 'Look',
    summary: 'print the data of a node',
    description:
      'Bytes are printed as they are; on a terminal control characters are shown as escapes,\n' +
      'and what is not text as a hex dump.',
    operands: [path],
    options: [
      { name: 'stat', about: 'what is known about the node follows' },
      { name: 'hex', about: 'as a hex dump' },
      { name: 'watch', short: 'w', about: 'again after every change, until ctrl-C' },
    ],
    examples: ['incumbent-zk get /config > config.json', 'incumbent-zk get --watch /leader'],
    load: async () => (await import('./commands/get.ts')).get,
  },
  {
    name: 'stat',
    group: 'Look',
    summary: 'print what is known about a node',
    operands: [path],
    options: [],
    examples: ['incumbent-zk stat /config'],
    load: async () => (await import('./commands/stat.ts')).stat,
  },
  {
    name: 'watch',
    group: 'Look',
    summary: 'print changes of a node as they come',
    description:
      'Until ctrl-C. A `gap` is a time in which changes may have been missed, as after a reconnect.\n' +
      'Needs a server of 3.6 or later. The node need not exist.',
    operands: [path],
    options: [
      { name: 'recursive', short: 'R', about: 'and of all below it' },
      { name: 'count', value: 'N', about: 'end after so many events, gaps included' },
    ],
    examples: ['incumbent-zk watch -R /services', 'incumbent-zk watch --count 1 /config'],
    load: async () => (await import('./commands/watch.ts')).watch,
  },
  {
    name: 'ephemerals',
    group: 'Look',
    summary: 'list the ephemeral nodes at and below a node, with their sessions',
    operands: [{ ...path, optional: true }],
    options: [],
    examples: ['incumbent-zk ephemerals /brokers/ids'],
    load: async () => (await import('./commands/ephemerals.ts')).ephemerals,
  },
  {
    name: 'set',
    group: 'Change',
    summary: 'replace the data of a node',
    description:
      'DATA is text; `-` reads bytes from stdin. Text that looks like an option stands behind --.',
    operands: [path, data],
    options: [file, nodeVersion],
    examples: [
      'incumbent-zk set /config on',
      'incumbent-zk set --version 3 --file config.json /config',
      'incumbent-zk set /offset -- -1',
    ],
    load: async () => (await import('./commands/set.ts')).set,
  },
  {
    name: 'create',
    group: 'Change',
    summary: 'make a node, and print its path',
    description:
      'Without DATA the node has none; `-` reads bytes from stdin.\n' +
      'An ephemeral node ends with the session that made it: with -e the command holds the session,\n' +
      'and so the node, until ctrl-C.\n' +
      'Here -s is --sequential; -s URL stands in front of the command.',
    operands: [path, data],
    options: [
      {
        name: 'ephemeral',
        short: 'e',
        about: 'deleted with the session, which is held till ctrl-C',
      },
      { name: 'sequential', short: 's', about: 'the server appends a number of ten digits' },
      { name: 'container', short: 'c', about: 'deleted some time after its last child' },
      {
        name: 'ttl',
        value: 'DURATION',
        about: 'deleted so long after its last change, if it has no children',
      },
      { name: 'parents', short: 'p', about: 'make the nodes above it that are missing' },
      {
        name: 'acl',
        value: 'ACL',
        many: true,
        about: 'who may do what, such as digest:USER:PASSWORD:rwcda (repeatable)',
      },
      file,
    ],
    examples: [
      'incumbent-zk create -p /app/config on',
      'incumbent-zk create -e -s /queue/item- payload',
      'incumbent-zk create --ttl 10m --acl world:anyone:r --acl digest:joe:secret:all /note hello',
    ],
    load: async () => (await import('./commands/create.ts')).create,
  },
  {
    name: 'rm',
    group: 'Change',
    summary: 'delete a node, or with -r all below it too',
    description: 'Asks nothing. Refuses / and /zookeeper. With -r it is not atomic.',
    operands: [path],
    options: [
      { name: 'recursive', short: 'r', about: 'what is below it first' },
      nodeVersion,
      {
        name: 'max-nodes',
        value: 'N',
        about: 'with -r: delete nothing if there are more (default: 100000)',
      },
    ],
    examples: ['incumbent-zk rm /config', 'incumbent-zk rm -r --max-nodes 500 /old'],
    load: async () => (await import('./commands/rm.ts')).rm,
  },
  {
    name: 'acl',
    group: 'Change',
    summary: 'print who may do what with a node, or with --set change it',
    description:
      'An ACL is SCHEME:ID:PERMISSIONS, the permissions some of r(ead) w(rite) c(reate) d(elete)\n' +
      'a(dmin): world:anyone:r, auth::rwcda, digest:USER:PASSWORD:rw, digest-hash:USER:HASH:rw,\n' +
      'ip:10.0.0.0/8:r, x509:SUBJECT:rwcda, sasl:USER:rwcda. What is printed can be set again.',
    operands: [path, { name: 'ACL', optional: true, many: true }],
    options: [
      { name: 'set', value: 'ACL', many: true, about: 'the new ACL; further entries may follow' },
      { name: 'version', value: 'N', about: 'with --set: only if the ACL has this aversion' },
    ],
    examples: [
      'incumbent-zk acl /config',
      'incumbent-zk acl /config --set world:anyone:r ip:10.0.0.0/8:rwcda',
    ],
    load: async () => (await import('./commands/acl.ts')).acl,
  },
  {
    name: 'srvr',
    group: 'Servers and sessions',
    summary: 'ask every server of --server how it is (the word `srvr`)',
    description: 'Needs no session, and no quorum. Ends with 69 if none of them serves.',
    operands: [],
    options: [],
    examples: ['incumbent-zk -s zk://a:2181,b:2181,c:2181 srvr'],
    load: async () => (await import('./commands/srvr.ts')).srvr,
  },
  {
    name: 'config',
    group: 'Servers and sessions',
    summary: 'print the configuration of the ensemble',
    operands: [],
    options: [],
    examples: ['incumbent-zk config'],
    load: async () => (await import('./commands/config.ts')).config,
  },
  {
    name: 'whoami',
    group: 'Servers and sessions',
    summary: 'print who the server takes us for (3.7 and later)',
    operands: [],
    options: [],
    examples: ['incumbent-zk --auth digest:joe:secret whoami'],
    load: async () => (await import('./commands/whoami.ts')).whoami,
  },
];

/** The command's options, and the global ones without the letters that the command uses itself. */
export function optionsBehind(command: CommandEntry): readonly OptionSpec[] {
  const own = new Set(command.options.map(({ short }) => short));
  const global = globalOptions.map((spec) => {
    if (spec.short === undefined || !own.has(spec.short)) return spec;
    const { short: _, ...rest } = spec;
    return rest;
  });
  return [...command.options, ...global];
}
