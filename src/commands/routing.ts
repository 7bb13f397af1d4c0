// `tollgate routing replay`: replays past requests under a draft of a routing policy, before it is published.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { catalogAt } from '../domain/models/dated-prices.ts';
import { formatUsdString } from '../domain/money/format.ts';
import { parsePolicyFile } from '../domain/routing/parse-policy-file.ts';
import { type PolicyDefinition, policyOf } from '../domain/routing/policy-definition.ts';
import { type ReplayCosts, type ReplayReport, replayPolicy } from '../domain/routing/replay-policy.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { DAY_MS } from '../platform/durations.ts';
import { firstExecutionIdAt } from '../platform/execution-id.ts';
import { loadCatalog } from '../storage/postgres/catalog/catalog-store.ts';
import { listAllowedModels } from '../storage/postgres/routing/organization-caller.ts';
import { refuseDraft } from '../storage/postgres/routing/policies.ts';
import { readRoutedRequests } from '../storage/postgres/routing/routed-requests.ts';
import {
  type Command,
  type CommandContext,
  expectAction,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { findOrganization } from './command/identity.ts';

export const routingCommand: Command = {
  usage: ['tollgate routing replay --policy FILE --days N [--organization SLUG]'],
  summary:
    'Replays the requests that were routed in the last N days under a draft of a routing policy: shares of the ' +
    'tiers, cost and savings beside the real ones. Nothing is called, sent or changed.',
  run,
};

const DAYS_MAX = 366;
const PAGE_SIZE = 2_000;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    policy: { type: 'string' },
    days: { type: 'string' },
    organization: { type: 'string' },
  });
  expectAction(positionals, ['replay']);
  const days = requireOption(values.days, 'days');
  if (!/^[1-9]\d{0,2}$/.test(days) || Number(days) > DAYS_MAX)
    throw new UsageFault(`--days: must be a whole number from 1 to ${DAYS_MAX}, got "${days}"`);
  const definition = readDraft(resolve(requireOption(values.policy, 'policy')));
  const report = await withDatabase(environment, async (postgres, _, secrets) => {
    const organizationId =
      values.organization === undefined ? null : (await findOrganization(postgres, values.organization)).id;
    const refused = await refuseDraft(postgres, definition, organizationId);
    if (refused !== null)
      throw new StartFault(`the draft cannot be used: ${refused.field ?? ''} ${refused.reason ?? ''}`);
    const { byName } = catalogAt(await loadCatalog(postgres, (await secrets()).box), systemClock.nowMs()).catalog;
    const allowed = await listAllowedModels(postgres);
    const draft = {
      policy: policyOf('draft', 0, definition),
      modelNamed: (name: string) => byName.get(name) ?? null,
      allowedModelsOf: (id: string) => allowed.get(id) ?? null,
    };
    return replayPolicy(
      draft,
      readRoutedRequests(postgres, {
        after: firstExecutionIdAt(systemClock.nowMs() - Number(days) * DAY_MS),
        organizationId,
        pageSize: PAGE_SIZE,
      }),
    );
  });
  for (const line of describe(report, Number(days))) print(line);
  return 0;
}

function readDraft(path: string): PolicyDefinition {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartFault(
      `cannot read the policy file ${path}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
  const parsed = parsePolicyFile(text);
  if (!parsed.ok) throw new StartFault([`${path} cannot be used:`, ...parsed.errors].join('\n'));
  return parsed.definition;
}

function describe(report: ReplayReport, days: number): string[] {
  const { requests, replayed, continued, moved, unreplayed, tiers, compared, was, draft } = report;
  const lines = [
    `${requests} requests were routed in ${days} days; ${replayed} replayed, ${continued} of them as ` +
      `continuations; ${moved} would have had another model`,
  ];
  for (const [why, count] of unreplayed) lines.push(`not replayed: ${count}\t${why}`);
  lines.push('tier\twas\tdraft');
  for (const { tier, was: before, draft: after } of tiers) {
    lines.push([tier === '' ? '(no tier)' : tier, withShare(before, replayed), withShare(after, replayed)].join('\t'));
  }
  lines.push(
    `of ${compared} requests whose cost is known both ways (the same tokens, at the price of the draft's model):`,
  );
  lines.push('\tcost USD\tbaseline USD\tsaved USD');
  lines.push(`was\t${describeCosts(was)}`, `draft\t${describeCosts(draft)}`);
  return lines;
}

function withShare(count: number, of: number): string {
  return `${count} (${of === 0 ? '0.0' : ((100 * count) / of).toFixed(1)} %)`;
}

/** Shows savings only for requests that have a baseline. */
function describeCosts({ cost, baselined, baselinedCost, baselineCost }: ReplayCosts): string {
  return [
    formatUsdString(cost),
    formatUsdString(baselineCost),
    `${formatUsdString(baselineCost - baselinedCost)} (${baselined} requests)`,
  ].join('\t');
}
