// `run --seats 2`: two of three programs run, each in a seat of its own.
import { expect } from 'vitest';
import { processes, signalTogether, test, until } from './support/run-process.ts';

test('two of three lead; one is killed with its program, and the third gets its seat', async ({
  lab,
}) => {
  const tell = ['sh', '-c', 'echo "$INCUMBENT_SEAT $INCUMBENT_TOKEN"; exec sleep 1000'];
  const settings = { options: ['--seats', '2'] };
  const runs = ['A', 'B', 'C'].map((id) => lab.run(id, tell, settings));
  const leads = (run: (typeof runs)[number]) => run.stdout.includes('\n');
  await until('two lead', () => runs.filter(leads).length === 2);
  const waiting = runs.find((run) => !leads(run))!;
  const [killed, other] = runs.filter(leads) as [(typeof runs)[number], (typeof runs)[number]];
  const seatOf = (run: (typeof runs)[number]) => run.stdout.split(' ')[0];
  expect([seatOf(killed), seatOf(other)].sort()).toEqual(['1', '2']);
  const started = await killed.started();
  expect(await killed.event('leading')).toMatchObject({ seat: Number(seatOf(killed)) });
  expect(await waiting.event('waiting-for')).toMatchObject({ why: { kind: 'led', seats: 2 } });
  const status = await lab.cli('status', '-e', 'work', '--json');
  expect(
    status.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).seat),
  ).toEqual([1, 2]);
  signalTogether('KILL', killed.pid);
  await until('the third leads', () => leads(waiting));
  expect(seatOf(waiting)).toBe(seatOf(killed));
  expect(leads(other)).toBe(true);
  expect(processes().some(({ pid, state }) => pid === started.pid && state !== 'Z')).toBe(false);
  // Its guard knew which seat to give back, so the lease of 15 s was not waited out.
  const { stdout } = await lab.cli('history', '-e', 'work', '--seat', seatOf(killed)!, '--json');
  expect(JSON.parse(stdout.split('\n')[0]!)).toMatchObject({ id: killed.id, why: 'unclean' });
  const refused = await lab.run('D', tell, { options: ['--seats', '3'] }).ends();
  expect(refused.code).toBe(64);
});
