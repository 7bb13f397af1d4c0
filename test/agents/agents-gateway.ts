// The world that agents run in: an installation, the simulated provider behind it, a wire tap before it, and no way out
// of the machine.

import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { type ClosedNetwork, startClosedNetwork } from './closed-network.ts';
import { startWireTap, type WireTap } from './wire-tap.ts';

export const AGENTS_KEY = `tg-test-agents-${'a'.repeat(32)}`;
export const AGENTS_ORGANIZATION = 'agents';
export const OPENING_CREDIT_PICO = 1_000n * 10n ** 12n;
/**
 * What the provider calls the only model: longer than some of its aliases and shorter than others, so that bodies grow
 * and shrink.
 */
export const PROVIDER_MODEL = 'agent-2026-05-01';

/** An installation, and what stands between it and agents. */
export interface AgentsInstallation {
  readonly tollgate: Tollgate;
  readonly tap: WireTap;
  readonly network: ClosedNetwork;
  close(): Promise<void>;
}

export interface AgentsGateway extends AgentsInstallation {
  readonly provider: SimulatedProvider;
}

export async function startAgentsGateway(aliases: readonly string[]): Promise<AgentsGateway> {
  const provider = await startSimulatedProvider();
  const installation = await startAgentsInstallation(agentsConfiguration(provider.url, aliases)).catch(
    async (fault: unknown) => {
      await provider.stop();
      throw fault;
    },
  );
  return {
    ...installation,
    provider,
    async close() {
      try {
        await installation.close();
      } finally {
        await provider.stop();
      }
    },
  };
}

export async function startAgentsInstallation(configurationYaml: string): Promise<AgentsInstallation> {
  const tollgate = await startTollgate({ configurationYaml });
  const tap = await startWireTap(tollgate.url);
  const network = await startClosedNetwork();
  return {
    tollgate,
    tap,
    network,
    async close() {
      await tap.close();
      await network.close();
      await tollgate.stop();
    },
  };
}

/** Like the demo's, at the prices that tests compute their expectations from. */
export function agentsConfiguration(upstreamUrl: string, aliases: readonly string[]): string {
  return `providers:
  - id: sim
    base_url: ${upstreamUrl}
    api_key: sk-simulated-provider
models:
  - id: sim/agent
    display_name: Simulated Agent
    kind: text
    aliases: ${JSON.stringify(aliases)}
    context_length: 1000000
    max_output_tokens: 128000
    max_completion_tokens_cap: 128000
    tokenizer: o200k_base
    served_by:
      - provider: sim
        model: ${PROVIDER_MODEL}
        apis: [chat_completions, responses, messages, count_tokens]
        price: { input: "1.25", cached_input: "0.125", cache_write: "1.5", output: "10.00" }
organizations:
  - slug: ${AGENTS_ORGANIZATION}
    billing: prepaid
    opening_credit: "1000.00"
    users: [{ email: owner@agents.test, role: owner }]
    keys: [{ name: agents, user: owner@agents.test, secret: ${AGENTS_KEY} }]
`;
}
