export type { Meter, MeterOptions } from './meter.ts';
export { startMeter } from './meter.ts';
export type { Protocol, ProtocolName, Reader } from './protocols.ts';
export { protocols } from './protocols.ts';
export type { Traveller } from './round-trips.ts';
export { RoundTrips } from './round-trips.ts';
