// Creates the observers of ended executions that the settings ask for: the access log and the export of traces.

import { hostname } from 'node:os';
import type { ObservingConfig } from '../../src/observing-settings.ts';
import type { Log } from '../../src/platform/log.ts';
import type { MetricsRegistry } from '../../src/platform/metrics.ts';
import { readVersion } from '../../src/platform/version.ts';
import { AccessLog } from './access-log.ts';
import type { EndObserver } from './end-observer.ts';
import { TraceExport } from './trace-export.ts';

interface Parts {
  readonly log: Log;
  readonly metrics: MetricsRegistry;
}

export function createObservers(
  { dataDirectory, observing }: { readonly dataDirectory: string; readonly observing: ObservingConfig },
  parts: Parts,
): EndObserver[] {
  const { accessLog, traces } = observing;
  const observers: EndObserver[] = [];
  if (accessLog) observers.push(new AccessLog({ dataDirectory, ...parts }));
  if (traces !== null) {
    const resource = { serviceName: traces.serviceName, version: readVersion(), instance: hostname() };
    observers.push(new TraceExport({ ...traces, resource, ...parts }));
  }
  return observers;
}
