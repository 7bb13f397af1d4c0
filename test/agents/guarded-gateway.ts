// The world of the guardrail steps: an installation whose policy cloaks addresses and blocks words, before a scripted
// provider.

import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import {
  AGENTS_ORGANIZATION,
  type AgentsInstallation,
  agentsConfiguration,
  startAgentsInstallation,
} from './agents-gateway.ts';
import { FORBIDDEN_WORD, LoopProvider } from './loop-provider.ts';

/** What no agent may ask about. */
export const REFUSED_WORD = 'plantedfalcon';

export interface GuardedGateway extends AgentsInstallation {
  readonly upstream: FakeUpstream;
  readonly provider: LoopProvider;
}

const GUARDRAILS = `guardrails:
  - name: agents
    rules:
      - { id: people, detect: [email], stage: input, action: cloak }
      - { id: words, words: [${FORBIDDEN_WORD}], stage: output, action: block }
      - { id: projects, words: [${REFUSED_WORD}], stage: input, action: block }
`;

export async function startGuardedGateway(aliases: readonly string[]): Promise<GuardedGateway> {
  const provider = new LoopProvider();
  const upstream = await startFakeUpstream(provider.answer);
  const organization = `  - slug: ${AGENTS_ORGANIZATION}\n`;
  const yaml = agentsConfiguration(upstream.url, aliases).replace(
    organization,
    `${organization}    guardrails: { policy: agents }\n`,
  );
  const installation = await startAgentsInstallation(GUARDRAILS + yaml).catch(async (fault: unknown) => {
    await upstream.close();
    throw fault;
  });
  return {
    ...installation,
    upstream,
    provider,
    async close() {
      try {
        await installation.close();
      } finally {
        await upstream.close();
      }
    },
  };
}
