import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/**
 * Files of integration tests that take a minute and more, the longest first. Without results of an earlier run, as in
 * CI, vitest begins with the largest files. A long one that begins last then runs alone, while the other workers wait.
 */
const longest = [
  'packages/incumbent/test-integration/conformance-zookeeper.test.ts',
  'packages/incumbent/test-integration/listing.test.ts',
  'packages/incumbent/test-integration/conformance-zookeeper-ensemble.test.ts',
  'packages/cli/test-integration/run-crash.test.ts',
  'packages/cli/test-integration/agent-stores.test.ts',
  'packages/cli/test-integration/stores-trouble.test.ts',
  'packages/cli/test-integration/agent.test.ts',
  'packages/redis-failover/test-integration/data.test.ts',
  'packages/cli/test-integration/web/dashboard.test.ts',
  'packages/incumbent/test-integration/conformance-etcd.test.ts',
  'packages/cli/test-integration/zookeeper-commands.test.ts',
  'packages/incumbent/test-integration/conformance-postgres.test.ts',
  'packages/cli/test-integration/names.test.ts',
  'packages/incumbent/test-integration/etcd-trouble.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ project, moduleId }: TestSpecification) => {
      if (project.name !== 'integration') return -1;
      const at = longest.findIndex((file) => moduleId.endsWith(file));
      return at < 0 ? longest.length : at;
    };
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}
