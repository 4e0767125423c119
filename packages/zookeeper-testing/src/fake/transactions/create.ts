import type { Create2Response, CreateTtlRequest } from '@incumbent/zookeeper/internal';
import { createFlags, errorCodes, eventTypes, opcodes } from '@incumbent/zookeeper/internal';
import { checkAcl, fixAcl, perms } from '../acl.ts';
import { containerOwner, isEphemeral, maxTtlMs, newNode, statOf, ttlOwner } from '../data-tree.ts';
import { cutParent, validatePath } from '../paths.ts';
import { Refusal } from '../refusal.ts';
import type { Transaction } from './transaction.ts';

const sequential = new Set<number>([
  createFlags.persistentSequential,
  createFlags.ephemeralSequential,
  createFlags.persistentSequentialWithTtl,
]);
const withTtl = new Set<number>([
  createFlags.persistentWithTtl,
  createFlags.persistentSequentialWithTtl,
]);
const ephemeral = new Set<number>([createFlags.ephemeral, createFlags.ephemeralSequential]);

/**
 * The checks come in the server's order. It decides the error of a request with two faults.
 * @param request `ttlMs` is -1 if the request has none
 */
export function create(
  transaction: Transaction,
  opcode: number,
  request: CreateTtlRequest,
): Create2Response {
  const { tree, zxid, timeMs, identities } = transaction;
  const owner = ownerOf(transaction, opcode, request);
  const parentPath = cutParent(request.path);
  const acl = fixAcl(request.acl, identities);
  const parent = tree.need(parentPath);
  checkAcl(parent.acl, perms.create, identities);
  const path = sequential.has(request.flags)
    ? request.path + sequenceNumber(parent.creates)
    : request.path;
  validatePath(path);
  if (tree.get(path) !== undefined) throw new Refusal(errorCodes.nodeExists);
  if (isEphemeral(parent)) throw new Refusal(errorCodes.noChildrenForEphemerals);
  const node = newNode({
    ...{ data: request.data, acl, czxid: zxid, mzxid: zxid, pzxid: zxid },
    ...{ ctime: timeMs, mtime: timeMs, ephemeralOwner: owner },
  });
  transaction.did(tree.insert(path, node), eventTypes.created, path);
  return { path, stat: statOf(node) };
}

function ownerOf(
  { sessionId }: Transaction,
  opcode: number,
  { flags, ttlMs }: CreateTtlRequest,
): bigint {
  if (flags < 0 || flags > createFlags.persistentSequentialWithTtl) {
    throw new Refusal(errorCodes.badArguments);
  }
  if (withTtl.has(flags) ? ttlMs <= 0 || ttlMs > maxTtlMs : ttlMs >= 0) {
    throw new Refusal(errorCodes.badArguments);
  }
  // 3.8 takes this one, and its process ends while applying it.
  if (opcode === opcodes.createTtl && ttlMs < 0) throw new Refusal(errorCodes.badArguments);
  if (opcode === opcodes.createContainer) return containerOwner;
  if (opcode === opcodes.createTtl) return ttlOwner(ttlMs);
  return ephemeral.has(flags) ? sessionId : 0n;
}

/** Ten characters, of which a minus is one once the counter has wrapped. */
function sequenceNumber(counter: number): string {
  return counter < 0 ? `-${String(-counter).padStart(9, '0')}` : String(counter).padStart(10, '0');
}
