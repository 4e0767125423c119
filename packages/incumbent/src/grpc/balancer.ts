/**
 * The load balancing policy of channels that follow a leader. gRPC's own policies keep a connection
 * for as long as no other one is established, so they would go on calling a leader that was replaced,
 * or that is frozen and will never answer; this one lets go of it as soon as it is known not to lead.
 * Calls that are under way stay where they are. Among the addresses of one leader the policy of the
 * user's service config chooses, pick_first by default.
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
  Subchannel,
} from './module.ts';

const policy = 'incumbent_leader';
/** A channel option of ours. */
const termOption = 'incumbent.term';

interface PolicyFields {
  /** The policies for the addresses of the leader. */
  readonly child: readonly object[];
  /** Another leader, or another term of one: another text. */
  readonly term: string;
  /** Why there is no address: what calls fail with. */
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

/** What a leader's addresses are called by, with the last subchannel of each. */
interface Child {
  readonly balancer: Balancer;
  readonly subchannels: ReadonlyMap<string, Subchannel>;
}

export function registerBalancer(grpc: Grpc): void {
  const { connectivityState, experimental, status } = grpc;

  /** Whoever refuses may not lead any more, and some stores are asked rarely. */
  const askingAgain = (picker: Picker, control: ChannelControl): Picker => ({
    pick(call): Pick {
      const pick = picker.pick(call);
      // Not one that a call is sent by.
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
   * What waits until it connects anew would do so though nobody wants it any more, and the connection
   * would be nobody's to close. Made to try now, it waits no more.
   */
  const end = (child: Child | undefined): void => {
    for (const subchannel of child?.subchannels.values() ?? []) {
      if (subchannel.getConnectivityState() === connectivityState.TRANSIENT_FAILURE) {
        subchannel.getRealSubchannel().resetBackoff();
      }
    }
    child?.balancer.destroy();
  };

  class LeaderBalancer implements Balancer {
    readonly #control: ChannelControl;
    /** For the leader of the moment. */
    #child: Child | undefined;
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
        this.#control.updateState(connectivityState.TRANSIENT_FAILURE, picker, nobody);
        end(before);
        return true;
      }
      const childConfig = experimental.selectLbConfigFromList(policies, true);
      if (childConfig === null) return false;
      const leader = JSON.stringify([term, endpoints]);
      // gRPC keeps connections by address and options, and with them how long it waits before it
      // tries again, up to two minutes: not what was learnt of an older term at this address.
      const ofTerm = { ...options, [termOption]: term };
      if (before !== undefined && leader === this.#leader) {
        before.balancer.updateAddressList(given, childConfig, ofTerm, note);
        return true;
      }
      this.#leader = leader;
      const subchannels = new Map<string, Subchannel>();
      const balancer: Balancer = new experimental.ChildLoadBalancerHandler(
        experimental.createChildChannelControlHelper(this.#control, {
          createSubchannel: (address, ...more) => {
            const subchannel = this.#control.createSubchannel(address, ...more);
            subchannels.set(JSON.stringify(address), subchannel);
            return subchannel;
          },
          updateState: (state, picker, message) => {
            if (this.#child?.balancer !== balancer) return;
            this.#control.updateState(state, askingAgain(picker, this.#control), message);
          },
        }),
      );
      this.#child = { balancer, subchannels };
      balancer.updateAddressList(given, childConfig, ofTerm, note);
      // Afterwards, so that a connection that both want is not closed between them.
      end(before);
      return true;
    }

    exitIdle(): void {
      this.#child?.balancer.exitIdle();
    }

    resetBackoff(): void {
      this.#child?.balancer.resetBackoff();
    }

    destroy(): void {
      end(this.#child);
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
