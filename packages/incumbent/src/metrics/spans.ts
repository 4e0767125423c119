/// <reference lib="esnext.disposable" preserve="true" />
import { systemClock } from '../base/clock.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { causeOf, describeNotElected } from '../base/not-elected.ts';
import { describeEnd } from '../base/reasons.ts';
import { textOf } from '../base/thrown.ts';
import type { FollowedCampaign } from './campaigns.ts';
import { Campaigns } from './campaigns.ts';
import type { Attributes } from './instruments.ts';
import type { MetricsHandle } from './prom-client.ts';

/** The part of a `Tracer` of `@opentelemetry/api` that is used. */
export interface OtelTracer {
  startSpan(
    name: string,
    options: { attributes: Attributes; links: { context: OtelSpanContext }[] },
  ): OtelSpan;
}

export interface OtelSpanContext {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

export interface OtelSpan {
  spanContext(): OtelSpanContext;
  setAttribute(name: string, value: string | boolean): unknown;
  addEvent(name: string, attributes: Attributes): unknown;
  recordException(exception: Error): void;
  setStatus(status: { code: 2; message: string }): unknown;
  end(): void;
}

/** The last span of a campaign, whether it is open or not, to which the next one is linked. */
interface Trail {
  span: OtelSpan;
  isOpen: boolean;
}

/** `SpanStatusCode.ERROR` */
const failed = 2;

/**
 * Makes spans of all elections of this process, each linked to the one before:
 *
 * - `incumbent.campaign`: a candidate waits for the seat. Why it waits, and until when, are events.
 * - `incumbent.takeover`: it has won the seat, and fences an unclean predecessor.
 * - `incumbent.handover`: the term was told to stop, until its seat is given back or left.
 *
 * They have no parent, because no request of a caller is behind them.
 *
 * @throws InvalidOptionError
 */
export function traceElections(tracer: OtelTracer): MetricsHandle {
  if (typeof (tracer as OtelTracer | null)?.startSpan !== 'function') {
    throw new InvalidOptionError(
      "traceElections takes a Tracer of @opentelemetry/api, such as `trace.getTracer('my-service')`",
    );
  }
  const trails = new Map<FollowedCampaign, Trail>();

  const end = (campaign: FollowedCampaign) => {
    const trail = trails.get(campaign);
    if (trail?.isOpen !== true) return;
    trail.isOpen = false;
    trail.span.end();
  };
  const start = (name: string, campaign: FollowedCampaign): OtelSpan => {
    end(campaign);
    const { election, candidate, term } = campaign;
    const before = trails.get(campaign);
    const span = tracer.startSpan(name, {
      attributes: {
        'incumbent.election': election,
        'incumbent.candidate': candidate,
        ...(term !== undefined && { 'incumbent.token': String(term.token) }),
      },
      links: before === undefined ? [] : [{ context: before.span.spanContext() }],
    });
    trails.set(campaign, { span, isOpen: true });
    return span;
  };
  const openSpan = (campaign: FollowedCampaign) => {
    const trail = trails.get(campaign);
    return trail?.isOpen === true ? trail.span : undefined;
  };
  const fail = (span: OtelSpan | undefined, message: string, error: unknown) => {
    if (error instanceof Error) span?.recordException(error);
    span?.setStatus({ code: failed, message });
  };

  const campaigns = new Campaigns(systemClock, {
    waits(campaign, why) {
      const span = openSpan(campaign) ?? start('incumbent.campaign', campaign);
      if (why === undefined) return;
      const cause = causeOf(why);
      span.addEvent(`waiting for: ${why.kind}`, {
        'incumbent.why': describeNotElected(why),
        ...(cause !== undefined && { 'incumbent.error': textOf(cause) }),
      });
    },
    wins(campaign, { predecessor }) {
      start('incumbent.takeover', campaign).setAttribute('incumbent.predecessor', predecessor);
    },
    leads: end,
    failsToTakeOver: (campaign, error) => fail(openSpan(campaign), textOf(error), error),
    stops(campaign, { beliefMs }) {
      // Else the takeover goes on until the seat is given back.
      if (beliefMs !== undefined) start('incumbent.handover', campaign);
    },
    ends(campaign, _term, { reason, released, error }) {
      const span = openSpan(campaign);
      span?.setAttribute('incumbent.reason', reason);
      span?.setAttribute('incumbent.released', released);
      if (!released) fail(span, describeEnd(reason), error);
      end(campaign);
    },
    isOver(campaign) {
      end(campaign);
      trails.delete(campaign);
    },
  });
  const close = () => {
    campaigns.close();
    for (const campaign of trails.keys()) end(campaign);
    trails.clear();
  };
  return { close, [Symbol.dispose]: close };
}
