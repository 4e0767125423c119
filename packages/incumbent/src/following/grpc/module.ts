/**
 * The parts of `@grpc/grpc-js`, 1.13 or 1.14, that are used. The caller brings it. It is
 * never imported here.
 */
import { describeValue } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';

/** `@grpc/grpc-js`, as a whole: `import * as grpc from '@grpc/grpc-js'`. */
export interface GrpcModule {
  readonly experimental: {
    registerResolver(scheme: string, resolver: never): void;
  };
  readonly Metadata: new () => unknown;
  readonly ServerInterceptingCall: new (call: never, responder?: never) => unknown;
  readonly InterceptingCall: new (call: never, requester?: never) => unknown;
}

export type SubchannelAddress =
  | { readonly host: string; readonly port: number }
  | { readonly path: string };

export interface Endpoint {
  readonly addresses: readonly SubchannelAddress[];
}

export interface Target {
  readonly scheme?: string;
  readonly authority?: string;
  readonly path: string;
}

/** Opaque to us. */
export interface StatusOr {
  readonly ok: boolean;
  readonly value?: unknown;
}

/** Called for each call, with a copy of the caller's metadata that the call then goes on with. */
export interface ConfigSelector {
  invoke(path: string, metadata: Metadata): object;
  unref(): void;
}

/** 1.14 calls the listener. Before, it had methods. */
export interface ResolverListener {
  (endpoints: StatusOr, attributes: object, config: StatusOr, note: string): boolean;
  onSuccessfulResolution(
    endpoints: readonly Endpoint[],
    config: object,
    configError: null,
    configSelector: ConfigSelector,
    attributes: object,
  ): void;
}

export type ChannelOptions = Readonly<Record<string, unknown>>;

export interface Resolver {
  updateResolution(): void;
  destroy(): void;
}

/** Opaque to us. */
export interface BalancingConfig {
  getLoadBalancerName(): string;
  toJsonObject(): object;
}

/** The fate of one call. Fields that we do not use go through unchanged. */
export interface Pick {
  readonly subchannel: unknown;
  /** Why the call fails, if it does. */
  readonly status: { readonly code: number; readonly metadata: Metadata } | null;
  readonly onCallEnded: ((code: number, ...more: readonly unknown[]) => void) | null;
}

/** A connection of gRPC's to one address, which it keeps and reconnects. */
export interface Subchannel {
  getConnectivityState(): number;
  startConnecting(): void;
}

export interface Picker {
  pick(call: unknown): Pick;
}

export interface ChannelControl {
  createSubchannel(address: SubchannelAddress, options: object): Subchannel;
  updateState(state: number, picker: Picker, message: string | null): void;
  requestReresolution(): void;
}

export interface Balancer {
  /** Up to 1.13 a list of endpoints, no note, and nothing returned. */
  updateAddressList(
    endpoints: StatusOr | readonly Endpoint[],
    config: BalancingConfig,
    options: object,
    note?: string,
  ): boolean | undefined;
  exitIdle(): void;
  resetBackoff(): void;
  destroy(): void;
  getTypeName(): string;
}

export interface Metadata {
  get(key: string): readonly unknown[];
  set(key: string, value: string): void;
  clone(): Metadata;
  getOptions(): CallOptions;
  setOptions(options: CallOptions): void;
}

/** Fields that we do not use go through unchanged. */
export interface CallOptions {
  readonly waitForReady?: boolean;
}

/** The module as we use it inside, untyped towards the user. */
export interface Grpc {
  readonly connectivityState: { readonly TRANSIENT_FAILURE: number };
  readonly status: Readonly<Record<'ABORTED' | 'INVALID_ARGUMENT' | 'UNAVAILABLE', number>>;
  readonly Metadata: new () => Metadata;
  readonly experimental: {
    registerResolver(
      scheme: string,
      resolver: {
        new (target: Target, listener: ResolverListener, options: ChannelOptions): Resolver;
        getDefaultAuthority(target: Target): string;
      },
    ): void;
    registerLoadBalancerType(
      name: string,
      balancer: new (control: ChannelControl) => Balancer,
      config: { createFromJson(json: never): BalancingConfig },
    ): void;
    selectLbConfigFromList(
      configs: readonly object[],
      orElseDefault: boolean,
    ): BalancingConfig | null;
    createChildChannelControlHelper(
      parent: ChannelControl,
      overrides: Partial<ChannelControl>,
    ): ChannelControl;
    readonly ChildLoadBalancerHandler: new (control: ChannelControl) => Balancer;
    readonly BaseSubchannelWrapper: new (child: Subchannel) => Subchannel;
    readonly UnavailablePicker: new (status: { details: string }) => Picker;
    /** From 1.14 on: the attribute that has the config selector. */
    readonly CHANNEL_ARGS_CONFIG_SELECTOR_KEY?: string;
    /** From 1.14 on. */
    statusOrFromValue?(value: unknown): StatusOr;
  };
}

const neededToResolve = [
  'registerResolver',
  'registerLoadBalancerType',
  'selectLbConfigFromList',
  'createChildChannelControlHelper',
  'ChildLoadBalancerHandler',
  'BaseSubchannelWrapper',
  'UnavailablePicker',
] as const;

/** @throws InvalidOptionError unless it is a module that resolvers can be registered with */
export function resolverModule(module: GrpcModule): Grpc {
  const grpc = anyModule(module);
  const missing = neededToResolve.filter((name) => typeof grpc.experimental?.[name] !== 'function');
  if (missing.length > 0 || typeof grpc.connectivityState !== 'object') {
    throw new InvalidOptionError(
      `this @grpc/grpc-js has no experimental.${missing.join(', experimental.')}; its resolver API ` +
        'differs between minor versions, and 1.13 and 1.14 are known',
    );
  }
  return grpc;
}

/** @throws InvalidOptionError unless it looks like `@grpc/grpc-js` */
export function anyModule(module: GrpcModule): Grpc {
  const grpc = module as unknown as Partial<Grpc> | null;
  if (typeof grpc !== 'object' || grpc === null || typeof grpc.Metadata !== 'function') {
    throw new InvalidOptionError(
      'the first argument is the module @grpc/grpc-js (import * as grpc from "@grpc/grpc-js"), ' +
        `not ${describeValue(module)}`,
    );
  }
  return grpc as Grpc;
}
