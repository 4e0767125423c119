// Names of metrics in expressions: each must be in the table of instruments.
import { electionInstruments, otherElections } from 'incumbent/metrics';

const byName = new Map(electionInstruments.map((instrument) => [instrument.name, instrument]));

/** The name for Prometheus. */
export function metric(name) {
  const instrument = byName.get(name);
  if (instrument === undefined) throw new Error(`there is no instrument ${name}`);
  return instrument.promName;
}

/** Elections that have an attribute of their own. */
export function named(name) {
  return `${metric(name)}{election!="${otherElections}"}`;
}
