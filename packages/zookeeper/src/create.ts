import { acl, checkAcl } from './acl.ts';
import type { CallOptions, Data } from './arguments.ts';
import { checkOptions, checkTtl, namesOf, toBytes } from './arguments.ts';
import type { Caller } from './caller.ts';
import { InvalidArgumentError } from './errors.ts';
import { checkPath } from './paths.ts';
import { createFlags } from './protocol/constants.ts';
import type {
  Acl,
  Create2Response,
  CreateRequest,
  CreateTtlRequest,
  PathMessage,
} from './protocol/messages.ts';
import type { RequestKind } from './protocol/requests.ts';
import { requests } from './protocol/requests.ts';
import type { CreateReply } from './replies.ts';
import type { AnswerOf, Operation } from './session/pending-request.ts';

/** The kind of node to make. */
export interface NodeOptions {
  /** Deleted with the session. Default false. */
  readonly ephemeral?: boolean | undefined;
  /**
   * The server appends a number of ten digits to the name. The number only grows. Default false.
   */
  readonly sequential?: boolean | undefined;
  /**
   * The server deletes the node some time after its last child. Not together with the options
   * above, or with `ttlMs`. Default false.
   */
  readonly container?: boolean | undefined;
  /**
   * The server deletes the node so many ms after its last change if it has no children: 1 to 2^40 -
   * 1. Not together with `ephemeral`. It must not be undefined.
   */
  readonly ttlMs?: number;
  /** The rights on the node. Default: everybody has all rights. It must not be undefined. */
  readonly acl?: readonly Acl[];
}

const nodeOptions = namesOf<NodeOptions>({
  ...{ ephemeral: true, sequential: true, container: true, ttlMs: true, acl: true },
});

/** Options of `create`. */
export interface CreateOptions extends NodeOptions, CallOptions {
  /**
   * Makes the call find its node again when the reply was lost, instead of making a second one. The
   * name becomes `_c_<guid>-name`, as Curator writes it. `true` makes a guid; a string of 8 to 64
   * letters, digits and `-` is one. Default false.
   *
   * This ends with the session. SESSION_EXPIRED means for an ephemeral node: it may have been made,
   * and is deleted or will be. For other nodes the error is CONNECTION_LOSS with `maybeApplied`.
   */
  readonly protected?: boolean | string | undefined;
}

const createOptions = [
  ...nodeOptions,
  ...namesOf<Omit<CreateOptions, keyof NodeOptions>>({
    ...{ signal: true, timeoutMs: true, protected: true },
  }),
];

type CreateKind =
  | RequestKind<CreateTtlRequest, Create2Response>
  | RequestKind<CreateRequest, Create2Response>
  | RequestKind<CreateRequest, PathMessage>;

export interface CreatePlan {
  readonly kind: CreateKind;
  readonly body: CreateTtlRequest;
}

export function checkCreateOptions(options: CreateOptions): void {
  checkOptions('create', options, createOptions);
}

/**
 * Options of a create in a transaction. Limits of time belong to `commit`, and nothing of a
 * transaction is sent twice.
 */
export function checkNodeOptions(options: NodeOptions): void {
  checkOptions('create in a transaction', options, nodeOptions);
}

/** Chooses the request that makes such a node. @throws InvalidArgumentError */
export function planCreate(
  caller: Caller,
  path: string,
  data: Data,
  options: NodeOptions,
): CreatePlan {
  const { ephemeral = false, sequential = false, container = false, ttlMs } = options;
  checkPath(path, sequential);
  if (container && (ephemeral || sequential || ttlMs !== undefined)) {
    throw new InvalidArgumentError(
      `${path}: a container is neither ephemeral nor sequential and has no TTL`,
      { path },
    );
  }
  if (ephemeral && ttlMs !== undefined) {
    throw new InvalidArgumentError(
      `${path}: an ephemeral node ends with its session and takes no ttlMs (${ttlMs})`,
      { path },
    );
  }
  if (options.acl !== undefined) checkAcl(options.acl);
  const body = (flags: number): CreateTtlRequest => ({
    path: sequential ? caller.chroot.prefix + path : caller.chroot.toServer(path),
    data: toBytes(data, path),
    acl: options.acl ?? open,
    flags,
    ttlMs: ttlMs === undefined ? 0 : checkTtl(ttlMs, path),
  });
  if (container) return { kind: requests.createContainer, body: body(createFlags.container) };
  if (ttlMs !== undefined) {
    const flags = sequential
      ? createFlags.persistentSequentialWithTtl
      : createFlags.persistentWithTtl;
    return { kind: requests.createTtl, body: body(flags) };
  }
  const flags = (ephemeral ? createFlags.ephemeral : 0) | (sequential ? 2 : 0);
  return { kind: caller.withStat ? requests.create2 : requests.create, body: body(flags) };
}

const open: readonly Acl[] = [acl.world()];

export function sendCreate(
  caller: Caller,
  path: string,
  plan: CreatePlan,
  options: CallOptions | undefined,
): Promise<CreateReply> {
  const create: Operation<CreateTtlRequest, PathMessage | Create2Response, CreateReply> = {
    kind: plan.kind as RequestKind<CreateTtlRequest, PathMessage | Create2Response>,
    complete: (response, { zxid, sentAt }: AnswerOf) => ({
      path: caller.chroot.toUser(response.path),
      stat: 'stat' in response ? response.stat : null,
      zxid,
      sentAt,
    }),
  };
  return caller.call(create, path, plan.body, options);
}
