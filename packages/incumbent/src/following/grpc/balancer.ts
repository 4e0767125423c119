/**
 * The load balancing policy of channels that follow a leader. gRPC's own policies keep a connection
 * for as long as no other one is established. So they would go on calling a leader that was
 * replaced, or one that is frozen and never answers. This policy lets go of a leader as soon as it
 * is known not to lead. Calls under way stay where they are. Among the addresses of one leader the
 * policy of the user's service config chooses, pick_first by default.
 */
import type {
  Balancer,
  BalancingConfig,
  ChannelControl,
  Endpoint,
  Grpc,
  Pick,
  Picker,
  StatusOr,
} from './module.ts';

const policy = 'incumbent_leader';
/** A channel option of ours. */
const termOption = 'incumbent.term';

interface PolicyFields {
  /** The policies for the addresses of the leader. */
  readonly child: readonly object[];
  /** A text that differs for another leader, and for another term. */
  readonly term: string;
  /** Why there is no address. Calls fail with it. */
  readonly nobody: string;
}

/** The `loadBalancingConfig` of a channel that follows a leader. */
export function balancingBy(fields: PolicyFields): readonly object[] {
  return [{ [policy]: fields }];
}

class LeaderConfig implements BalancingConfig {
  readonly fields: PolicyFields;

  constructor(fields: PolicyFields) {
    this.fields = fields;
  }

  static createFromJson(json: PolicyFields): LeaderConfig {
    return new LeaderConfig(json);
  }

  getLoadBalancerName(): string {
    return policy;
  }

  toJsonObject(): object {
    return { [policy]: this.fields };
  }
}

/** Long, because its classes derive from those in the user's copy of gRPC. */
export function registerBalancer(grpc: Grpc): void {
  const { connectivityState, experimental, status } = grpc;
  const selectorKey = experimental.CHANNEL_ARGS_CONFIG_SELECTOR_KEY;

  /** Tells a call that was never sent from one that may have been carried out. */
  const tellingWhy = (picker: Picker, why: 'no-leader' | 'unreachable'): Picker => ({
    pick(call): Pick {
      const pick = picker.pick(call);
      if (pick.subchannel !== null || pick.status?.code !== status.UNAVAILABLE) return pick;
      // A copy: gRPC writes into it how often it has tried, and pickers give the same one
      // to all calls.
      const metadata = pick.status.metadata.clone();
      metadata.set('incumbent-refused', why);
      return { ...pick, status: { ...pick.status, metadata } };
    },
  });

  /** A server that refuses may not lead any more, and some stores are read rarely. */
  const askingAgain = (picker: Picker, control: ChannelControl): Picker => ({
    pick(call): Pick {
      const pick = picker.pick(call);
      // Not a pick that sends a call.
      if (pick.subchannel === null) return pick;
      return {
        ...pick,
        onCallEnded(code, ...more) {
          pick.onCallEnded?.(code, ...more);
          if (code === status.UNAVAILABLE) control.requestReresolution();
        },
      };
    },
  });

  /**
   * gRPC's policies ask a failed connection to try again after its back-off, up to two minutes
   * later. They do so even when no channel holds it any more by then. A leader that comes back
   * would then have a connection from a channel that follows another one, or is closed. It would
   * last until that leader stops. The policies ask once more when the back-off is over, if they are
   * still there. That is soon enough.
   */
  class LeaderSubchannel extends experimental.BaseSubchannelWrapper {
    override startConnecting(): void {
      if (this.getConnectivityState() !== connectivityState.TRANSIENT_FAILURE) {
        super.startConnecting();
      }
    }
  }

  class LeaderBalancer implements Balancer {
    readonly #control: ChannelControl;
    /** The policy for the present leader. */
    #child: Balancer | undefined;
    #leader = '';

    constructor(control: ChannelControl) {
      this.#control = control;
    }

    updateAddressList(
      given: StatusOr | readonly Endpoint[],
      config: BalancingConfig,
      options: object,
      note?: string,
    ): boolean {
      if (!(config instanceof LeaderConfig)) return false;
      const { child: policies, nobody, term } = config.fields;
      const endpoints = (isList(given) ? given : (given.value ?? [])) as readonly Endpoint[];
      const before = this.#child;
      if (endpoints.length === 0) {
        const picker = new experimental.UnavailablePicker({ details: nobody });
        this.#child = undefined;
        const failing = tellingWhy(picker, 'no-leader');
        this.#control.updateState(connectivityState.TRANSIENT_FAILURE, failing, nobody);
        before?.destroy();
        return true;
      }
      const childConfig = experimental.selectLbConfigFromList(policies, true);
      if (childConfig === null) return false;
      const leader = JSON.stringify([term, endpoints]);
      // gRPC keeps connections by address and options. With them it keeps how long it waits before
      // it tries again, up to two minutes. That must not come from an older term at this address.
      const ofTerm: Record<string, unknown> = { ...options, [termOption]: term };
      // Channels share connections, however their calls are configured.
      if (selectorKey !== undefined) delete ofTerm[selectorKey];
      if (before !== undefined && leader === this.#leader) {
        before.updateAddressList(given, childConfig, ofTerm, note);
        return true;
      }
      this.#leader = leader;
      const child: Balancer = new experimental.ChildLoadBalancerHandler(
        experimental.createChildChannelControlHelper(this.#control, {
          createSubchannel: (address, itsOptions) =>
            new LeaderSubchannel(this.#control.createSubchannel(address, itsOptions)),
          updateState: (state, picker, message) => {
            if (this.#child !== child) return;
            const asking = askingAgain(picker, this.#control);
            this.#control.updateState(state, tellingWhy(asking, 'unreachable'), message);
          },
        }),
      );
      this.#child = child;
      child.updateAddressList(given, childConfig, ofTerm, note);
      // Afterwards, so that a connection that both want is not closed in between.
      before?.destroy();
      return true;
    }

    exitIdle(): void {
      this.#child?.exitIdle();
    }

    resetBackoff(): void {
      this.#child?.resetBackoff();
    }

    destroy(): void {
      this.#child?.destroy();
      this.#child = undefined;
    }

    getTypeName(): string {
      return policy;
    }
  }

  experimental.registerLoadBalancerType(policy, LeaderBalancer, LeaderConfig);
}

function isList(given: StatusOr | readonly Endpoint[]): given is readonly Endpoint[] {
  return Array.isArray(given);
}
