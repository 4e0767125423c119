import type { CreateRequest, MultiOperation, MultiResult } from '@incumbent/zookeeper/internal';
import { createFlags, errorCodes, opcodes } from '@incumbent/zookeeper/internal';
import { Refusal } from '../refusal.ts';
import { check, remove, setData } from './changes.ts';
import { create } from './create.ts';
import type { Transaction } from './transaction.ts';

const ttlFlags = new Set<number>([
  createFlags.persistentWithTtl,
  createFlags.persistentSequentialWithTtl,
]);

/**
 * All operations or none. A failed multi is no error of the request. The operations before the
 * refused one are answered with 0, that one with its code, those behind it with -2.
 */
export function multi(
  transaction: Transaction,
  operations: readonly MultiOperation[],
): readonly MultiResult[] {
  if (operations.some(isUnreadable)) throw new Refusal(errorCodes.marshallingError);
  const results: MultiResult[] = [];
  for (const operation of operations) {
    try {
      results.push(apply(transaction, operation));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      transaction.rollBack();
      return operations.map((_, at): MultiResult => {
        const code = at < results.length ? errorCodes.ok : errorCodes.runtimeInconsistency;
        return { opcode: opcodes.error, error: at === results.length ? error.code : code };
      });
    }
  }
  return results;
}

/** An operation that the server cannot even decode. Then no item is answered. */
function isUnreadable({ opcode, body }: MultiOperation): boolean {
  if (opcode === opcodes.getData || opcode === opcodes.getChildren) return true;
  return opcode !== opcodes.createTtl && 'flags' in body && ttlFlags.has(body.flags);
}

function apply(transaction: Transaction, operation: MultiOperation): MultiResult {
  switch (operation.opcode) {
    case opcodes.create:
    case opcodes.create2:
    case opcodes.createContainer: {
      // Here, and only here, the flags decide what is created.
      const { flags } = operation.body;
      const isContainer = flags === createFlags.container;
      const opcode = isContainer ? opcodes.createContainer : opcodes.create;
      return created(transaction, opcode, { ...operation.body, ttlMs: -1 });
    }
    case opcodes.createTtl:
      return created(transaction, opcodes.createTtl, operation.body);
    case opcodes.delete:
      remove(transaction, operation.body);
      return { opcode: opcodes.delete, body: {} };
    case opcodes.setData:
      return { opcode: opcodes.setData, body: { stat: setData(transaction, operation.body) } };
    case opcodes.check:
      check(transaction, operation.body);
      return { opcode: opcodes.check, body: {} };
    case opcodes.getData:
    case opcodes.getChildren:
      throw new Refusal(errorCodes.badArguments); // refused before
    default:
      return operation satisfies never;
  }
}

/** A kind that has a Stat is answered as a create2, whatever was asked. */
function created(
  transaction: Transaction,
  opcode: number,
  request: CreateRequest & { readonly ttlMs: number },
): MultiResult {
  const body = create(transaction, opcode, request);
  return opcode === opcodes.create
    ? { opcode, body: { path: body.path } }
    : { opcode: opcodes.create2, body };
}
