// Makes the egress rules for addresses that customers choose, and keeps them in step with the site's network.

import { resolve6 } from 'node:dns';
import type { Config } from '../../config.ts';
import { EgressGuard } from '../../platform/egress/egress-guard.ts';
import type { Log } from '../../platform/log.ts';

/**
 * A name with IPv4 addresses only: if the site's resolver translates addresses, its answer shows the prefix (RFC 7050).
 */
const IPV4_ONLY = 'ipv4only.arpa';
const LEARN_AGAIN_MS = 3_600_000;

export function createEgressGuard({ egressAllow }: Pick<Config, 'egressAllow'>, log: Log): EgressGuard {
  const guard = new EgressGuard({ anyPort: false, allowPrivate: false, allowed: egressAllow });
  const learn = (): void =>
    resolve6(IPV4_ONLY, (error, addresses) => {
      // Nearly every site translates no addresses.
      if (error !== null || addresses.length === 0) return;
      guard.learnTranslation(addresses);
      log.info({ addresses }, 'this site reaches IPv4 through a prefix of IPv6, which is closed to customers');
    });
  learn();
  setInterval(learn, LEARN_AGAIN_MS).unref();
  return guard;
}
