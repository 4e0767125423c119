/**
 * One ephemeral node of any name, as mooon's `CZookeeperHelper::race_master` makes it:
 *
 *     /master/test                     ephemeral: the leader; its data says who that is
 *
 * Members of that make know nothing else. Ours keep the rest beside it, in a node that no member of
 * theirs looks at:
 *
 *     /master/test.incumbent           persistent: our record
 *     /master/test.incumbent/<guid>    ephemeral: the badge of the one of ours that has the node
 *
 * An ephemeral node has no children, so the record cannot stand below it. Node and badge are made
 * in one transaction. So they have the same czxid and the same session, and go together.
 */
import { InvalidOptionError } from '../../base/errors.ts';
import type { LockPaths } from './lock-nodes.ts';

const suffix = '.incumbent';

/**
 * @param path the node that a leader makes
 * @throws InvalidOptionError for a path that is that of a record
 */
export function nodePaths(path: string): LockPaths {
  if (path.endsWith(suffix)) {
    throw new InvalidOptionError(
      `the election's node ${path} must not end in "${suffix}": the record of an election "…" is the ` +
        `node "…${suffix}"; use another name`,
    );
  }
  return { record: `${path}${suffix}`, lock: path, breadcrumb: undefined };
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

/** The node that a leader makes, by the node of the record beside it. Undefined: it is no record. */
export function nodeOfRecord(path: string): string | undefined {
  return path.endsWith(suffix) && !path.endsWith(`/${suffix}`)
    ? path.slice(0, -suffix.length)
    : undefined;
}
