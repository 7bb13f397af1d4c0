// The table of requests, whose rows open the panel of a request; and the latest requests, for the overview.

import type { ComponentChildren } from 'preact';
import { dollars, duration, moment, spaced, whole } from '../../logic/format.ts';
import { Badge, type Tone } from '../../parts/figures.tsx';
import { Link } from '../../parts/link.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, NamedCell, numberColumn, Table } from '../../parts/table.tsx';
import { params, setParams } from '../../state/address.ts';
import { type RequestRow, reportPermission, useReport } from '../../state/reports.ts';
import { zone } from '../../state/view.ts';

/** `opener` renders the link or button that opens a request. */
const columnsWith = (opener: (id: string, text: string) => ComponentChildren): readonly Column<RequestRow>[] => [
  {
    name: 'When',
    raw: ({ created_at: at }) => at,
    show: ({ id, created_at: at }) => opener(id, moment(at, zone.value)),
  },
  {
    name: 'Model',
    raw: ({ model }) => model,
    show: ({ model, requested_model: requested, model_route: route }) => (
      <NamedCell note={route === null ? null : `auto${route.tier ? ` · ${route.tier}` : ''}`}>
        {model ?? requested ?? 'none'}
      </NamedCell>
    ),
  },
  { name: 'Status', raw: ({ status }) => status, show: (row) => <StatusBadge row={row} /> },
  numberColumn('Tokens in', ({ tokens_prompt: count }) => count, whole, { isExtra: true }),
  numberColumn('Tokens out', ({ tokens_completion: count }) => count, whole, { isExtra: true }),
  {
    name: 'Cost',
    raw: ({ cost }) => cost,
    show: ({ cost, billing_status: state, credential_source: source }) =>
      state === 'pending' ? 'pending' : source === 'own' && (cost ?? '0') === '0' ? 'own key' : dollars(cost),
    isNumber: true,
  },
  numberColumn('Latency', ({ latency_ms: ms }) => ms, duration, { isExtra: true }),
  {
    name: 'Key',
    raw: ({ api_key: key, api_key_id: id }) => key ?? id,
    show: ({ api_key: key, api_key_id: id }) => key ?? id.slice(0, 8),
    isExtra: true,
  },
];

const COLUMNS = columnsWith((id, text) => (
  <button type="button" class="link" onClick={() => setParams({ request: id })}>
    {text}
  </button>
));
const LATEST_COLUMNS = columnsWith((id, text) => (
  <Link to="requests" params={{ request: id }}>
    {text}
  </Link>
));

export function StatusBadge({ row: { status, error } }: { readonly row: Pick<RequestRow, 'status' | 'error'> }) {
  const tone: Tone =
    status === null ? 'warn' : status < 400 && error === null ? 'good' : status === 429 ? 'warn' : 'bad';
  return (
    <Badge tone={tone}>
      {status ?? 'no reply'}
      {error !== null && ` ${spaced(error)}`}
    </Badge>
  );
}

export function RequestTable({ rows }: { readonly rows: readonly RequestRow[] }) {
  return (
    <Table
      caption="Requests"
      columns={COLUMNS}
      rows={rows}
      keyOf={({ id }) => id}
      isSelected={({ id }) => id === params.value['request']}
    />
  );
}

const LATEST = 6;

export function LatestRequests() {
  const load = useReport('requests', { limit: LATEST });
  return (
    <Card title="Latest requests" tools={<Link to="requests">All requests</Link>}>
      <Loaded
        load={load}
        permission={reportPermission()}
        isEmpty={({ data }) => data.length === 0}
        empty="No requests in this window."
      >
        {({ data }) => <Table caption="Latest requests" columns={LATEST_COLUMNS} rows={data} keyOf={({ id }) => id} />}
      </Loaded>
    </Card>
  );
}
