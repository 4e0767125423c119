/**
 * For `@incumbent/shards`, beside the public API. This is no part of that API: a patch release may
 * change it, so that package depends on exactly one version of this one.
 */
export type { Codec } from './backends/protobuf.ts';
export {
  bool,
  bytes,
  embedded,
  field,
  int32,
  MalformedMessageError,
  message,
  repeated,
  string,
  uint64,
} from './backends/protobuf.ts';
export { checkName, describeValue } from './base/candidate.ts';
export { checkNames } from './base/check-names.ts';
export { systemClock } from './base/clock.ts';
export { isIncurable } from './base/errors.ts';
export { defaultId, uniqueId } from './base/identity.ts';
export { stoppable } from './base/iterate.ts';
export { toJson } from './base/json.ts';
export { anyOf, bounded, Deferred, onAbort, sleep, Wakeup } from './base/wait.ts';
export { checkSignalOption, checkUntil, timingNames } from './core/options.ts';
export { TroubleTeller } from './core/trouble.ts';
export { administer } from './mechanisms/administer.ts';
export { LossWatch } from './mechanisms/lease/loss.ts';
export { Observation, type Sighting } from './mechanisms/lease/reading.ts';
export { emptyLeaseRecord } from './record/lease-record.ts';
export { drainOf, unfencedLimit } from './record/record.ts';
export { drained, vacated } from './record/transitions.ts';
