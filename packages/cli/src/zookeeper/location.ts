import type { ZooKeeperOptions } from 'incumbent/zookeeper';
import type { OpenStore } from '../context.ts';
import type { SecretSource } from '../url/secrets.ts';
import type { TlsNames } from '../url/tls.ts';

/** The parameters of a `zk:` URL. */
export interface ZooKeeperParameters {
  /** The session timeout to ask for; undefined: that of `--lease`. */
  readonly timeoutMs: number | undefined;
  readonly compatibility: '3.4' | '3.5' | undefined;
  /** Each of them SCHEME:CREDENTIALS, one a line. */
  readonly auth: readonly SecretSource[];
  /** USER:PASSWORD, for SASL DIGEST-MD5. */
  readonly sasl: SecretSource | undefined;
  readonly tls: TlsNames;
  /** Handed on to the library. */
  readonly options: ZooKeeperOptions;
}

/** The parts of a `zk:` or `zks:` URL. */
export interface ZooKeeperLocation {
  readonly scheme: 'zk' | 'zks';
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** `/` for none. */
  readonly chroot: string;
  /** The connection string for the client: without parameters. */
  readonly connectionString: string;
  readonly parameters: ZooKeeperParameters;
  /** In its plain form, with *** for secrets. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

/** The node below which elections are, without the chroot. */
export function electionsNode({ layout, root }: ZooKeeperOptions): string {
  return root ?? (layout === undefined || layout === 'incumbent' ? '/incumbent' : '/');
}

/** The node of an election, without the chroot. */
export function electionNode(options: ZooKeeperOptions, election: string): string {
  const base = electionsNode(options);
  return `${base === '/' ? '' : base}/${election}`;
}

/** In the layout `node`, the record stands beside the node of the election (docs/stores/zookeeper-node.md). */
const recordSuffix = '.incumbent';

/** The nodes that show that an election is there: one of them is enough. */
export function electionNodes(options: ZooKeeperOptions, election: string): readonly string[] {
  const node = electionNode(options, election);
  return options.layout === 'node' ? [node, `${node}${recordSuffix}`] : [node];
}
