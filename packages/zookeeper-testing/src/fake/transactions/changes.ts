import type { Stat } from '@incumbent/zookeeper';
import type { SetAclRequest, SetDataRequest, VersionedPath } from '@incumbent/zookeeper/internal';
import { errorCodes, eventTypes } from '@incumbent/zookeeper/internal';
import { checkAcl, fixAcl, perms } from '../acl.ts';
import { statOf } from '../data-tree.ts';
import { cutParent, validatePath } from '../paths.ts';
import { Refusal } from '../refusal.ts';
import type { Transaction } from './transaction.ts';

/** Nodes that the server needs itself. */
const indelible = new Set(['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota']);

export function remove(transaction: Transaction, { path, version }: VersionedPath): void {
  const { tree, zxid, identities } = transaction;
  const parentPath = cutParent(path);
  if (indelible.has(path)) throw new Refusal(errorCodes.badArguments);
  checkAcl(tree.need(parentPath).acl, perms.delete, identities);
  const node = tree.need(path);
  checkVersion(node.version, version);
  if (node.children.size > 0) throw new Refusal(errorCodes.notEmpty);
  transaction.did(tree.remove(path, zxid), eventTypes.deleted, path);
}

/** Deletes a node as the server does by itself: without asking for permission. */
export function removeUnconditionally(transaction: Transaction, path: string): void {
  const { tree, zxid } = transaction;
  transaction.did(tree.remove(path, zxid), eventTypes.deleted, path);
}

export function setData(transaction: Transaction, request: SetDataRequest): Stat {
  const { tree, zxid, timeMs, identities } = transaction;
  const { path, data } = request;
  validatePath(path);
  const node = tree.need(path);
  checkAcl(node.acl, perms.write, identities);
  const version = checkVersion(node.version, request.version);
  const undo = tree.change(path, { data, version, mzxid: zxid, mtime: timeMs });
  transaction.did(undo, eventTypes.dataChanged, path);
  return statOf(node);
}

export function setAcl(transaction: Transaction, request: SetAclRequest): Stat {
  const { tree, identities } = transaction;
  const { path } = request;
  validatePath(path);
  const acl = fixAcl(request.acl, identities);
  const node = tree.need(path);
  checkAcl(node.acl, perms.admin, identities);
  const aversion = checkVersion(node.aversion, request.version);
  transaction.did(tree.change(path, { acl, aversion }));
  return statOf(node);
}

export function check({ tree, identities }: Transaction, { path, version }: VersionedPath): void {
  validatePath(path);
  const node = tree.need(path);
  checkAcl(node.acl, perms.read, identities);
  checkVersion(node.version, version);
}

/** The version after the change. */
function checkVersion(present: number, expected: number): number {
  if (expected !== -1 && expected !== present) throw new Refusal(errorCodes.badVersion);
  return (present + 1) | 0;
}
