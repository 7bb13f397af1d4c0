// The tables of the routing report by tier, by model and by kind of work.

import { HeatCell } from '../../charts/cell-marks.tsx';
import { asFloat, dollars, duration, percent, probability, whole } from '../../logic/format.ts';
import { Bar } from '../../parts/figures.tsx';
import { Link } from '../../parts/link.tsx';
import { Empty } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import type { Routing } from '../../state/reports.ts';

type Metrics = NonNullable<Routing['model_remainder']>;

interface Props {
  readonly report: Routing;
}

function metricColumns<Row extends Metrics>(): Column<Row>[] {
  return [
    numberColumn('Requests', ({ requests }) => requests, whole),
    { name: 'Share', raw: ({ share }) => share, show: ({ share }) => <Bar share={share ?? 0} /> },
    numberColumn('Spend', ({ spend_usd: spend }) => spend, dollars),
    numberColumn('Saved', ({ savings_usd: saved }) => saved, dollars, { isExtra: true }),
    numberColumn('p95', ({ p95_latency_ms: ms }) => ms, duration, { isExtra: true }),
    numberColumn('Errors', ({ error_rate: rate }) => rate, percent, { isExtra: true }),
    numberColumn('Confidence', ({ avg_confidence: value }) => value, probability, { isExtra: true }),
    numberColumn('Escalated', ({ escalated }) => escalated, whole, { isExtra: true }),
  ];
}

/** By rank, the cheapest tier first. */
export function ByTier({ report }: Props) {
  const columns: Column<Routing['by_tier'][number]>[] = [
    {
      name: 'Tier',
      raw: ({ tier }) => tier,
      show: ({ tier }) =>
        tier === '' ? (
          'no tier'
        ) : (
          <Link to="requests" params={{ route_tier: tier }}>
            {tier}
          </Link>
        ),
    },
    ...metricColumns<Routing['by_tier'][number]>(),
  ];
  return (
    <Card title="By tier" class="wide" note="The cheapest tier first.">
      <Table caption="By tier" columns={columns} rows={report.by_tier} />
    </Card>
  );
}

type ModelRow = Metrics & { readonly model: string | null };

/** By spend. The models that are not among the first 25 are summed up in the last row. */
export function ByModel({ report: { by_model: models, model_remainder: rest } }: Props) {
  const rows: ModelRow[] = [...models, ...(rest === null ? [] : [{ ...rest, model: null }])];
  const columns: Column<ModelRow>[] = [
    {
      name: 'Model',
      raw: ({ model }) => model ?? 'all others',
      show: ({ model }) =>
        model === null ? (
          'all others'
        ) : (
          <Link to="requests" params={{ model, routed: 'true' }}>
            {model}
          </Link>
        ),
    },
    ...metricColumns<ModelRow>(),
  ];
  return (
    <Card title="By model" class="wide">
      <Table caption="By model" columns={columns} rows={[...rows].sort(bySpend)} />
    </Card>
  );
}

function bySpend(one: ModelRow, other: ModelRow): number {
  if (one.model === null || other.model === null) return one.model === null ? 1 : -1;
  return asFloat(other.spend_usd) - asFloat(one.spend_usd);
}

const MODELS_SHOWN = 8;

/** A heat map: for each kind of work the share of its requests that each model served. */
export function TaskMap({ report }: Props) {
  const { by_task: tasks, task_models: cells } = report;
  const models = report.by_model.slice(0, MODELS_SHOWN).map(({ model }) => model);
  const shareOf = new Map(cells.map(({ task, model, share }) => [`${task}\n${model}`, share]));
  const columns: Column<(typeof tasks)[number]>[] = [
    {
      name: 'Kind of work',
      raw: ({ task }) => task,
      show: ({ task }) => (task === '' ? <span class="muted">none named</span> : task),
    },
    numberColumn('Requests', ({ requests }) => requests, whole),
    numberColumn('Spend', ({ spend_usd: spend }) => spend, dollars, { isExtra: true }),
    ...models.map(
      (model): Column<(typeof tasks)[number]> => ({
        name: model,
        raw: ({ task }) => shareOf.get(`${task}\n${model}`) ?? null,
        show: ({ task }) => <HeatCell share={shareOf.get(`${task}\n${model}`) ?? null} />,
        isNumber: true,
      }),
    ),
  ];
  return (
    <Card title="Kinds of work and models" class="wide" note="Which share of a kind’s requests each model served.">
      {tasks.length === 0 ? (
        <Empty>The policy names no kinds of work.</Empty>
      ) : (
        <Table caption="Kinds of work and models" columns={columns} rows={tasks} />
      )}
    </Card>
  );
}
