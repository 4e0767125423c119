/** Tools for testing code that uses elections, and for testing backends. No test runner needed. */
export { SimulatedClock, type SimulatedClockOptions, settle } from './clock.ts';
