// The reports over generated facts, for every kind of caller: a person and an owner of the sample's organization, a
// member of it, and the platform's operator.

import { ROLE_PERMISSIONS } from '../../src/domain/identity/roles.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import { NOBODY, OWNER, PLATFORM } from './billing-front.ts';
import { openTestClickHouse } from './clickhouse.ts';
import { type ReportsFront, type ReportsFrontOptions, startReportsFront } from './reports-front.ts';

/** A fact that has a person and a team. */
export type PersonalFact = RequestFact & { readonly teamId: string; readonly userId: string };

/** The time of the requests for reports: after the last of the generated facts. */
const GENERATED_NOW_MS = Date.UTC(2026, 10, 19, 4);

/** The credentials are `caller`, `owner`, `member` and `platform`. `stop` also closes the ClickHouse. */
export async function startGeneratedReports(
  facts: readonly RequestFact[],
  sample: PersonalFact,
  options: Partial<ReportsFrontOptions> = {},
): Promise<ReportsFront> {
  const { organizationId, teamId, userId, apiKeyId } = sample;
  const clickhouse = await openTestClickHouse();
  try {
    await insertFacts(clickhouse.client, facts, 'all');
    const front = await startReportsFront({
      principals: {
        caller: { ...NOBODY, organizationId, userId, apiKeyId },
        owner: { ...OWNER, organizationId },
        member: { ...OWNER, organizationId, permissions: ROLE_PERMISSIONS.member },
        platform: PLATFORM,
      },
      teams: new Map([[teamId, organizationId]]),
      clickhouse: () => clickhouse.client,
      clock: { nowMs: () => GENERATED_NOW_MS, monotonicMs: () => 0 },
      ...options,
    });
    const stop = async (): Promise<void> => {
      await front.stop();
      await clickhouse.close();
    };
    return { ...front, stop };
  } catch (fault) {
    await clickhouse.close();
    throw fault;
  }
}
