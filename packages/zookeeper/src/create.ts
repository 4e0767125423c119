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

/** What kind of node to make. */
export interface NodeOptions {
  /** Deleted with the session (default false). */
  readonly ephemeral?: boolean | undefined;
  /** The server appends a number of ten digits to the name that only grows (default false). */
  readonly sequential?: boolean | undefined;
  /** Deleted by the server some time after its last child. Neither of the above. */
  readonly container?: boolean | undefined;
  /** Deleted by the server so long after its last change if it has no children. Not ephemeral, and
   *  not undefined. */
  readonly ttlMs?: number;
  /** Who may do what (default: everybody everything). Not undefined. */
  readonly acl?: readonly Acl[];
}

const nodeOptions = namesOf<NodeOptions>({
  ...{ ephemeral: true, sequential: true, container: true, ttlMs: true, acl: true },
});

export interface CreateOptions extends NodeOptions, CallOptions {
  /**
   * Finds the node again when the reply is lost, instead of making a second one: the name becomes
   * `_c_<guid>-name`, as Curator writes it. true makes a guid; a string is one (default false).
   * Ends with the session: SESSION_EXPIRED says of an ephemeral node that it may have been made, and
   * has gone or will go; of others that is CONNECTION_LOSS, `maybeApplied`.
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

/** A create in a transaction: the bounds are those of the whole, and nothing of it is done twice. */
export function checkNodeOptions(options: NodeOptions): void {
  checkOptions('create in a transaction', options, nodeOptions);
}

/** Which request makes such a node. @throws InvalidArgumentError */
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
