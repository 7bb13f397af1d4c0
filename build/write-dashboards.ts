// Writes the Grafana dashboards of deploy/grafana from the tables below: `node build/write-dashboards.ts`. A test
// compares the files with these tables, and runs every expression on a real Prometheus.

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

type Unit = 'short' | 'reqps' | 's' | 'bytes' | 'Bps' | 'currencyUSD' | 'percentunit' | 'cps' | 'dtdurations' | 'none';

interface Panel {
  readonly title: string;
  /** The description that Grafana shows: what the panel shows, and which values are unusual. */
  readonly text: string;
  readonly unit: Unit;
  /** The expression and the legend of each line. Grafana replaces `$__rate_interval`. */
  readonly lines: readonly (readonly [expression: string, legend: string])[];
  /** The panel shows one number instead of lines over time. */
  readonly isStat?: true;
  readonly isStacked?: true;
}

interface Dashboard {
  readonly id: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

const WINDOW = '[$__rate_interval]';
const rate = (metric: string, by = '') => `sum${by === '' ? '' : ` by (${by})`} (rate(${metric}${WINDOW}))`;
/** The rate of a counter that has no series before its first event: 0 instead of no value. */
const rateOrNone = (metric: string, by = '') => `${rate(metric, by)} or vector(0)`;
const quantile = (share: number, metric: string, by = '') =>
  `histogram_quantile(${share}, sum by (le${by === '' ? '' : `, ${by}`}) (rate(${metric}_bucket${WINDOW})))`;
const quantiles = (metric: string): Panel['lines'] => [
  [quantile(0.5, metric), 'median'],
  [quantile(0.95, metric), '95 %'],
  [quantile(0.99, metric), '99 %'],
];
const REMEMBERED = 'tollgate_routes_total{cached="true"}';
const FAILED = 'tollgate_requests_total{status_class=~"5xx|none"}';

export const DASHBOARDS: readonly Dashboard[] = [
  {
    id: 'traffic',
    title: 'Tollgate: traffic',
    panels: [
      {
        title: 'Requests',
        text: 'Admitted requests that ended, by API.',
        unit: 'reqps',
        isStacked: true,
        lines: [[rate('tollgate_requests_total', 'api'), '{{api}}']],
      },
      {
        title: 'Answers',
        text: 'By class of status. none: the request ended without an answer; left: the client left before it.',
        unit: 'reqps',
        isStacked: true,
        lines: [[rate('tollgate_requests_total', 'status_class'), '{{status_class}}']],
      },
      {
        title: 'Failed',
        text: 'Share of admitted requests that ended as 5xx or without an answer.',
        unit: 'percentunit',
        lines: [[`${rate(FAILED)} / ${rate('tollgate_requests_total{status_class!="left"}')}`, 'failed']],
      },
      {
        title: 'Refused',
        text: 'Requests that were refused before a provider was called, by reason.',
        unit: 'reqps',
        lines: [[`topk(10, ${rate('tollgate_refusals_total', 'code')})`, '{{code}}']],
      },
      {
        title: 'First byte',
        text: 'Time from the request to the first byte of the reply.',
        unit: 's',
        lines: quantiles('tollgate_ttft_seconds'),
      },
      {
        title: 'Duration',
        text: 'Time from the request to its end.',
        unit: 's',
        lines: quantiles('tollgate_request_duration_seconds'),
      },
      {
        title: 'Added by Tollgate',
        text: 'Time from the complete request to the call of its provider, including waits for leases and classifiers.',
        unit: 's',
        lines: quantiles('tollgate_overhead_seconds'),
      },
      {
        title: 'Tokens',
        text: 'Metered tokens, by direction.',
        unit: 'cps',
        lines: [[rate('tollgate_tokens_total', 'direction'), '{{direction}}']],
      },
      {
        title: 'In flight',
        text: 'Open exchanges, relays and calls to providers.',
        unit: 'short',
        lines: [
          ['sum(tollgate_inflight)', 'exchanges'],
          ['sum(tollgate_relays_open)', 'relays'],
          ['sum(tollgate_upstream_open)', 'calls'],
        ],
      },
      {
        title: 'Providers: first byte, 95 %',
        text: 'Time from the call of each provider to the first byte of its reply.',
        unit: 's',
        lines: [[quantile(0.95, 'tollgate_provider_latency_seconds', 'provider'), '{{provider}}']],
      },
      {
        title: 'Providers: failed calls',
        text: 'Calls that were not answered, by provider and kind of failure.',
        unit: 'reqps',
        lines: [[rateOrNone('tollgate_upstream_errors_total', 'provider, kind'), '{{provider}} {{kind}}']],
      },
      {
        title: 'Providers: paused models',
        text: 'Models that are not called now, because their provider asked for a pause.',
        unit: 'short',
        lines: [['max(tollgate_upstream_paused)', 'paused']],
      },
    ],
  },
  {
    id: 'money',
    title: 'Tollgate: money',
    panels: [
      {
        title: 'Charged an hour',
        text: 'Recorded charges in US dollars an hour. The ledger has the exact sums.',
        unit: 'currencyUSD',
        lines: [[`3600 * ${rate('tollgate_charged_usd_total')}`, 'charged']],
      },
      {
        title: 'Charged in 24 hours',
        text: 'Sum of the recorded charges.',
        unit: 'currencyUSD',
        isStat: true,
        lines: [['sum(increase(tollgate_charged_usd_total[24h]))', 'charged']],
      },
      {
        title: 'Suspense in 24 hours',
        text: 'Usage that no hold or price covered. More than 0 is an alarm.',
        unit: 'currencyUSD',
        isStat: true,
        lines: [['sum(increase(tollgate_suspense_usd_total[24h]))', 'suspense']],
      },
      {
        title: 'Leased credit',
        text: 'Credit that gateways may spend without asking Postgres: free, and held for open requests.',
        unit: 'currencyUSD',
        isStacked: true,
        lines: [
          ['sum(tollgate_lease_free_usd)', 'free'],
          ['sum(tollgate_lease_held_usd)', 'held'],
        ],
      },
      {
        title: 'Calls about leases',
        text: 'Calls to Postgres. A warm gateway makes few.',
        unit: 'cps',
        lines: [[rateOrNone('tollgate_lease_calls_total', 'call, kind'), '{{call}} {{kind}}']],
      },
      {
        title: 'Usage that was not taken as reported',
        text: 'Replies whose usage Tollgate counted, rejected as impossible, or had no price for.',
        unit: 'reqps',
        lines: [
          [rate('tollgate_usage_counted_total'), 'counted'],
          [rate('tollgate_usage_distrusted_total'), 'distrusted'],
          [rate('tollgate_usage_unpriced_total'), 'unpriced'],
        ],
      },
      {
        title: 'Drift',
        text: 'Broken ledger invariants, differing hours and sealed days of reports, files without bytes. All are 0.',
        unit: 'short',
        lines: [
          ['max(tollgate_ledger_drift)', 'ledger'],
          ['max(tollgate_facts_drift)', 'reports'],
          ['max(tollgate_cells_drift)', 'sealed days'],
          ['max(tollgate_media_drift)', 'files'],
        ],
      },
      {
        title: 'Pending executions',
        text: 'Executions whose charge is not known yet, and those of them that are late.',
        unit: 'short',
        lines: [
          ['max(tollgate_pending_executions)', 'pending'],
          ['max(tollgate_pending_late)', 'late'],
        ],
      },
    ],
  },
  {
    id: 'routing',
    title: 'Tollgate: routing and guardrails',
    panels: [
      {
        title: 'Auto-routed requests',
        text: 'Requests by the reason of their route.',
        unit: 'reqps',
        isStacked: true,
        lines: [[rateOrNone('tollgate_routes_total', 'reason'), '{{reason}}']],
      },
      {
        title: 'Share of remembered turns',
        text: 'Requests whose turn already had a route, so that they cost no classifier call.',
        unit: 'percentunit',
        lines: [[`(${rate(REMEMBERED)} or vector(0)) / ${rate('tollgate_routes_total')}`, 'remembered']],
      },
      {
        title: 'Classifier calls',
        text: 'Calls by outcome.',
        unit: 'reqps',
        lines: [[rateOrNone('tollgate_classifier_calls_total', 'result'), '{{result}}']],
      },
      {
        title: 'Classifier time',
        text: 'How long a classifier call takes. One request of each turn waits for it.',
        unit: 's',
        lines: quantiles('tollgate_classifier_seconds'),
      },
      {
        title: 'Turns routed without the store',
        text: 'Turns that were routed although Postgres could not be asked for their route.',
        unit: 'reqps',
        lines: [[rate('tollgate_routing_store_faults_total'), 'faults']],
      },
      {
        title: 'Screened by guardrails',
        text: 'Requests and replies by stage and strongest action.',
        unit: 'reqps',
        lines: [[rateOrNone('tollgate_guardrail_requests_total', 'stage, action'), '{{stage}} {{action}}']],
      },
      {
        title: 'Found by guardrails',
        text: 'Findings by entity. The entities of external detectors are counted together.',
        unit: 'cps',
        lines: [[rateOrNone('tollgate_guardrail_findings_total', 'entity'), '{{entity}}']],
      },
      {
        title: 'Not scanned by guardrails',
        text: 'Requests and replies by reason, such as too late, too long or encoded.',
        unit: 'reqps',
        lines: [[rateOrNone('tollgate_guardrail_not_scanned_total', 'reason'), '{{reason}}']],
      },
    ],
  },
  {
    id: 'operation',
    title: 'Tollgate: operation',
    panels: [
      {
        title: 'Processes',
        text: 'Ready processes, by role.',
        unit: 'short',
        lines: [['sum by (role) (tollgate_processes_ready)', '{{role}}']],
      },
      {
        title: 'Restarts',
        text: 'Processes that ended unexpectedly, within an hour.',
        unit: 'short',
        lines: [['sum by (role) (increase(tollgate_process_restarts_total[1h]))', '{{role}}']],
      },
      {
        title: 'Version',
        text: 'Running versions. During an upgrade there are two.',
        unit: 'none',
        isStat: true,
        lines: [['count by (version, node) (tollgate_build_info)', '{{version}} on Node {{node}}']],
      },
      {
        title: 'Event loop',
        text: 'Longest delay of a gateway’s event loop since the last scrape.',
        unit: 's',
        lines: [['max(tollgate_event_loop_delay_max_seconds)', 'longest']],
      },
      {
        title: 'Memory',
        text: 'Resident memory of all processes, and the part that holds request bodies.',
        unit: 'bytes',
        lines: [
          ['sum(tollgate_resident_memory_bytes)', 'resident'],
          ['sum(tollgate_body_bytes_lent)', 'bodies'],
          ['sum(tollgate_worker_queue_bytes)', 'worker tasks'],
        ],
      },
      {
        title: 'Connections',
        text: 'Connections of clients. Refused ones are closed at once.',
        unit: 'short',
        lines: [
          ['sum(tollgate_connections_open)', 'open'],
          ['sum(increase(tollgate_connections_refused_total[5m])) or vector(0)', 'refused in 5 minutes'],
        ],
      },
      {
        title: 'Spool backlog',
        text: 'Bytes of the spool that are not yet in a database.',
        unit: 'bytes',
        lines: [['sum by (destination) (tollgate_spool_lag_bytes)', '{{destination}}']],
      },
      {
        title: 'Shipped',
        text: 'Records shipped to Postgres, facts shipped to ClickHouse.',
        unit: 'cps',
        lines: [
          [rate('tollgate_spool_records_posted_total'), 'records'],
          [rate('tollgate_facts_inserted_total'), 'facts'],
        ],
      },
      {
        title: 'Spool alarms',
        text: 'Blocked gateways, files set aside, spools that cannot be read. All are 0.',
        unit: 'short',
        lines: [
          ['sum(tollgate_spool_blocked)', 'blocked'],
          ['sum(tollgate_spool_quarantined_files)', 'quarantined'],
          ['sum(tollgate_spool_unreadable)', 'unreadable'],
          ['sum(increase(tollgate_shipping_faults_total[5m]))', 'faults in 5 minutes'],
        ],
      },
      {
        title: 'Jobs: since the last success',
        text: 'Time by job. A daily job reaches a day.',
        unit: 'dtdurations',
        lines: [['time() - max by (task) (tollgate_job_last_success_timestamp_seconds)', '{{task}}']],
      },
      {
        title: 'Worker tasks',
        text: 'Tasks by kind and result. A task that misses its deadline ends its thread.',
        unit: 'reqps',
        lines: [[rateOrNone('tollgate_worker_tasks_total', 'task, result'), '{{task}} {{result}}']],
      },
      {
        title: 'Uploaded files',
        text: 'Bytes uploaded and served.',
        unit: 'Bps',
        lines: [
          [rateOrNone('tollgate_media_received_bytes_total'), 'uploaded'],
          [rateOrNone('tollgate_media_served_bytes_total'), 'served'],
        ],
      },
      {
        title: 'Webhooks',
        text: 'Messages that wait, and messages that were given up.',
        unit: 'short',
        lines: [
          ['max(tollgate_webhook_messages_waiting)', 'waiting'],
          ['max(tollgate_webhook_messages_dead)', 'given up'],
        ],
      },
      {
        title: 'Reports',
        text: 'Answered reports, by status.',
        unit: 'reqps',
        lines: [[rateOrNone('tollgate_reports_total', 'status'), '{{status}}']],
      },
    ],
  },
];

const WIDTH = 8;
const HEIGHT = 8;
const ACROSS = 3;

/** A dashboard as Grafana (11 and later) imports it. */
export function renderDashboard({ id, title, panels }: Dashboard): string {
  const dashboard = {
    uid: `tollgate-${id}`,
    title,
    tags: ['tollgate'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: [{ name: 'source', label: 'Source', type: 'datasource', query: 'prometheus' }] },
    links: [{ type: 'dashboards', tags: ['tollgate'], title: 'Tollgate', asDropdown: true, includeVars: true }],
    panels: panels.map(renderPanel),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

function renderPanel({ title, text, unit, lines, isStat, isStacked }: Panel, index: number): object {
  const stacking = { mode: isStacked === true ? 'normal' : 'none' };
  return {
    id: index + 1,
    type: isStat === true ? 'stat' : 'timeseries',
    title,
    description: text,
    gridPos: { x: (index % ACROSS) * WIDTH, y: Math.floor(index / ACROSS) * HEIGHT, w: WIDTH, h: HEIGHT },
    datasource: { type: 'prometheus', uid: '$source' },
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: isStacked === true ? 30 : 5, stacking } },
      overrides: [],
    },
    targets: lines.map(([expr, legendFormat], line) => ({ refId: String.fromCharCode(65 + line), expr, legendFormat })),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const dashboard of DASHBOARDS) {
    const path = fileURLToPath(new URL(`../deploy/grafana/dashboards/${dashboard.id}.json`, import.meta.url));
    writeFileSync(path, renderDashboard(dashboard));
  }
}
