// Reads the files of a provider's TLS settings: whom it trusts, and the certificate by which it knows this gateway.

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
 * Once per change of the catalog, and at a start: a renewed certificate is read when the processes roll. A file that
 * cannot be read is left out with a warning: the provider then refuses the connection, and no other one is hurt.
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
