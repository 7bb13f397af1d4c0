// Calls the providers of a configuration file from the command line: through the same client, proxies and certificates
// as a gateway, with tokens that it obtains as jobs does for a gateway.

import type { z } from 'zod';
import { type Environment, readConfig } from '../../config.ts';
import { configuredProvider } from '../../domain/configuration/schema/provider-schema.ts';
import { readRequestSettings } from '../../domain/configuration/schema/request-settings.ts';
import type { TokenFields, TokenSecret } from '../../domain/configuration/schema/token-schema.ts';
import type { Provider } from '../../domain/models/provider.ts';
import { wordsOf, YAML_TYPES } from '../../domain/refusals/issue-words.ts';
import { issuesWithin } from '../../domain/refusals/union-issues.ts';
import { systemClock } from '../../platform/clock.ts';
import { MetricsRegistry } from '../../platform/metrics.ts';
import { ProviderCalls, type Providers } from '../../upstream/providers.ts';
import { readTlsFiles } from '../../upstream/tls-files.ts';
import { obtainToken } from '../../upstream/tokens/obtain-token.ts';
import { formPoster } from '../../upstream/tokens/post-form.ts';

/** Calls `use` with a client that calls providers, and closes all connections afterwards. */
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
  /**
   * `reason` continues the text "provider ID": a variable that is not set, another mistake in its entry, or why it has
   * no token.
   */
  | { readonly ok: false; readonly lacks: 'entry' | 'token'; readonly reason: string };

/** The provider of an entry in the file, completed from the environment and with its token. Never rejects. */
export async function callableProvider(entry: unknown, environment: Environment): Promise<CallableProvider> {
  const missing = new Set<string>();
  const filled = fillIn(entry, environment, missing);
  const [name] = missing;
  if (name !== undefined)
    return { ok: false, lacks: 'entry', reason: `needs ${name}, which the environment does not have` };
  const parsed = configuredProvider.safeParse(filled);
  if (!parsed.success) {
    const [issue] = parsed.error.issues.flatMap(issuesWithin) as [z.core.$ZodIssue];
    const reason = `has a mistake in the file: ${issue.path.join('.')} ${wordsOf(issue, YAML_TYPES)}`;
    return { ok: false, lacks: 'entry', reason };
  }
  const { requests, tokenSecret, ...plain } = parsed.data;
  const provider = requests === null ? plain : { ...plain, requests: readRequestSettings(requests) };
  const settings = requests?.token;
  if (settings === undefined || tokenSecret == null) return { ok: true, provider };
  return withToken(provider, settings, tokenSecret, environment);
}

async function withToken(
  provider: Provider,
  settings: TokenFields,
  secret: string,
  environment: Environment,
): Promise<CallableProvider> {
  const { proxy, tls = {} } = provider.requests ?? {};
  const answer = await obtainToken({
    settings,
    secret: JSON.parse(secret) as TokenSecret,
    clock: systemClock,
    post: formPoster({ proxy, proxies: readConfig(environment).proxies, tls: readTlsFiles(provider.id, tls) }),
  });
  if (!answer.ok) return { ok: false, lacks: 'token', reason: `gets no token: who gives it ${answer.reason}` };
  const validUntilMs = systemClock.nowMs() + answer.lifeSeconds * 1_000;
  return {
    ok: true,
    provider: { ...provider, apiKey: answer.token, token: { validUntilMs, overdueFromMs: validUntilMs } },
  };
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
