// The overview: spend, requests, errors, latency, savings by routing, credit, limits and the latest requests.

import { curlCommand } from '../api.ts';
import { asFloat, type Count, compact, dollars, duration, percent, sumOfCounts, whole } from '../logic/format.ts';
import { periodBefore } from '../logic/period.ts';
import { Bar, LoadingFigure, Stat, Stats } from '../parts/figures.tsx';
import { kindColumn, type Limit, MAXIMUM, RESETS, USED, USED_SHARE } from '../parts/limit-columns.tsx';
import { Link } from '../parts/link.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, numberColumn, Table } from '../parts/table.tsx';
import { WindowTools } from '../parts/window-tools.tsx';
import { type Load, useRead } from '../state/load.ts';
import { reportCurlCommand, reportPermission, reportTollgateCommands, useReport } from '../state/reports.ts';
import { may } from '../state/session.ts';
import { period, reportScope, zone } from '../state/view.ts';
import { FirstSteps } from './first-steps.tsx';
import { LatestRequests } from './requests/request-table.tsx';
import { GroupChart } from './usage-charts.tsx';

export function Overview() {
  const usage = useReport('usage');
  return (
    <Page
      title="Overview"
      lead={`${reportScope.value.name}: ${period.value.start} to ${period.value.end}, days of ${zone.value}.`}
      tools={<WindowTools />}
      commands={[
        reportCurlCommand('usage'),
        curlCommand('/v1/usage/limits/current'),
        curlCommand('/v1/billing/credits'),
        ...reportTollgateCommands('usage'),
      ]}
    >
      <Loaded load={usage} permission={reportPermission()}>
        {({ data }) => (
          <>
            <TopFigures
              cost={data.cost}
              requests={data.requests}
              tokens={sumOfCounts(data.tokens_prompt, data.tokens_completion)}
            />
            {data.requests === 0 && <FirstSteps />}
            <div class="grid">
              <div class="wide">
                <GroupChart query={{ group_by: 'model', top: 7 }} measure="cost" title="Spend by model" />
              </div>
              <Budgets />
              <SpendByModel models={data.by_model} cost={data.cost} />
              <div class="wide">
                <LatestRequests />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface TopProps {
  readonly cost: string;
  readonly requests: number;
  readonly tokens: Count;
}

function TopFigures({ cost, requests, tokens }: TopProps) {
  const { start, end } = periodBefore(period.value);
  const before = useReport('usage', { start_date: start, end_date: end }).data?.data;
  const routing = useReport('routing');
  const series = useReport('series');
  const credits = useRead('/v1/billing/credits');
  const [saved, all, credit] = [routing.data?.totals, series.data?.data.totals, credits.data?.data];
  return (
    <Stats>
      <Stat name="Spend" value={dollars(cost)} note={before && `${dollars(before.cost)} in the window before`} />
      <Stat
        name="Requests"
        value={compact(requests)}
        note={before && `${compact(before.requests)} before · ${compact(tokens)} tokens`}
      />
      <Stat
        name="Errors"
        value={all === undefined ? absent(series) : percent(all.requests === 0 ? 0 : all.errors / all.requests)}
        note={all === undefined ? ' ' : `${whole(all.errors)} of ${whole(all.requests)}`}
      />
      <Stat
        name="Latency"
        value={all === undefined ? absent(series) : duration(all.p95_latency_ms)}
        note="95 of 100 are faster"
      />
      <Stat
        name="Saved by routing"
        value={saved === undefined ? absent(routing) : dollars(saved.savings_usd)}
        tone={saved !== undefined && asFloat(saved.savings_usd) > 0 ? 'good' : undefined}
        note={
          saved === undefined
            ? ' '
            : `${percent((saved.savings_pct ?? 0) / 100)} over ${whole(saved.baseline_requests)} requests`
        }
      />
      <Stat
        name="Credit left"
        value={
          credit === undefined ? absent(credits) : credit.available === null ? 'not billed' : dollars(credit.available)
        }
        note={
          credit?.balance == null
            ? 'of the active organization'
            : `${dollars(credit.balance)} less what is held and lent`
        }
      />
    </Stats>
  );
}

/** Stands in for a figure that is loading or was refused. */
function absent({ refusal }: Pick<Load<unknown>, 'refusal'>) {
  return refusal === null ? <LoadingFigure /> : 'not known now';
}

function Budgets() {
  const limits = useRead('/v1/usage/limits/current');
  return (
    <Card
      title="Limits and budgets"
      note="Those that apply to your own requests, as they are now."
      tools={may('org.admin') ? <Link to="limits">Set limits</Link> : undefined}
    >
      <Loaded
        load={limits}
        permission="usage.read"
        isEmpty={({ data }) => data.length === 0}
        empty={<p>There is no limit. A budget for the organization prevents surprises.</p>}
      >
        {({ data }) => <Table caption="Limits and budgets" columns={LIMIT_COLUMNS} rows={data} />}
      </Loaded>
    </Card>
  );
}

const LIMIT_COLUMNS: readonly Column<Limit>[] = [
  kindColumn(({ scope, model }) => (model === null ? scope : `${scope} · ${model}`)),
  USED,
  USED_SHARE,
  MAXIMUM,
  RESETS,
];

interface ModelsProps {
  readonly models: readonly { readonly model: string; readonly requests: number; readonly cost: string }[];
  readonly cost: string;
}

function SpendByModel({ models, cost }: ModelsProps) {
  const columns: Column<ModelsProps['models'][number]>[] = [
    {
      name: 'Model',
      raw: ({ model }) => model,
      show: ({ model }) => (
        <Link to="requests" params={{ model }}>
          {model || 'none'}
        </Link>
      ),
    },
    numberColumn('Requests', ({ requests }) => requests, whole),
    numberColumn('Spend', ({ cost: own }) => own, dollars),
    {
      name: 'Share',
      raw: ({ cost: own }) => own,
      show: ({ cost: own }) => <Bar share={asFloat(own) / (asFloat(cost) || 1)} />,
      isExtra: true,
    },
  ];
  // The report is sorted by requests, but the most expensive model may have few of them.
  const dearest = models.toSorted((one, other) => asFloat(other.cost) - asFloat(one.cost)).slice(0, 8);
  return (
    <Card title="Spend by model" tools={<Link to="usage">Usage and spend</Link>}>
      {models.length === 0 ? (
        <Empty>No requests in this window.</Empty>
      ) : (
        <Table caption="Spend by model" columns={columns} rows={dearest} />
      )}
    </Card>
  );
}
