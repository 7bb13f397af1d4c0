// Reads the files of a provider's TLS settings: the authority that signs the provider's certificate, and the
// certificate by which this gateway identifies itself to it.

import { readFileSync } from 'node:fs';
import { getCACertificates } from 'node:tls';
import type { TlsSettings } from '../domain/models/provider.ts';

/** As Node's TLS takes them. */
export interface TlsOptions {
  readonly ca?: readonly string[];
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Called when connections to a provider are set up, so a renewed certificate is read when the processes roll. A file
 * that cannot be read is left out with a warning: calls to this provider then fail, and no other provider is affected.
 */
export function readTlsFiles(providerId: string, { ca, cert, key }: TlsSettings): TlsOptions {
  const read = (path: string | undefined): string | null => {
    if (path === undefined) return null;
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      process.emitWarning(`provider ${providerId}: ${path} cannot be read: ${(error as Error).message}`);
      return null;
    }
  };
  const [authority, certificate, privateKey] = [read(ca), read(cert), read(key)];
  return {
    ...(authority === null ? {} : { ca: [...getCACertificates('default'), authority] }),
    ...(certificate === null || privateKey === null ? {} : { cert: certificate, key: privateKey }),
  };
}
