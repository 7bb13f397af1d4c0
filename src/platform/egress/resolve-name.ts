// Looks up names that customers choose by DNS alone. /etc/hosts is not used, because it is the operator's. The system's
// resolver is not used either: its threads also sync the spool, and a name server that hangs would hold them.

import { type LookupAddress, Resolver } from 'node:dns';

const TIMEOUT_MS = 2_000;
const TRIES = 2;

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** `servers`: the name servers to ask instead of the system's. */
export function resolveByDns(
  servers: readonly string[] | null = null,
): (host: string, options: unknown, callback: Answer) => void {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (servers !== null) resolver.setServers(servers);
  return (host, _options, callback) => {
    const found: LookupAddress[] = [];
    let [asked, failure] = [2, null as NodeJS.ErrnoException | null];
    const take = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[]) => {
      // A name that has addresses of one kind only is no failure.
      if (error !== null) failure ??= error;
      else for (const address of addresses) found.push({ address, family });
      asked -= 1;
      if (asked > 0) return;
      callback(found.length > 0 ? null : (failure ?? notFound(host)), found);
    };
    resolver.resolve4(host, take(4));
    resolver.resolve6(host, take(6));
  };
}

function notFound(host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`the name ${host} has no address`), { code: 'ENOTFOUND' });
}
