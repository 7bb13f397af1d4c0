// The catalog: providers with their health, models with their providers, prices. Only its file changes it.

import { useState } from 'preact/hooks';
import { type AnswerOf, curlCommand } from '../../api.ts';
import { duration, orNone, relativeTime, spaced, whole } from '../../logic/format.ts';
import { Badge, type Tone } from '../../parts/figures.tsx';
import { SelectField } from '../../parts/form.tsx';
import { ManagedList } from '../../parts/managed-list.tsx';
import { Page } from '../../parts/page.tsx';
import { agoColumn, type Column, NamedCell, numberColumn } from '../../parts/table.tsx';
import { now } from '../../state/clock.ts';
import { useRead } from '../../state/load.ts';
import { CatalogCheck } from './catalog-check.tsx';
import { DayStrip, type ProviderDayLoad, useProviderDay } from './provider-day.tsx';

type Provider = AnswerOf<'/v1/admin/providers'>['data'][number];
type Model = AnswerOf<'/v1/admin/models'>['data'][number];
type Price = AnswerOf<'/v1/admin/prices'>['data'][number];

const TONES: Readonly<Record<Provider['health']['status'], Tone>> = { ok: 'good', failing: 'bad', unknown: 'plain' };

const providerColumns = (day: ProviderDayLoad): readonly Column<Provider>[] => [
  {
    name: 'Provider',
    raw: ({ id }) => id,
    show: ({ id, base_url: address }) => <NamedCell note={address}>{id}</NamedCell>,
  },
  {
    name: 'Health',
    raw: ({ health }) => health.status,
    show: ({ health }) => (
      <>
        <Badge tone={TONES[health.status]}>{health.status}</Badge>
        {health.last_failure !== null && <span class="note">{spaced(health.last_failure)}</span>}
      </>
    ),
  },
  { name: 'Last 24 hours', raw: ({ id }) => id, show: ({ id }) => <DayStrip day={day} provider={id} /> },
  numberColumn('Latency', ({ health }) => health.latency_ms, duration),
  agoColumn('Last success', ({ health }) => health.last_success_at, { isExtra: true }),
  agoColumn('Last failure', ({ health }) => health.last_failure_at, { isExtra: true }),
  {
    name: 'Paused',
    raw: ({ health }) => health.pauses.length,
    show: ({ health }) =>
      health.pauses.length === 0
        ? '–'
        : health.pauses
            .map(({ model, until }) => `${model ?? 'all'} ${relativeTime(until, now.value.getTime())}`)
            .join(', '),
  },
];

const MODEL_COLUMNS: readonly Column<Model>[] = [
  {
    name: 'Model',
    raw: ({ id }) => id,
    show: ({ id, display_name: name }) => <NamedCell note={name}>{id}</NamedCell>,
  },
  { name: 'Kind', raw: ({ kind }) => kind, isExtra: true },
  {
    name: 'Active',
    raw: ({ active }) => String(active),
    show: ({ active }) => <Badge tone={active ? 'good' : 'plain'}>{active ? 'active' : 'inactive'}</Badge>,
  },
  {
    name: 'Served by',
    raw: ({ served_by: deployments }) => deployments.map(({ provider }) => provider).join(' '),
    show: ({ served_by: deployments }) => deployments.map(({ provider, model }) => `${provider} (${model})`).join(', '),
  },
  numberColumn('Context', ({ context_length: size }) => size, whole, { isExtra: true }),
];

const PRICE_COLUMNS: readonly Column<Price>[] = [
  { name: 'Deployment', raw: ({ provider, provider_model: model }) => `${provider} ${model}` },
  {
    name: 'Version',
    raw: ({ version }) => version,
    show: ({ version }) => <code>{version.slice(0, 10)}</code>,
    isExtra: true,
  },
  numberColumn('Input', ({ price }) => price.input, orNone),
  numberColumn('Cached', ({ price }) => price.cached_input, orNone, { isExtra: true }),
  numberColumn('Output', ({ price }) => price.output, orNone),
  {
    name: 'In use',
    raw: ({ present }) => String(present),
    show: ({ present }) => (present ? 'yes' : 'no'),
    isExtra: true,
  },
];

export function Catalog() {
  const providers = useRead('/v1/admin/providers');
  const models = useRead('/v1/admin/models');
  const day = useProviderDay();
  const [chosen, setChosen] = useState('');
  const ids = models.data?.data.map(({ id }) => id) ?? [];
  const model = chosen || ids[0];
  const prices = useRead(model === undefined ? null : '/v1/admin/prices', { query: { model } });
  return (
    <Page
      title="Catalog"
      lead="The models, the providers that serve them and their prices, and how the providers have answered."
      commands={[
        curlCommand('/v1/admin/providers'),
        curlCommand('/v1/admin/models'),
        'tollgate provider list',
        'tollgate model list',
        'tollgate apply tollgate.yaml --dry-run',
      ]}
    >
      <ManagedList
        title="Providers"
        load={providers}
        rowsOf={({ data }) => data}
        columns={providerColumns(day)}
        permission="platform.admin"
        empty="No provider is configured. tollgate init writes a file."
      />
      <ManagedList
        title="Models"
        load={models}
        rowsOf={({ data }) => data}
        columns={MODEL_COLUMNS}
        permission="platform.admin"
        empty="No model is configured."
      />
      <ManagedList
        title="Prices"
        tools={<SelectField label="Model" value={model ?? ''} onValue={setChosen} options={ids} />}
        note="Dollars per million tokens. Earlier versions are kept."
        load={prices}
        rowsOf={({ data }) => data}
        columns={PRICE_COLUMNS}
        permission="platform.admin"
        empty="No price is known."
      />
      <CatalogCheck />
    </Page>
  );
}
