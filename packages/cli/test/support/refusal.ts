import { CommandError } from '../../src/failure.ts';

/** The error that `attempt` throws; fails when it throws none, or another. */
export function refusal(attempt: () => unknown): CommandError {
  try {
    attempt();
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
