import type { CallOptions, Data } from './arguments.ts';
import { checkOptions, checkVersion, copyOf, toBytes } from './arguments.ts';
import type { Caller } from './caller.ts';
import type { NodeOptions } from './create.ts';
import { checkNodeOptions, planCreate } from './create.ts';
import { InvalidArgumentError, ProtocolError, ZooKeeperError } from './errors.ts';
import { findFailure } from './multi-results.ts';
import { errorCodes, opcodes } from './protocol/constants.ts';
import type { MultiOperation, MultiResult } from './protocol/multi.ts';
import { requests } from './protocol/requests.ts';
import type { Stat } from './protocol/stat.ts';
import type { Reply } from './replies.ts';

/**
 * What one operation of a committed transaction gave. Servers give no Stat for plain creates in a
 * transaction, but for containers and nodes with a TTL.
 */
export type OperationResult =
  | { readonly type: 'create'; readonly path: string; readonly stat: Stat | null }
  | { readonly type: 'set'; readonly path: string; readonly stat: Stat }
  | { readonly type: 'delete'; readonly path: string }
  | { readonly type: 'check'; readonly path: string };

export interface CommitReply extends Reply {
  /** In the order of the operations. */
  readonly results: readonly OperationResult[];
}

/** What became of one operation of a transaction that failed. Nothing of it was applied. */
export type OperationOutcome = 'would-have-succeeded' | 'failed' | 'not-tried';

/** One operation was refused, so none was applied. `cause` is its own error. */
export class TransactionError extends ZooKeeperError {
  override readonly name: string = 'TransactionError';
  /** Of the refused operation, from 0; the message counts from 1. */
  declare readonly index: number;
  declare readonly cause: ZooKeeperError;
  /** In the order of the operations. */
  readonly outcomes: readonly OperationOutcome[];

  constructor(
    failed: { readonly index: number; readonly error: ZooKeeperError },
    outcomes: readonly OperationOutcome[],
    zxid: bigint,
  ) {
    const { index, error } = failed;
    super(
      'TRANSACTION_FAILED',
      `operation ${index + 1} of ${outcomes.length} was refused, so none was applied: ${error.message}`,
      {
        index,
        path: error.path,
        operation: 'multi',
        serverCode: error.serverCode,
        zxid,
        cause: error,
      },
      error.retryable,
    );
    this.outcomes = outcomes;
  }
}

interface Planned {
  readonly type: OperationResult['type'];
  readonly path: string;
  readonly operation: MultiOperation;
}

/** Operations that are applied all together or not at all. Arguments are checked when added. */
export class Transaction {
  readonly #caller: Caller;
  readonly #planned: Planned[] = [];
  #committed = false;

  /** Use `client.transaction()`. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  get length(): number {
    return this.#planned.length;
  }

  create(path: string, data: Data = null, options: NodeOptions = {}): this {
    checkNodeOptions(options);
    const { kind, body } = planCreate(this.#caller, path, copyOf(data), options);
    this.#add('create', path, { opcode: kind.opcode, body } as MultiOperation);
    return this;
  }

  /** @param version the version that the node must have (default -1: any); not undefined */
  set(path: string, data: Data, ...version: [version?: number]): this {
    const body = {
      path: this.#caller.serverPath(path),
      data: toBytes(copyOf(data), path),
      version: versionOf('set', version, path),
    };
    this.#add('set', path, { opcode: opcodes.setData, body });
    return this;
  }

  /** @param version the version that the node must have (default -1: any); not undefined */
  delete(path: string, ...version: [version?: number]): this {
    const body = {
      path: this.#caller.serverPath(path),
      version: versionOf('delete', version, path),
    };
    this.#add('delete', path, { opcode: opcodes.delete, body });
    return this;
  }

  /** Demands that a node exists and has the version (default -1: any; not undefined). */
  check(path: string, ...version: [version?: number]): this {
    const body = {
      path: this.#caller.serverPath(path),
      version: versionOf('check', version, path),
    };
    this.#add('check', path, { opcode: opcodes.check, body });
    return this;
  }

  /**
   * Sends it. A transaction is committed once.
   * @returns rejects TransactionError when an operation is refused
   */
  async commit(options?: CallOptions): Promise<CommitReply> {
    checkOptions('commit', options);
    if (this.#committed) throw new InvalidArgumentError('this transaction was committed already');
    if (this.#planned.length === 0) {
      throw new InvalidArgumentError('a transaction has at least one operation');
    }
    this.#committed = true;
    const operations = this.#planned.map(({ operation }) => operation);
    return this.#caller.call(
      {
        kind: requests.multi,
        complete: (results, { zxid, sentAt }) => ({
          results: this.#results(results, zxid),
          zxid,
          sentAt,
        }),
      },
      undefined,
      operations,
      options,
    );
  }

  #add(type: Planned['type'], path: string, operation: MultiOperation): void {
    if (this.#committed) throw new InvalidArgumentError('this transaction was committed already');
    this.#planned.push({ type, path, operation });
  }

  #results(results: readonly MultiResult[], zxid: bigint): readonly OperationResult[] {
    if (results.length !== this.#planned.length) {
      throw new ProtocolError(
        `${results.length} results for a multi of ${this.#planned.length} operations`,
      );
    }
    const failure = findFailure(results, (index) => {
      const planned = this.#planned[index] as Planned;
      return { path: planned.path, operation: planned.type, zxid };
    });
    if (failure !== undefined) {
      const outcomes = results.map((result, index): OperationOutcome => {
        if (index === failure.index) return 'failed';
        return result.opcode === opcodes.error && result.error === errorCodes.ok
          ? 'would-have-succeeded'
          : 'not-tried';
      });
      throw new TransactionError(failure, outcomes, zxid);
    }
    return results.map((result, index) => this.#result(result, this.#planned[index] as Planned));
  }

  #result(result: MultiResult, { type, path }: Planned): OperationResult {
    switch (result.opcode) {
      case opcodes.create:
        return { type: 'create', path: this.#caller.chroot.toUser(result.body.path), stat: null };
      case opcodes.create2:
      case opcodes.createContainer:
      case opcodes.createTtl: {
        const { path: made, stat } = result.body;
        return { type: 'create', path: this.#caller.chroot.toUser(made), stat };
      }
      case opcodes.setData:
        return { type: 'set', path, stat: result.body.stat };
      case opcodes.delete:
        return { type: 'delete', path };
      case opcodes.check:
        return { type: 'check', path };
      case opcodes.getData:
      case opcodes.getChildren:
      case opcodes.error:
        throw new ProtocolError(`a result of type ${result.opcode} for a ${type}`);
      default:
        return result satisfies never;
    }
  }
}

/** @param given what stands behind the other arguments: a version that is undefined is none */
function versionOf(call: string, given: readonly [version?: number], path: string): number {
  const [version] = given;
  if (given.length > 0) {
    checkOptions(call, { version } as object, ['version']);
    if (given.length > 1)
      throw new InvalidArgumentError(`${call} takes nothing behind the version`);
  }
  return checkVersion(version, path);
}
