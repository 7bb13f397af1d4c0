// `tollgate report`: prints the reports and listings that the API and the console show, as jobs answers them to
// gateways.

import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline/promises';
import type { CompleteConfig } from '../config.ts';
import { mintDelegationToken } from '../domain/identity/delegation-token.ts';
import { REPORTS, type ReportDelegation, reportDelegationSchema } from '../domain/reports/report-delegation.ts';
import { reportQuerySchema } from '../domain/reports/report-query.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import type { ReportsAddress } from '../reports-settings.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import {
  type Command,
  type CommandContext,
  type OptionValues,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { findMember, findOrganization, findTeam } from './command/identity.ts';

export const reportCommand: Command = {
  usage: [
    'tollgate report usage|daily|series|requests|routing [--organization SLUG [--team SLUG | --user EMAIL]] ' +
      '[PARAMETER=VALUE]...',
    'tollgate report guardrails|focus [--organization SLUG] [PARAMETER=VALUE]...',
    'tollgate report request --id ID [--organization SLUG]',
  ],
  summary:
    'Prints a report as its HTTP route answers it, in JSON or CSV (format=csv): of the whole installation, of an ' +
    'organization, or of a team or a person in it. The parameters are those of the route, such as ' +
    'start_date=2026-11-01 time_zone=Europe/Berlin group_by=model.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  team: { type: 'string' },
  user: { type: 'string' },
  id: { type: 'string' },
} as const;
type Values = OptionValues<typeof OPTIONS>;

const PARAMETER = /^([a-z_]+)=(.*)$/s;
/** These reports cover whole organizations and have no narrower audience. */
const OF_ORGANIZATIONS: readonly string[] = ['guardrails', 'focus'];
const TOKEN_MS = 60_000;
/** A report that has not begun within this time will not come. */
const HEAD_MS = 60_000;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [name = '', ...parameters] = positionals;
  if (name === '') throw new UsageFault('the name of a report is missing');
  const report = REPORTS.find((one) => one === name);
  if (report === undefined) throw new UsageFault(`unknown report "${name}"; there are ${REPORTS.join(', ')}`);
  if (report !== 'request' && values.id !== undefined) throw new UsageFault(`--id: goes with request, not ${report}`);
  const isNarrow = values.team !== undefined || values.user !== undefined;
  if (isNarrow && OF_ORGANIZATIONS.includes(report))
    throw new UsageFault(`--team and --user: ${report} is of whole organizations`);
  const query = readParameters(parameters);
  const requestId = report === 'request' ? readRequestId(values) : null;
  await withDatabase(environment, async (postgres, config, secrets) => {
    const delegation = {
      report,
      ...(await findAudience(postgres, values)),
      ...(requestId === null ? {} : { requestId }),
    };
    refuseUnknownParameters(delegation, query);
    const key = config.delegationKey ?? (await secrets()).delegationKey;
    const answer = await askJobs(config, key, delegation, query);
    for await (const line of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) print(line);
  });
  return 0;
}

function readParameters(parameters: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    const [, name = '', value = ''] = PARAMETER.exec(parameter) ?? [];
    if (name === '') throw new UsageFault(`"${parameter}": a parameter is written NAME=VALUE`);
    query.append(name, value);
  }
  return query;
}

function readRequestId({ id }: Values): string {
  const given = requireOption(id, 'id');
  if (!reportDelegationSchema.shape.requestId.safeParse(given).success)
    throw new UsageFault(`--id: must be the id of a request, which is a UUID, got "${given}"`);
  return given;
}

/** The table of routes says which parameters exist, by report and audience. */
function refuseUnknownParameters({ report, audience }: ReportDelegation, query: URLSearchParams): void {
  const known = Object.keys(reportQuerySchema(report, audience).shape);
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const has = known.length === 0 ? 'none' : known.join(', ');
  throw new UsageFault(`unknown parameter "${unknown}": ${report} has ${has}`);
}

async function findAudience(
  postgres: Postgres,
  { organization: slug, team, user }: Values,
): Promise<Pick<ReportDelegation, 'audience' | 'scope'>> {
  if (team !== undefined && user !== undefined) throw new UsageFault('--team and --user: only one of them');
  if (slug === undefined) {
    if (team !== undefined || user !== undefined) throw new UsageFault('--organization is missing');
    return { audience: 'platform', scope: { organizationId: null } };
  }
  const organization = await findOrganization(postgres, slug);
  const { id: organizationId } = organization;
  if (team !== undefined) {
    const { id: teamId } = await findTeam(postgres, organization, team);
    return { audience: 'team', scope: { organizationId, teamId } };
  }
  if (user !== undefined) {
    const { userId } = await findMember(postgres, organization, user);
    return { audience: 'me', scope: { organizationId, userId } };
  }
  return { audience: 'organization', scope: { organizationId } };
}

/** Resolves with a successful answer; a refusal by jobs is printed in its own words. */
async function askJobs(
  { reportsUrl }: CompleteConfig,
  key: Buffer,
  delegation: ReportDelegation,
  query: URLSearchParams,
): Promise<IncomingMessage> {
  const path = `/report?${query.toString()}`;
  const expiresAtMs = systemClock.nowMs() + TOKEN_MS;
  const token = mintDelegationToken(key, delegation, { method: 'GET', target: path }, expiresAtMs);
  const headers = { authorization: `Delegation ${token}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = request({ ...reportsUrl, path, headers, agent: false, timeout: HEAD_MS }, resolve);
    call.on('timeout', () => call.destroy(new Error(`no answer began within ${HEAD_MS} ms`)));
    call.on('error', reject);
    call.end();
  }).catch((error: Error) => {
    throw new StartFault(`jobs makes the reports, and does not answer at ${placeOf(reportsUrl)}: ${error.message}`);
  });
  if (response.statusCode === 200) return response;
  const said = Buffer.concat(await response.toArray()).toString('utf8');
  throw new StartFault(refusalIn(said) ?? `jobs answered ${response.statusCode}`);
}

function placeOf(address: ReportsAddress): string {
  return 'socketPath' in address ? address.socketPath : `${address.host}:${address.port}`;
}

function refusalIn(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}
