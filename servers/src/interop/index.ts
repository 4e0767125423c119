/** Elections that our candidates hold together with the real kazoo, Curator and `etcdctl`. */
export type { Ground } from './ground.ts';
export { startGround } from './ground.ts';
export type { Seat } from './member.ts';
export { Member } from './member.ts';
export type { Change, Strike } from './plan.ts';
export { planChanges, strikes, strikesOf } from './plan.ts';
export type { Arrival, Played, Venue } from './play.ts';
export { arrivals, Play, sideOf } from './play.ts';
export type { Command, Layout, ZooKeeperPeer } from './program.ts';
export {
  compilePeer,
  layouts,
  ourCommand,
  peerCommand,
  peerMissing,
  zooKeeperLayouts,
} from './program.ts';
export { overlapReport, takeoverTable } from './report.ts';
export type { Overlap } from './verdict.ts';
export { judge } from './verdict.ts';
