// Writes a configuration file with a test's own providers and deployments: for failover, and for timeouts that are
// short enough to wait for.

import type { ApiName } from '../../src/domain/models/apis.ts';
import { KEYS } from './test-configuration.ts';

export interface TestProvider {
  readonly id: string;
  readonly url: string;
  readonly timeouts?: {
    readonly connect_ms?: number;
    readonly first_byte_ms?: number;
    readonly idle_ms?: number;
    readonly total_ms?: number;
  };
  readonly onDisconnect?: 'cancel' | 'drain';
}

export interface ServedModel {
  readonly id: string;
  readonly kind?: 'text' | 'image';
  /** In the order in which they are tried. */
  readonly deployments: readonly {
    readonly provider: string;
    readonly model: string;
    readonly streamUsage?: 'request';
  }[];
}

const TEXT_APIS: readonly ApiName[] = ['chat_completions', 'responses', 'messages', 'count_tokens'];

export function providersConfiguration(providers: readonly TestProvider[], models: readonly ServedModel[]): string {
  // JSON is valid YAML.
  return JSON.stringify({
    providers: providers.map(({ id, url, timeouts, onDisconnect }) => ({
      id,
      base_url: url,
      api_key: `sk-${id}-0123456789`,
      on_disconnect: onDisconnect ?? 'cancel',
      ...(timeouts === undefined ? {} : { timeouts }),
    })),
    models: models.map(({ id, kind, deployments }) => ({
      id,
      kind: kind ?? 'text',
      context_length: 1_000_000,
      max_completion_tokens_cap: 4_096,
      served_by: deployments.map(({ provider, model, streamUsage }) => ({
        provider,
        model,
        apis: kind === 'image' ? ['images'] : TEXT_APIS,
        ...(streamUsage === undefined ? {} : { stream_usage: streamUsage }),
        price: kind === 'image' ? { image: '0.04' } : { input: '1.25', output: '10.00' },
      })),
    })),
    organizations: [
      {
        slug: 'acme',
        billing: 'prepaid',
        opening_credit: '1000000.00',
        users: [{ email: 'a@acme.test', role: 'owner' }],
        keys: [{ name: 'ci', user: 'a@acme.test', secret: KEYS.acme }],
      },
      {
        slug: 'other',
        billing: 'prepaid',
        opening_credit: '1000000.00',
        users: [{ email: 'o@other.test', role: 'owner' }],
        keys: [{ name: 'only', user: 'o@other.test', secret: KEYS.other }],
      },
    ],
  });
}
