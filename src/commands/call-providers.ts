// Calls the providers of a configuration file from the command line, through the same client, proxies and certificates
// as a gateway.

import { type Environment, readConfig } from '../config.ts';
import { configuredProvider } from '../domain/configuration/provider-schema.ts';
import { readRequestSettings } from '../domain/configuration/request-settings.ts';
import type { Provider } from '../domain/models/provider.ts';
import { systemClock } from '../platform/clock.ts';
import { MetricsRegistry } from '../platform/metrics.ts';
import { ProviderCalls, type Providers } from '../upstream/providers.ts';

/** Calls `use` with what calls providers, and closes all connections afterwards. */
export async function withProviders<Result>(
  environment: Environment,
  use: (providers: Providers) => Promise<Result>,
): Promise<Result> {
  const { upstreamClient, proxies } = readConfig(environment);
  const calls = new ProviderCalls(new MetricsRegistry(), systemClock, { client: upstreamClient, proxies });
  try {
    return await use(calls);
  } finally {
    await calls.close();
  }
}

export type CallableProvider =
  | { readonly ok: true; readonly provider: Provider }
  /** In words that go on from "provider ID": a variable that is not set, or what else is wrong with its entry. */
  | { readonly ok: false; readonly reason: string };

/** The provider of an entry as the file has it, with what the environment says. */
export function callableProvider(entry: unknown, environment: Environment): CallableProvider {
  const missing = new Set<string>();
  const filled = fillIn(entry, environment, missing);
  const [name] = missing;
  if (name !== undefined) return { ok: false, reason: `needs ${name}, which the environment does not have` };
  const parsed = configuredProvider.safeParse(filled);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { ok: false, reason: `has a mistake in the file: ${issue?.path.join('.')} ${issue?.message}` };
  }
  const { requests, ...plain } = parsed.data;
  return { ok: true, provider: requests === null ? plain : { ...plain, requests: readRequestSettings(requests) } };
}

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

function fillIn(value: unknown, environment: Environment, missing: Set<string>): unknown {
  if (typeof value === 'string')
    return value.replace(REFERENCE, (_, name: string) => {
      const found = environment[name] ?? '';
      if (found === '') missing.add(name);
      return found;
    });
  if (Array.isArray(value)) return value.map((inner) => fillIn(inner, environment, missing));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fillIn(inner, environment, missing)]));
}
