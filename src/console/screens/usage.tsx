// Usage and spend by model, provider, key and other groups: over time, as a table, and as exported files.

import { addressOf, request } from '../api.ts';
import { asFloat, dollars, duration, percent, whole } from '../logic/format.ts';
import { nameOfGroup, nameOfOthers } from '../logic/series-chart.ts';
import { Bar } from '../parts/figures.tsx';
import { FormRefusal, SelectField, useSubmit } from '../parts/form.tsx';
import { Link } from '../parts/link.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, numberColumn, Table } from '../parts/table.tsx';
import { WindowTools } from '../parts/window-tools.tsx';
import { params, setParams } from '../state/address.ts';
import {
  type FigureSeries,
  type GroupNames,
  pathOf,
  reportCurlCommand,
  reportPermission,
  reportTollgateCommands,
  useReport,
} from '../state/reports.ts';
import { saveFile } from '../state/save-file.ts';
import { reportScope, windowQuery } from '../state/view.ts';
import { GroupChart, MEASURES, type Measure } from './usage-charts.tsx';

const GROUPS = [
  { id: 'model', name: 'Model' },
  { id: 'provider', name: 'Provider' },
  { id: 'api_key', name: 'Key' },
  { id: 'user', name: 'Person' },
  { id: 'team', name: 'Team' },
  { id: 'tag', name: 'Tag' },
  { id: 'status', name: 'Status' },
];

export function UsageAndSpend() {
  const groups =
    reportScope.value.id === 'platform' ? [...GROUPS, { id: 'organization', name: 'Organization' }] : GROUPS;
  const groupBy = groups.find(({ id }) => id === params.value['by'])?.id ?? 'model';
  const measure = MEASURES.find(({ id }) => id === params.value['measure'])?.id ?? 'cost';
  const query = { group_by: groupBy, top: 25 };
  const table = useReport('series', query);
  const [measureName, groupName] = [nameIn(MEASURES, measure), nameIn(groups, groupBy)];
  return (
    <Page
      title="Usage and spend"
      lead="What was used and what it cost. Days are days of the time zone that you choose."
      tools={<WindowTools />}
      commands={[
        reportCurlCommand('series', query),
        reportCurlCommand('usage', { group_by: groupBy }),
        ...reportTollgateCommands('series', query),
      ]}
    >
      <div class="filters">
        <SelectField
          label="By"
          value={groupBy}
          onValue={(by) => setParams({ by: by === 'model' ? null : by })}
          options={groups}
        />
        <SelectField
          label="Show"
          value={measure}
          onValue={(to) => setParams({ measure: to === 'cost' ? null : (to as Measure) })}
          options={MEASURES}
        />
      </div>
      <GroupChart
        query={{ group_by: groupBy, top: 7 }}
        measure={measure}
        title={`${measureName} by ${groupName.toLowerCase()}`}
      />
      <Card title={`By ${groupName.toLowerCase()}`} tools={<Exports />}>
        <Loaded
          load={table}
          permission={reportPermission()}
          isEmpty={({ data }) => data.totals.requests === 0}
          empty="Nothing in this window."
        >
          {({ data }) => (
            <Table
              caption={`Usage by ${groupName.toLowerCase()}`}
              columns={columnsOf(groupName, data.totals.cost)}
              rows={[
                ...data.groups,
                ...(data.remainder === null ? [] : [{ ...data.remainder, isRest: true }]),
                { ...data.totals, isTotal: true },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

function nameIn(options: readonly { readonly id: string; readonly name: string }[], id: string): string {
  return options.find((option) => option.id === id)?.name ?? id;
}

type Row = GroupNames &
  FigureSeries & { readonly isRest?: boolean; readonly isTotal?: boolean; readonly groups?: number };

function columnsOf(groupName: string, total: string): Column<Row>[] {
  return [
    { name: groupName, raw: (row) => nameOfRow(row), show: (row) => <GroupLink row={row} /> },
    numberColumn('Requests', ({ requests }) => requests, whole),
    {
      name: 'Errors',
      raw: ({ errors }) => errors,
      show: ({ errors, requests }) => (errors === 0 ? '0' : `${whole(errors)} (${percent(errors / requests)})`),
      isNumber: true,
      isExtra: true,
    },
    numberColumn('Tokens in', ({ tokens_prompt: count }) => count, whole, { isExtra: true }),
    numberColumn('Tokens out', ({ tokens_completion: count }) => count, whole, { isExtra: true }),
    numberColumn('p95', ({ p95_latency_ms: ms }) => ms, duration, { isExtra: true }),
    numberColumn('Spend', ({ cost }) => cost, dollars),
    {
      name: 'Share',
      raw: ({ cost }) => cost,
      show: ({ cost, isTotal }) => (isTotal ? '' : <Bar share={asFloat(cost) / (asFloat(total) || 1)} />),
      isExtra: true,
    },
  ];
}

function nameOfRow(row: Row): string {
  if (row.isTotal) return 'All';
  return row.isRest ? nameOfOthers(row.groups ?? 0) : nameOfGroup(row);
}

/** The name of a group, as a link to its requests. */
function GroupLink({ row }: { readonly row: Row }) {
  const name = nameOfRow(row);
  if (row.isTotal) return <strong>{name}</strong>;
  const filter = filterOf(row);
  if (row.isRest || filter === null) return <>{name}</>;
  return (
    <Link to="requests" params={filter}>
      {name}
    </Link>
  );
}

function filterOf({
  model,
  provider,
  tag,
  status,
  api_key_id: key,
  user_id: user,
  team_id: team,
}: Row): Record<string, string> | null {
  const named = { model, provider, tag, status, api_key_id: key, user_id: user, team_id: team };
  for (const [name, value] of Object.entries(named))
    if (value !== undefined && value !== null && value !== '') return { [name]: String(value) };
  return null;
}

/** Files that the server makes: usage by day, and costs in the FOCUS format. */
function Exports() {
  const { isBusy, refusal, run } = useSubmit<{ name: string; text: string }>(({ name, text }) => saveFile(name, text));
  const get = (name: string, address: string) =>
    run(async () => {
      const answer = await request({ method: 'get', address });
      return answer.ok ? { ok: true, data: { name, text: await answer.data.text() } } : answer;
    });
  const query = windowQuery.value;
  const { id } = reportScope.value;
  const { start_date, end_date } = query;
  const focus =
    id === 'organization'
      ? '/v1/admin/active-org/usage/export/focus'
      : id === 'platform'
        ? '/v1/admin/usage/export/focus'
        : null;
  return (
    <div>
      <FormRefusal refusal={refusal} />
      <button
        type="button"
        class="small"
        disabled={isBusy}
        onClick={() =>
          void get('tollgate-usage.csv', addressOf(`${pathOf('usage')}/daily`, { query: { ...query, format: 'csv' } }))
        }
      >
        Days as CSV
      </button>{' '}
      {focus !== null && (
        <button
          type="button"
          class="small"
          disabled={isBusy}
          onClick={() => void get('tollgate-focus.csv', addressOf(focus, { query: { start_date, end_date } }))}
        >
          FOCUS
        </button>
      )}
    </div>
  );
}
