/**
 * A cron job of NestJS that runs in one of all copies. Its own schedule wakes every copy, and the
 * first to be elected does the work.
 *
 *     REDIS_URL=redis://… node examples/dist/cron/nest.js      # as often as you like
 */
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BeforeApplicationShutdown } from '@nestjs/common';
import { Inject, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import type { Election, Term } from 'incumbent';
import { createElection, NotElectedError } from 'incumbent';
import type { RedisGuard } from 'incumbent/redis';
import { redis } from 'incumbent/redis';
import { createClient } from 'redis';

const { REDIS_URL = 'redis://localhost', LEASE = '15s' } = process.env;
const { SCHEDULE = '*/5 * * * *', PERIOD_S = '300', WAIT = '1m', HOLD = '3m' } = process.env;

const client = createClient({ url: REDIS_URL });
client.on('error', (error: Error) => console.error(error.message));

@Injectable()
class Reports implements BeforeApplicationShutdown {
  @Inject('REPORTS') private readonly election!: Election<RedisGuard>;

  // A process that was busy for a moment is woken late, instead of not at all (threshold).
  @Cron(SCHEDULE, { waitForCompletion: true, threshold: 60_000 })
  async run(): Promise<void> {
    try {
      await this.election.lead((term) => this.send(term), { wait: WAIT, holdAtLeast: HOLD });
    } catch (error) {
      if (!(error instanceof NotElectedError && error.taken)) throw error;
    } // another copy has done it: `error.why` says which
  }

  private async send(term: Term<RedisGuard>): Promise<void> {
    const due = Math.floor(Date.now() / 1_000 / Number(PERIOD_S)) * Number(PERIOD_S);
    for (const customer of await client.sMembers('customers')) {
      await sleep(100, undefined, { signal: term.signal }); // stands for what takes time
      term.assertLeading(100);
      // Written once for each customer and period, and never by an older term than the last one.
      const writeOnce = `return redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3])`;
      const report = JSON.stringify({ by: term.candidate, token: `${term.token}` });
      await term.guard.run(writeOnce, ['reports'], [`${due} ${customer}`, report]);
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.election.close(); // waits for the report, and gives the seat back
    await client.close();
  }
}

@Module({
  imports: [ScheduleModule.forRoot()],
  providers: [
    Reports,
    {
      provide: 'REPORTS',
      useFactory: async () => {
        await client.connect();
        return createElection({ name: 'reports', backend: redis(client), lease: LEASE });
      },
    },
  ],
})
class App {}

const app = await NestFactory.createApplicationContext(App);
app.enableShutdownHooks();
