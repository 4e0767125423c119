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
} from './module.ts';

const policy = 'incumbent_leader';

interface PolicyFields {
  /** The policies for the addresses of the leader. */
  readonly child: readonly object[];
  /** Why there is no address: what calls fail with. */
  readonly nobody: string;
}

/** The `loadBalancingConfig` of a channel that follows a leader. */
export function balancingBy(fields: PolicyFields): readonly object[] {
  return [{ [policy]: fields }];
}

class LeaderConfig implements BalancingConfig {
  readonly child: readonly object[];
  readonly nobody: string;

  constructor(fields: PolicyFields) {
    this.child = fields.child;
    this.nobody = fields.nobody;
  }

  static createFromJson(json: PolicyFields): LeaderConfig {
    return new LeaderConfig(json);
  }

  getLoadBalancerName(): string {
    return policy;
  }

  toJsonObject(): object {
    return { [policy]: { child: this.child, nobody: this.nobody } };
  }
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

  class LeaderBalancer implements Balancer {
    readonly #control: ChannelControl;
    /** For the leader of the moment. */
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
      const endpoints = (isList(given) ? given : (given.value ?? [])) as readonly Endpoint[];
      const before = this.#child;
      if (endpoints.length === 0) {
        const picker = new experimental.UnavailablePicker({ details: config.nobody });
        this.#child = undefined;
        this.#control.updateState(connectivityState.TRANSIENT_FAILURE, picker, config.nobody);
        before?.destroy();
        return true;
      }
      const childConfig = experimental.selectLbConfigFromList(config.child, true);
      if (childConfig === null) return false;
      const leader = JSON.stringify(endpoints);
      if (before !== undefined && leader === this.#leader) {
        before.updateAddressList(given, childConfig, options, note);
        return true;
      }
      this.#leader = leader;
      const child: Balancer = new experimental.ChildLoadBalancerHandler(
        experimental.createChildChannelControlHelper(this.#control, {
          updateState: (state, picker, message) => {
            if (this.#child !== child) return;
            this.#control.updateState(state, askingAgain(picker, this.#control), message);
          },
        }),
      );
      this.#child = child;
      child.updateAddressList(given, childConfig, options, note);
      // Afterwards, so that a connection that both want is not closed between them.
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
