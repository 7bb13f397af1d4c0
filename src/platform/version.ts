// The version of this product, and of what runs it, as a metric.

import { readFileSync } from 'node:fs';
import type { MetricsRegistry } from './metrics.ts';

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

/** By convention this is a gauge of 1 whose labels hold the information; during an upgrade there are two series. */
export function registerBuildInfo(metrics: MetricsRegistry): void {
  metrics
    .gauge('tollgate_build_info', 'Always 1; the labels say which version runs, on which Node.', {
      labelNames: ['version', 'node'],
      merge: 'max',
    })
    .labels(readVersion(), process.versions.node)
    .set(1);
}
