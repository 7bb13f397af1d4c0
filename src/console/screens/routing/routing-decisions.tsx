// The tables of the routing report about decisions: reasons, classifiers, candidates passed over, policy versions, and
// corrections by users.

import { RateDot, TimeSpan } from '../../charts/cell-marks.tsx';
import { dollars, duration, moment, percent, probability, spaced, whole } from '../../logic/format.ts';
import { REASONS } from '../../logic/route-words.ts';
import { Bar } from '../../parts/figures.tsx';
import { Link } from '../../parts/link.tsx';
import { Empty } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, momentColumn, numberColumn, Table } from '../../parts/table.tsx';
import type { Routing } from '../../state/reports.ts';
import { zone } from '../../state/view.ts';
import { ConfidenceChart } from './confidence-chart.tsx';

interface Props {
  readonly report: Routing;
}

const PICKED: Readonly<Record<string, string>> = {
  '': 'Order of the tier',
  strength: 'Strong at the kind of work',
  native_api: 'Speaks the called API',
};

interface Count {
  readonly name: string;
  readonly requests: number;
  readonly link?: string;
}

function CountTable({
  title,
  rows,
  of,
}: {
  readonly title: string;
  readonly rows: readonly Count[];
  readonly of: number;
}) {
  const columns: Column<Count>[] = [
    {
      name: title,
      raw: ({ name }) => name,
      show: ({ name, link }) =>
        link === undefined ? (
          name
        ) : (
          <Link to="requests" params={{ route_reason: link }}>
            {name}
          </Link>
        ),
    },
    numberColumn('Requests', ({ requests }) => requests, whole),
    { name: 'Share', raw: ({ requests }) => requests, show: ({ requests }) => <Bar share={requests / (of || 1)} /> },
  ];
  return <Table caption={title} columns={columns} rows={rows} />;
}

export function Distributions({ report, command }: Props & { readonly command: string }) {
  const { reasons, picked_by: picked, totals } = report;
  return (
    <>
      <Card title="Why this tier">
        <CountTable
          title="Reason"
          of={totals.requests}
          rows={reasons.map(({ reason, requests }) => ({ name: REASONS[reason] ?? reason, requests, link: reason }))}
        />
      </Card>
      <ConfidenceChart report={report} command={command} />
      <Card title="Why this model of the tier">
        <CountTable
          title="Picked by"
          of={totals.requests}
          rows={picked.map(({ picked_by: by, requests }) => ({ name: PICKED[by] ?? by, requests }))}
        />
      </Card>
      <Classifiers report={report} />
    </>
  );
}

function Classifiers({ report: { classifiers } }: Props) {
  const columns: Column<(typeof classifiers)[number]>[] = [
    { name: 'Classifier', raw: ({ model }) => model },
    numberColumn('Calls', ({ calls }) => calls, whole),
    numberColumn('p50', ({ p50_ms: ms }) => ms, duration),
    numberColumn('p95', ({ p95_ms: ms }) => ms, duration),
    numberColumn(
      'Cost',
      ({ cost_usd: cost }) => cost,
      (cost) => (cost === null ? 'not known' : dollars(cost)),
    ),
  ];
  return (
    <Card title="Classifiers">
      {classifiers.length === 0 ? (
        <Empty>No classifier was asked.</Empty>
      ) : (
        <Table caption="Classifiers" columns={columns} rows={classifiers} />
      )}
    </Card>
  );
}

const REJECTIONS_SHOWN = 10;

export function Rejections({ report: { rejections } }: Props) {
  const columns: Column<(typeof rejections)[number]>[] = [
    { name: 'Model', raw: ({ model }) => model },
    { name: 'Tier', raw: ({ tier }) => tier },
    { name: 'Why', raw: ({ reason }) => reason, show: ({ reason }) => spaced(reason) },
    numberColumn('Times', ({ count }) => count, whole),
  ];
  const first = [...rejections].sort((one, other) => other.count - one.count).slice(0, REJECTIONS_SHOWN);
  return (
    <Card title="Passed over" note="The most frequent candidates that could not serve, with the reason.">
      {first.length === 0 ? (
        <Empty>No candidate was passed over.</Empty>
      ) : (
        <Table caption="Passed over" columns={columns} rows={first} />
      )}
    </Card>
  );
}

export function PolicyVersions({ report }: Props) {
  const { policies } = report;
  const [start, end] = [
    Date.parse(report.start_date.slice(0, 10)),
    Date.parse(report.end_date.slice(0, 10)) + 86_400_000,
  ];
  const columns: Column<(typeof policies)[number]>[] = [
    {
      name: 'Policy',
      raw: ({ policy, version }) => `${policy} ${version}`,
      show: ({ policy, version }) => `${policy}, version ${version}`,
    },
    numberColumn('Requests', ({ requests }) => requests, whole),
    momentColumn('First use', ({ first_used_at: at }) => at),
    {
      name: 'In the window',
      raw: ({ last_used_at: at }) => at,
      show: ({ first_used_at: from, last_used_at: to }) => (
        <TimeSpan fromMs={Date.parse(from)} toMs={Date.parse(to)} windowStartMs={start} windowEndMs={end} />
      ),
    },
  ];
  return (
    <Card title="Versions of the policy">
      <Table caption="Versions of the policy" columns={columns} rows={policies} />
    </Card>
  );
}

interface RateRow {
  readonly name: string;
  readonly follow_ups: number;
  readonly corrections: number;
  readonly correction_rate: number | null;
}

/** How often a follow-up said that the answer of a tier or model was wrong. */
export function Corrections({ report }: Props) {
  const byTier = report.by_previous_tier.map((row) => ({ ...row, name: row.previous_tier || 'no tier' }));
  const byModel = report.by_previous_model.map((row) => ({ ...row, name: row.previous_model }));
  return (
    <>
      <RateTable title="Corrected after a tier" rows={byTier} />
      <RateTable title="Corrected after a model" rows={byModel} />
      <RecentCorrections report={report} />
    </>
  );
}

function RateTable({ title, rows }: { readonly title: string; readonly rows: readonly RateRow[] }) {
  const columns: Column<RateRow>[] = [
    { name: 'Answered by', raw: ({ name }) => name },
    numberColumn('Rate', ({ correction_rate: rate }) => rate, percent),
    {
      name: '0 to 60 %',
      raw: ({ corrections }) => corrections,
      show: ({ corrections, follow_ups: all }) => <RateDot hits={corrections} trials={all} max={0.6} />,
    },
    numberColumn('Follow-ups', ({ follow_ups: all }) => all, whole),
  ];
  return (
    <Card title={title} note="The line is the 95 % interval: few follow-ups make it wide.">
      {rows.length === 0 ? <Empty>No follow-up yet.</Empty> : <Table caption={title} columns={columns} rows={rows} />}
    </Card>
  );
}

function RecentCorrections({ report: { recent_corrections: recent } }: Props) {
  if (recent === null)
    return (
      <Card title="Latest corrections" class="wide">
        <Empty>Single requests are shown to their own callers and to administrators of the organization.</Empty>
      </Card>
    );
  const columns: Column<(typeof recent)[number]>[] = [
    {
      name: 'When',
      raw: ({ at }) => at,
      show: ({ at, request_id: id }) => (
        <Link to="requests" params={{ request: id }}>
          {moment(at, zone.value)}
        </Link>
      ),
    },
    {
      name: 'Was answered by',
      raw: ({ previous_model: model }) => model,
      show: ({ previous_model: model, previous_tier: tier }) =>
        model === null ? 'not known' : `${model}${tier ? ` (${tier})` : ''}`,
    },
    {
      name: 'Then by',
      raw: ({ model }) => model,
      show: ({ model, tier, escalated }) => `${model}${tier ? ` (${tier})` : ''}${escalated ? ', one tier up' : ''}`,
    },
    { name: 'Kind', raw: ({ task }) => task, show: ({ task }) => task || '–' },
    numberColumn('Probability', ({ probability: value }) => value, probability, { isExtra: true }),
  ];
  return (
    <Card title="Latest corrections" class="wide" note="Follow-ups that said the previous answer was wrong.">
      {recent.length === 0 ? (
        <Empty>Nobody corrected an answer in this window.</Empty>
      ) : (
        <Table caption="Latest corrections" columns={columns} rows={recent} />
      )}
    </Card>
  );
}
