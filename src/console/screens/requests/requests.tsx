// The listing of single requests, with filters, which the address keeps; new requests can be followed.

import { useEffect, useState } from 'preact/hooks';
import { REASONS } from '../../logic/route-words.ts';
import { SelectField, TextField } from '../../parts/form.tsx';
import { Loaded, MoreButton } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { WindowTools } from '../../parts/window-tools.tsx';
import { params, setParams } from '../../state/address.ts';
import { useEvery } from '../../state/every.ts';
import { undimmed } from '../../state/load.ts';
import { usePages } from '../../state/pages.ts';
import {
  pathOf,
  type RequestRow,
  reportCurlCommand,
  reportPermission,
  reportTollgateCommands,
} from '../../state/reports.ts';
import { reportScope, windowQuery } from '../../state/view.ts';
import { GroupChart } from '../usage-charts.tsx';
import { RequestPanel } from './request-panel.tsx';
import { RequestTable } from './request-table.tsx';

const PAGE_SIZE = 50;
/** The interval for loading new requests, which are in the reports some seconds after they ended. */
const FOLLOW_MS = 3_000;
const FILTERS = [
  'model',
  'provider',
  'tag',
  'status',
  'routed',
  'route_tier',
  'route_reason',
  'api_key_id',
  'user_id',
  'team_id',
] as const;
type Filter = (typeof FILTERS)[number];

export function Requests() {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, params.value[name]]));
  const query = { ...filters, limit: PAGE_SIZE };
  const first = usePages<RequestRow>(pathOf('requests'), { ...windowQuery.value, ...query }, { atOnce: 1 });
  const shownId = params.value['request'];
  const isFollowed = params.value['follow'] === '1';
  useEvery(FOLLOW_MS, () => isFollowed && first.reload());
  /** Loading older requests ends following, because each reload would load all pages that are shown. */
  const older =
    first.more.read === null
      ? null
      : () => {
          if (isFollowed) setParams({ follow: null }, { isNewEntry: false });
          first.more.read?.();
        };
  return (
    <Page
      title="Requests"
      lead="Every request with what it used, what it cost and why its model served."
      tools={
        <>
          <button
            type="button"
            aria-pressed={isFollowed}
            onClick={() => setParams({ follow: isFollowed ? null : '1' }, { isNewEntry: false })}
          >
            Follow
          </button>
          <WindowTools />
        </>
      }
      commands={[
        reportCurlCommand('requests', query),
        reportCurlCommand('requests', { ...query, format: 'csv' }),
        ...reportTollgateCommands('requests', query),
      ]}
    >
      <Filters />
      <GroupChart query={{ ...filters, group_by: 'status', top: 6 }} measure="requests" title="Requests by status" />
      <Card>
        <Loaded
          load={isFollowed ? undimmed(first) : first}
          permission={reportScope.value.id === 'organization' ? 'org.admin' : reportPermission()}
          isEmpty={({ data }) => data.length === 0}
          empty={<p>No request matches. Remove a filter, or choose a longer window.</p>}
        >
          {({ data }) => <RequestTable rows={data} />}
        </Loaded>
        <MoreButton more={{ ...first.more, read: older }} name="Older requests" />
      </Card>
      {shownId !== undefined && (
        <RequestPanel
          key={shownId}
          id={shownId}
          row={first.data?.data.find(({ id }) => id === shownId) ?? null}
          onClose={() => setParams({ request: null })}
        />
      )}
    </Page>
  );
}

function Filters() {
  const value = (name: Filter) => params.value[name] ?? '';
  const set = (name: Filter) => (to: string) => setParams({ [name]: to.trim(), request: null }, { isNewEntry: false });
  const active = FILTERS.filter((name) => value(name) !== '');
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <DelayedTextField label="Model" value={value('model')} onValue={set('model')} />
      <DelayedTextField label="Provider" value={value('provider')} onValue={set('provider')} />
      <DelayedTextField label="Tag" value={value('tag')} onValue={set('tag')} />
      <DelayedTextField label="Status" value={value('status')} onValue={set('status')} />
      <SelectField
        label="Routed"
        value={value('routed')}
        onValue={set('routed')}
        options={[
          { id: '', name: 'All' },
          { id: 'true', name: 'By auto routing' },
        ]}
      />
      <SelectField
        label="Reason"
        value={value('route_reason')}
        onValue={set('route_reason')}
        options={[{ id: '', name: 'Any' }, ...Object.entries(REASONS).map(([id, name]) => ({ id, name }))]}
      />
      <DelayedTextField label="Tier" value={value('route_tier')} onValue={set('route_tier')} />
      {active.length > 0 && (
        <button
          type="button"
          class="quiet"
          onClick={() => setParams(Object.fromEntries(active.map((name) => [name, null])))}
        >
          Clear {active.length === 1 ? 'the filter' : `${active.length} filters`}
        </button>
      )}
    </form>
  );
}

interface DelayedTextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

const TYPING_PAUSE_MS = 350;

/** A text field that reports its value once typing pauses. */
function DelayedTextField({ label, value, onValue }: DelayedTextFieldProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onValue(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <TextField label={label} value={text} onValue={setText} />;
}
