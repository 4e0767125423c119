/**
 * The settings of the service config for each call. grpc-js has this too, but it parses
 * `waitForReady` and then looks only at the call's metadata. With that, a service config could not
 * make calls wait.
 */
import type { ConfigSelector } from './module.ts';
import type { MethodConfig } from './service-config.ts';

const none: MethodConfig = { name: [] };

export function selectMethodConfig(methodConfig: readonly MethodConfig[]): ConfigSelector {
  // parseServiceConfig has made sure that no name is there twice.
  const byName = new Map(
    methodConfig.flatMap((each) =>
      each.name.map(({ service = '', method = '' }) => [`${service}/${method}`, each] as const),
    ),
  );
  return {
    invoke(path, metadata) {
      const [service = '', method = ''] = path.split('/').filter((part) => part !== '');
      const config =
        byName.get(`${service}/${method}`) ?? byName.get(`${service}/`) ?? byName.get('/') ?? none;
      const options = metadata.getOptions();
      // The caller's own setting for one call counts more. The metadata is gRPC's copy, but its
      // options are not.
      if (config.waitForReady !== undefined && options.waitForReady === undefined) {
        metadata.setOptions({ ...options, waitForReady: config.waitForReady });
      }
      return { methodConfig: config, pickInformation: {}, status: 0, dynamicFilterFactories: [] };
    },
    unref() {},
  };
}
