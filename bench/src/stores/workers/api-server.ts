/** The stand-in for the API server of Kubernetes, so that its work is not in ours. */
import { FakeApiServer } from '@incumbent/servers';
import { serve } from '../../calls/serve.ts';
import type { ApiServerMethods } from '../messages.ts';

serve<ApiServerMethods>({
  async open() {
    const { port, requests } = await FakeApiServer.start({ plain: true });
    // It keeps a log of them, for tests.
    setInterval(() => requests.splice(0), 1_000);
    return { port };
  },
});
