// A row of docs/evidence/zookeeper-features.md: the fake and a standalone server refuse every reconfiguration.

import { startEnsemble } from '@incumbent/zookeeper-testing';
import { expect, it } from 'vitest';
import { needServers, scoped } from '../support/scope.ts';
import { refusal } from '../support/waiting.ts';

needServers();

it(
  'reconfig takes a member out and in again, if the configuration is the one that is expected',
  scoped(async (scope) => {
    const ensemble = scope.later(await startEnsemble(3, { reconfiguration: true }));
    const leader = await ensemble.leader();
    const leaving = ensemble.members.find((member) => member !== leader)!;
    const client = await scope.connect(leader.connectionString, { sessionTimeoutMs: 30_000 });
    const before = (await client.getConfig()).text;
    expect(before).toContain(leaving.configurationLine.split('=')[0]);
    const configId = (text: string) => BigInt(`0x${/^version=([0-9a-f]+)$/m.exec(text)![1]}`);

    const change = { leaving: [leaving.id] };
    const wrong = await refusal(client.reconfig(change, { configId: configId(before) + 1n }));
    expect(wrong.code).toBe('BAD_VERSION');
    const without = await client.reconfig(change, { configId: configId(before) });
    expect(without.text).not.toContain(`server.${leaving.id}=`);
    expect((await client.getConfig()).text).toBe(without.text);
    const again = await client.reconfig({ joining: [leaving.configurationLine] });
    expect(again.text).toContain(`server.${leaving.id}=`);
    expect(configId(again.text)).toBeGreaterThan(configId(without.text));
  }),
);
