// `npm run test:agents`: runs coding agents, unmodified, against a gateway of its own, and prints for each what worked
// and what did not. Not part of `npm test`: the agents take a gigabyte, and what they do changes with their versions.
//
//   node test/agents/run-agents.ts [--guardrails] [agent ...]
//
// `--guardrails`: only what they do behind guardrails.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openLedgerView } from '../support/ledger-view.ts';
import { watchForLeftovers } from '../support/process-leftovers.ts';
import { decimalOfPico } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';
import type { Agent } from './agent.ts';
import { AGENTS_ORGANIZATION, type AgentsGateway, OPENING_CREDIT_PICO, startAgentsGateway } from './agents-gateway.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import { startGuardedGateway } from './guarded-gateway.ts';
import { runGuardedSession } from './guardrail-steps.ts';
import { installAgents, wantedVersion } from './install-agents.ts';
import { opencodeChat, opencodeMessages } from './opencode.ts';
import { runSession, type StepOutcome } from './session-steps.ts';

const AGENTS: readonly Agent[] = [codex, claudeCode, opencodeChat, opencodeMessages];

const { values: options, positionals: wanted } = parseArgs({
  options: { guardrails: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const agents = AGENTS.filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)));
if (agents.length === 0) {
  console.error(`no such agent; there are ${AGENTS.map(({ name }) => name).join(', ')}`);
  process.exit(1);
}
const failed = await runAll();
process.exit(failed ? 1 : 0);

async function runAll(): Promise<boolean> {
  await installAgents(agents);
  const leftovers = watchForLeftovers();
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-agents-'));
  const failures: string[] = [];
  const aliases = [...new Set(agents.map(({ model }) => model))].filter((model) => model !== 'sim/agent');
  try {
    if (!options.guardrails) {
      const gateway = await startAgentsGateway(aliases);
      try {
        failures.push(...(await runEach(gateway, directory)));
      } finally {
        await gateway.close();
      }
    }
    failures.push(...(await runGuarded(aliases, directory)));
  } finally {
    const left = await leftovers.end();
    rmSync(directory, { recursive: true, force: true });
    if (left.length > 0) console.log(`\nleft running by the agents, and ended now:\n  ${left.join('\n  ')}`);
  }
  for (const failure of failures) console.log(failure);
  return failures.length > 0;
}

async function runEach(gateway: AgentsGateway, directory: string): Promise<string[]> {
  const failures: string[] = [];
  let costPico = 0n;
  let requests = 0;
  console.log(
    `${'agent'.padEnd(21)} ${'version'.padEnd(9)} ${'step'.padEnd(10)} ${'state'.padEnd(8)} ${'requests'.padEnd(9)} ${'cost, USD'.padEnd(12)} notes`,
  );
  for (const [index, agent] of agents.entries()) {
    const place = join(directory, String(index));
    mkdirSync(place);
    for (const outcome of await runSession(gateway, agent, place)) {
      console.log(renderRow(agent, outcome));
      for (const failure of outcome.failures) console.log(`    ${failure}`);
      if (outcome.failures.length > 0) failures.push(`${outcome.state}: ${agent.name}, ${outcome.step}`);
      costPico += outcome.costPico;
      requests += outcome.requests;
    }
  }
  failures.push(...(await checkLedger(gateway, requests, costPico)));
  failures.push(...findFaults(gateway.tollgate.output()));
  return failures;
}

async function runGuarded(aliases: readonly string[], directory: string): Promise<string[]> {
  const failures: string[] = [];
  const gateway = await startGuardedGateway(aliases);
  try {
    console.log(
      `\n${'behind guardrails'.padEnd(21)} ${'version'.padEnd(9)} ${'step'.padEnd(16)} ${'state'.padEnd(8)} requests  notes`,
    );
    for (const [index, agent] of agents.entries()) {
      const place = join(directory, `guarded-${index}`);
      mkdirSync(place);
      for (const outcome of await runGuardedSession(gateway, agent, place)) {
        const state = outcome.failures.length === 0 ? 'ok' : 'failed';
        const cells = [agent.name.padEnd(21), wantedVersion(agent.packageName).padEnd(9), outcome.step.padEnd(16)];
        console.log(
          [...cells, state.padEnd(8), String(outcome.requests).padEnd(9), outcome.notes.join('; ')].join(' '),
        );
        for (const failure of outcome.failures) console.log(`    ${failure}`);
        if (outcome.failures.length > 0) failures.push(`failed: ${agent.name} behind guardrails, ${outcome.step}`);
      }
    }
    failures.push(...gateway.upstream.violations, ...findFaults(gateway.tollgate.output()));
  } finally {
    await gateway.close();
  }
  return failures;
}

/** Of our own, in what the gateway logged. */
function findFaults(output: string): string[] {
  const faults = output.split('\n').filter((line) => /^\{"level":"(error|fatal)"/.test(line));
  return faults.length === 0 ? [] : [`failed: the gateway logged ${faults.length} faults, the first: ${faults[0]}`];
}

function renderRow(agent: Agent, { step, state, requests, costPico, notes }: StepOutcome): string {
  const cells = [agent.name.padEnd(21), wantedVersion(agent.packageName).padEnd(9), step.padEnd(10), state.padEnd(8)];
  return [...cells, String(requests).padEnd(9), decimalOfPico(costPico).padEnd(12), notes.join('; ')].join(' ');
}

/** Every request is in the ledger once, and the wallet lacks exactly what they cost. */
async function checkLedger(gateway: AgentsGateway, requests: number, costPico: bigint): Promise<string[]> {
  const ledger = openLedgerView(gateway.tollgate.postgresUrl);
  try {
    const expected = OPENING_CREDIT_PICO - costPico;
    const read = async () => ({
      posted: await ledger.generationCount(),
      balance: (await ledger.wallet(AGENTS_ORGANIZATION)).balance,
    });
    const { posted, balance } = await waitFor(
      'every request to be posted',
      read,
      (seen) => seen.posted >= requests && seen.balance <= expected,
    ).catch(read);
    console.log(
      `\n${requests} requests, ${posted} posted, ${decimalOfPico(OPENING_CREDIT_PICO - balance)} USD ` +
        `charged, ${decimalOfPico(costPico)} expected`,
    );
    return posted === requests && balance === expected ? [] : ['failed: the ledger'];
  } finally {
    await ledger.close();
  }
}
