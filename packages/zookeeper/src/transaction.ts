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
 * The result of one operation of a committed transaction. Of creates only those of containers and
 * of nodes with a TTL have a Stat: servers give none for others.
 */
export type OperationResult =
  | { readonly type: 'create'; readonly path: string; readonly stat: Stat | null }
  | { readonly type: 'set'; readonly path: string; readonly stat: Stat }
  | { readonly type: 'delete'; readonly path: string }
  | { readonly type: 'check'; readonly path: string };

/** The results of a committed transaction. */
export interface CommitReply extends Reply {
  /** In the order of the operations. */
  readonly results: readonly OperationResult[];
}

/** The outcome of one operation of a transaction that failed. None of them was applied. */
export type OperationOutcome = 'would-have-succeeded' | 'failed' | 'not-tried';

/**
 * Code `TRANSACTION_FAILED`. One operation was refused, so none was applied. `cause` is the error
 * of that operation.
 */
export class TransactionError extends ZooKeeperError {
  override readonly name: string = 'TransactionError';
  /** The index of the refused operation, from 0. The message counts from 1. */
  declare readonly index: number;
  /** The error of the refused operation. */
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

/**
 * Operations that are applied all together or not at all. Each method checks its arguments at once,
 * and throws InvalidArgumentError.
 */
export class Transaction {
  readonly #caller: Caller;
  readonly #planned: Planned[] = [];
  #committed = false;

  /** Use `client.transaction()`. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** How many operations were added. */
  get length(): number {
    return this.#planned.length;
  }

  /**
   * Adds a create. The options are those of `client.create`, without `protected` and limits of
   * time.
   */
  create(path: string, data: Data = null, options: NodeOptions = {}): this {
    checkNodeOptions(options);
    const { kind, body } = planCreate(this.#caller, path, copyOf(data), options);
    this.#add('create', path, { opcode: kind.opcode, body } as MultiOperation);
    return this;
  }

  /**
   * Adds a replacement of a node's data.
   * @param version the version that the node must have. Default -1: any. It must not be undefined
   */
  set(path: string, data: Data, ...version: [version?: number]): this {
    const body = {
      path: this.#caller.serverPath(path),
      data: toBytes(copyOf(data), path),
      version: versionOf('set', version, path),
    };
    this.#add('set', path, { opcode: opcodes.setData, body });
    return this;
  }

  /**
   * Adds a deletion of a node without children.
   * @param version the version that the node must have. Default -1: any. It must not be undefined
   */
  delete(path: string, ...version: [version?: number]): this {
    const body = {
      path: this.#caller.serverPath(path),
      version: versionOf('delete', version, path),
    };
    this.#add('delete', path, { opcode: opcodes.delete, body });
    return this;
  }

  /**
   * Adds a demand: the node exists, and has the version. Default -1: any. It must not be undefined.
   */
  check(path: string, ...version: [version?: number]): this {
    const body = {
      path: this.#caller.serverPath(path),
      version: versionOf('check', version, path),
    };
    this.#add('check', path, { opcode: opcodes.check, body });
    return this;
  }

  /**
   * Sends the transaction. It can be committed only once.
   * @returns rejects with TransactionError if an operation is refused, and like every call
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

/**
 * @param given the arguments behind the others: a version that is given as undefined is an error
 */
function versionOf(call: string, given: readonly [version?: number], path: string): number {
  const [version] = given;
  if (given.length > 0) {
    checkOptions(call, { version } as object, ['version']);
    if (given.length > 1)
      throw new InvalidArgumentError(`${call} takes nothing behind the version`);
  }
  return checkVersion(version, path);
}
