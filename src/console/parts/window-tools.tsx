// The tools above a report: whose usage it shows, for which window, in which time zone.

import { useState } from 'preact/hooks';
import { DEFAULT_PERIOD, isTimeZone, PERIODS } from '../logic/period.ts';
import { params, setParams } from '../state/address.ts';
import { OWN_ZONE, period, reportScope, reportScopes, zone } from '../state/view.ts';

export function WindowTools({ withScope = true }: { readonly withScope?: boolean }) {
  const all = reportScopes();
  return (
    <>
      {withScope && all.length > 1 && (
        <label class="tool">
          <span class="unseen">Scope</span>
          <select
            value={reportScope.value.id}
            onChange={(event) => setParams({ whose: event.currentTarget.value, cursor: null })}
          >
            {all.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <RangeTool />
      <ZoneTool />
    </>
  );
}

function RangeTool() {
  const { from, to, range } = params.value;
  const isOwn = from !== undefined && to !== undefined;
  const { start, end } = period.value;
  const choose = (value: string) =>
    value === 'own'
      ? setParams({ from: start, to: end, range: null, cursor: null })
      : setParams({ range: value === DEFAULT_PERIOD ? null : value, from: null, to: null, cursor: null });
  const setDate = (name: 'from' | 'to') => (event: { currentTarget: HTMLInputElement }) =>
    setParams({ from: start, to: end, [name]: event.currentTarget.value, cursor: null });
  return (
    <>
      <label class="tool">
        <span class="unseen">Window</span>
        <select
          value={isOwn ? 'own' : (range ?? DEFAULT_PERIOD)}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {PERIODS.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          <option value="own">From … to …</option>
        </select>
      </label>
      {isOwn && (
        <span class="tool pair">
          <input type="date" aria-label="First day" value={start} max={end} onChange={setDate('from')} />
          <input type="date" aria-label="Last day" value={end} min={start} onChange={setDate('to')} />
        </span>
      )}
    </>
  );
}

/** Offers UTC, the browser's time zone, and any other by its name. */
function ZoneTool() {
  const [isTyping, setTyping] = useState(false);
  const known = [...new Set(['UTC', OWN_ZONE, zone.value])];
  const set = (name: string) => setParams({ zone: name === 'UTC' ? null : name, cursor: null });
  if (isTyping)
    return (
      <input
        class="tool"
        aria-label="Time zone, such as Europe/Berlin"
        placeholder="Europe/Berlin"
        autofocus
        onKeyDown={(event) => event.key === 'Escape' && setTyping(false)}
        onChange={(event) => {
          const name = event.currentTarget.value.trim();
          if (isTimeZone(name)) {
            set(name);
            setTyping(false);
          } else event.currentTarget.setCustomValidity('No such time zone');
        }}
      />
    );
  return (
    <label class="tool">
      <span class="unseen">Time zone</span>
      <select
        value={zone.value}
        onChange={(event) => (event.currentTarget.value === '' ? setTyping(true) : set(event.currentTarget.value))}
      >
        {known.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        <option value="">Another…</option>
      </select>
    </label>
  );
}
