// What all gateways serve now: throughput, latency, errors, refusals and paused models; and the list of processes.

import { useState } from 'preact/hooks';
import { type AnswerOf, curlCommand } from '../api.ts';
import { Lines } from '../charts/lines.tsx';
import { StackedBars } from '../charts/stacked-bars.tsx';
import {
  bucketLabel,
  bytes,
  countTick,
  dollars,
  duration,
  durationTick,
  percent,
  rate,
  spaced,
  whole,
} from '../logic/format.ts';
import { Badge, Stat, Stats } from '../parts/figures.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, NamedCell, numberColumn, Table } from '../parts/table.tsx';
import { useEvery } from '../state/every.ts';
import { undimmed, useRead } from '../state/load.ts';

type Live = AnswerOf<'/v1/admin/live'>['data'];
type Point = Live['points'][number];
type Process = AnswerOf<'/v1/admin/processes'>['data'][number];

const timeOf = (iso: string): string => bucketLabel(iso, 'second');
const REFRESH_MS = 5_000;
const STATUSES = ['2xx', '3xx', '4xx', '5xx', 'none', 'left'] as const;

export function LiveFigures() {
  const [isPaused, setPaused] = useState(false);
  const live = useRead('/v1/admin/live');
  const processes = useRead('/v1/admin/processes');
  useEvery(REFRESH_MS, () => {
    if (isPaused) return;
    live.reload();
    processes.reload();
  });
  return (
    <Page
      title="Live"
      lead="All gateways on all machines together, as their processes reported in the last seconds. Times are UTC."
      tools={
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Stop updates
        </button>
      }
      commands={[
        curlCommand('/v1/admin/live'),
        curlCommand('/v1/admin/processes'),
        'tollgate process live',
        'tollgate process list',
      ]}
    >
      <Loaded load={undimmed(live)} permission="platform.admin">
        {({ data }) => <LiveCharts live={data} />}
      </Loaded>
      <ManagedList
        title="Processes"
        load={undimmed(processes)}
        rowsOf={({ data }) => data}
        columns={PROCESS_COLUMNS}
        permission="platform.admin"
        empty="No process has reported in the last ten minutes."
      />
    </Page>
  );
}

function LiveCharts({ live }: { readonly live: Live }) {
  const { points } = live;
  const buckets = points.map(({ at }) => at);
  const common = { buckets, granularity: 'second' as const, command: curlCommand('/v1/admin/live') };
  const timesOf = (name: string, valueOf: (point: Point) => number | null) => ({ name, values: points.map(valueOf) });
  return (
    <>
      <LastMinute live={live} />
      <div class="grid">
        <StackedBars
          {...common}
          title="Requests by status"
          note="Requests that ended, per five seconds. None: no answer was sent. Left: the client did not wait."
          series={STATUSES.map((status) => timesOf(status, ({ by_status: by }) => by[status] ?? 0))}
          show={whole}
          axis={countTick}
        />
        <Lines
          {...common}
          title="Latency"
          note="From the arrival of a request to its end."
          series={[
            timesOf('p50', ({ latency_ms: latency }) => latency.p50),
            timesOf('p95', ({ latency_ms: latency }) => latency.p95),
            timesOf('p99', ({ latency_ms: latency }) => latency.p99),
          ]}
          show={duration}
          axis={durationTick}
        />
        <Lines
          {...common}
          title="First byte"
          note="From the arrival of a request to the first byte of the reply."
          series={[
            timesOf('p50', ({ first_byte_ms: first }) => first.p50),
            timesOf('p95', ({ first_byte_ms: first }) => first.p95),
            timesOf('p99', ({ first_byte_ms: first }) => first.p99),
          ]}
          show={duration}
          axis={durationTick}
        />
        <StackedBars
          {...common}
          title="Refused and failed"
          note="Requests that were refused, and calls to providers that failed, even if another provider then served."
          series={[
            timesOf('Refused', ({ refusals }) => refusals),
            timesOf('Failed calls', ({ failed_calls: failed }) => failed),
          ]}
          show={whole}
          axis={countTick}
        />
        <RefusalsAndFailures live={live} />
      </div>
    </>
  );
}

function LastMinute({ live }: { readonly live: Live }) {
  const { minute } = live;
  const share = minute.requests === 0 ? null : minute.errors / minute.requests;
  return (
    <>
      <Stats>
        <Stat
          name="Requests per second"
          value={rate(minute.requests_per_second)}
          note={`${whole(minute.requests)} ended in the last minute`}
        />
        <Stat name="Tokens per second" value={whole(Math.round(minute.tokens_per_second))} />
        <Stat
          name="Latency p95"
          value={duration(minute.latency_ms.p95)}
          note={`p50 ${duration(minute.latency_ms.p50)} · p99 ${duration(minute.latency_ms.p99)}`}
        />
        <Stat
          name="First byte p95"
          value={duration(minute.first_byte_ms.p95)}
          note={`p50 ${duration(minute.first_byte_ms.p50)} · p99 ${duration(minute.first_byte_ms.p99)}`}
        />
        <Stat
          name="Errors"
          value={share === null ? '–' : percent(share)}
          tone={minute.errors > 0 ? 'bad' : undefined}
          note={`${whole(minute.errors)} of ${whole(minute.requests)}`}
        />
        <Stat name="Refused" value={whole(minute.refusals)} note="in the last minute" />
      </Stats>
      <Stats>
        <Stat name="In flight" value={whole(live.in_flight)} />
        <Stat
          name="Not yet in the ledger"
          value={bytes(live.unposted_bytes)}
          note={`not yet in reports ${bytes(live.unreported_bytes)}`}
        />
        <Stat
          name="Processes"
          value={whole(live.processes)}
          tone={live.silent_processes > 0 ? 'bad' : undefined}
          note={live.silent_processes > 0 ? `${live.silent_processes} silent` : 'all of them report'}
        />
        <Stat
          name="Blocked"
          value={whole(live.blocked_processes)}
          tone={live.blocked_processes > 0 ? 'bad' : undefined}
          note="admit no request: their spool cannot be written"
        />
      </Stats>
    </>
  );
}

const REFUSAL_COLUMNS: readonly Column<Live['refusals'][number]>[] = [
  { name: 'Refused because', raw: ({ code }) => code, show: ({ code }) => spaced(code) },
  numberColumn('Requests', ({ count }) => count, whole),
];
const FAILED_COLUMNS: readonly Column<Live['failed_calls'][number]>[] = [
  { name: 'Provider', raw: ({ provider }) => provider },
  { name: 'Failure', raw: ({ kind }) => kind, show: ({ kind }) => spaced(kind) },
  numberColumn('Calls', ({ count }) => count, whole),
];
const PAUSE_COLUMNS: readonly Column<Live['paused'][number]>[] = [
  { name: 'Provider', raw: ({ provider }) => provider },
  { name: 'Model', raw: ({ model }) => model, show: ({ model }) => model ?? 'all of its models' },
  { name: 'Paused until', raw: ({ until }) => until, show: ({ until }) => timeOf(until) },
];

function RefusalsAndFailures({ live: { refusals, failed_calls: failed, paused } }: { readonly live: Live }) {
  return (
    <>
      <Card title="Refusals" note="Of the last five minutes.">
        {refusals.length === 0 ? (
          <p class="empty">Nothing was refused.</p>
        ) : (
          <Table caption="Refusals" columns={REFUSAL_COLUMNS} rows={refusals} />
        )}
      </Card>
      <Card title="Providers" note="Calls that failed in the last five minutes, and models that are paused.">
        {failed.length === 0 && paused.length === 0 && <p class="empty">No call failed, nothing is paused.</p>}
        {failed.length > 0 && <Table caption="Failed calls" columns={FAILED_COLUMNS} rows={failed} />}
        {paused.length > 0 && <Table caption="Paused" columns={PAUSE_COLUMNS} rows={paused} />}
      </Card>
    </>
  );
}

const PROCESS_COLUMNS: readonly Column<Process>[] = [
  {
    name: 'Process',
    raw: ({ kind, pid, machine }) => `${kind} ${pid} ${machine}`,
    show: ({ kind, pid, machine, version }) => (
      <NamedCell note={`${machine}, version ${version}`}>
        {kind} {pid}
      </NamedCell>
    ),
  },
  {
    name: 'State',
    raw: ({ silent, blocked }) => (silent ? 'silent' : blocked ? 'blocked' : 'running'),
    show: ({ silent, blocked, last_seen_at: at }) =>
      silent ? (
        <>
          <Badge tone="bad">silent</Badge>
          <span class="note">last seen {timeOf(at)}</span>
        </>
      ) : (
        <Badge tone={blocked ? 'bad' : 'good'}>{blocked ? 'blocked' : 'running'}</Badge>
      ),
  },
  numberColumn('In flight', ({ in_flight: count }) => count, whole),
  numberColumn('Connections', ({ connections }) => connections, whole, { isExtra: true }),
  numberColumn('Paused models', ({ paused_models: count }) => count, whole, { isExtra: true }),
  numberColumn(
    'Lent',
    ({ lent_usd: free, held_usd: held }) => (free === null || held === null ? null : free + held),
    (usd) => (usd === null ? '–' : dollars(usd.toFixed(2))),
    { isExtra: true },
  ),
  numberColumn(
    'Not in the ledger',
    ({ unposted_bytes: count }) => count,
    (count) => (count === null ? '–' : bytes(count)),
    {
      isExtra: true,
    },
  ),
  numberColumn('Loop delay', ({ loop_delay_ms: ms }) => ms, duration),
  numberColumn(
    'Memory',
    ({ memory_bytes: count }) => count,
    (count) => (count === null ? '–' : bytes(count)),
  ),
];
